"""Streams: TCP connections of this host that the coordinator speaks over, byte by byte.

The agent knows nothing of what is said. It measures: every event carries the time since the stream
opened, since the last byte was sent and since the last one came, and what TCP_INFO knows.
"""

from base64 import b64decode
from typing import Any, Callable, Dict

from .stream import Stream

Message = Dict[str, Any]


class Streams:
    """Every open stream of this agent, by its id."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._streams: Dict[int, Stream] = {}

    def order(self, message: Message) -> None:
        """Carry out one order; one for a stream that has ended is no error, it crossed the end."""
        identity = message["id"]
        if message["t"] == "open":
            self._streams[identity] = Stream(self._agent, message, self._forget)
            self._streams[identity].connect()
        elif identity in self._streams:
            _ORDERS[message["t"]](self._streams[identity], message)
        elif message["t"] == "info":
            self._agent.send({"t": "info", "id": identity, "tcp": None})

    def close(self) -> None:
        """Close all of them; nobody is there to be told."""
        for stream in list(self._streams.values()):
            stream.drop(False)

    def _forget(self, identity: int) -> None:
        self._streams.pop(identity, None)


_ORDERS: Dict[str, Callable[[Stream, Message], None]] = {
    "data": lambda stream, message: stream.send(b64decode(message["data"])),
    "credit": lambda stream, message: stream.grant(message["bytes"]),
    "await": lambda stream, message: stream.wait_for(message["ms"] / 1000.0),
    "info": lambda stream, message: stream.report("info"),
    "shut": lambda stream, message: stream.shut(),
    "drop": lambda stream, message: stream.drop(bool(message.get("reset"))),
}

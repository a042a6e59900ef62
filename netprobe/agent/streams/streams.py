"""Every open stream of the agent, by its id, and the orders for them.

The agent knows nothing of what is said. It measures: every message carries the time since the
stream opened, since the last byte was sent and since the last one came.
"""

from itertools import count
from typing import Dict

from ..core.agent import AgentCore
from ..wire import stream_messages as wire
from .accepting import StreamListener, listen_for_streams
from .stream import AgentStream


class AgentStreams:
    """Carries out stream orders. One for a stream that is over is no error: the two crossed."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._streams: Dict[int, AgentStream] = {}
        self._listeners: Dict[int, StreamListener] = {}
        self._ids = count(wire.FIRST_ACCEPTED_ID)

    def open(self, order: wire.StreamOpenOrder) -> None:
        """Open a connection; ``StreamOpened`` follows in any case."""
        stream = AgentStream(self._agent, order, self._forget_stream)
        self._streams[order.id] = stream
        stream.connect()

    def listen(self, order: wire.StreamListenOrder) -> None:
        """Hand over what connects to a port; ``StreamListening`` follows in any case."""
        listen_for_streams(self._agent, order, self._streams, self._ids, self._listeners)

    def send(self, order: wire.StreamSendOrder) -> None:
        """Send bytes; credit for them is returned once the kernel has taken them."""
        if order.id in self._streams:
            self._streams[order.id].send(order.data)

    def grant(self, order: wire.StreamCredit) -> None:
        """The coordinator has taken bytes: as many more may be read."""
        if order.id in self._streams:
            self._streams[order.id].grant(order.bytes)

    def wait_for(self, order: wire.StreamAwaitOrder) -> None:
        """Report ``timeout`` if neither a byte nor an end comes in time."""
        if order.id in self._streams:
            self._streams[order.id].wait_for(order.ms / 1000.0)

    def tell_info(self, order: wire.StreamInfoOrder) -> None:
        """Tell TCP_INFO as it is now; None where the stream is over."""
        stream = self._streams.get(order.id)
        self._agent.send(wire.StreamInfo(order.id, None if stream is None else stream.facts()))

    def drop(self, order: wire.StreamDropOrder) -> None:
        """Close a connection now, or a port and all that came in over it."""
        if order.id in self._streams:
            self._streams[order.id].drop(order.reset)
        elif order.id in self._listeners:
            self._listeners[order.id].close()

    def close(self) -> None:
        """Close all of them without a word."""
        for listener in list(self._listeners.values()):
            listener.close()
        for stream in list(self._streams.values()):
            stream.drop(False)

    def _forget_stream(self, identity: int) -> None:
        self._streams.pop(identity, None)

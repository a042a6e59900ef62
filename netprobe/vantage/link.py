"""The coordinator's end of a running agent: frames out, replies and streams of outcomes in."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from netprobe.agent.wire.frames import BEAT_S, SILENCE_S, FrameReader, encode_frame
from netprobe.errors import AgentError
from netprobe.vantage.base import ended_words
from netprobe.vantage.handshake import Hello
from netprobe.vantage.process import AgentProcess

log = logging.getLogger(__name__)

# How many frames of one order may wait. A consumer that lags stops the reading of this agent's
# output, whose queue then stops its probes: that is the back pressure.
QUEUE_FRAMES = 256
READ_BYTES = 256 * 1024
CLOSE_S = 3.0
# Requests and orders share the wire's ``id``; ours count from where no order id of a run gets to.
FIRST_REQUEST_ID = 1 << 32

# Frames of an order that runs for a while; all others answer one request (a fault may be either).
STREAMED = ("outcomes", "done")

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Beats:
    """How often we speak, and how long silence may be, both ways. Seconds."""

    interval_s: float = BEAT_S
    silence_s: float = SILENCE_S


class AgentLink:
    """One agent. ``lost`` ends with an AgentError, for everybody who waits, when the agent is gone.

    ``cost`` is a sentence about what this agent cannot do because sudo failed, or None.
    """

    def __init__(
        self, host: str, process: AgentProcess, hello: Hello, beats: Beats, cost: str | None
    ) -> None:
        self.host = host
        self.hello = hello.facts
        self.cost = cost
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Not everybody waits for it: an exception that nobody reads is no warning here.
        self.lost.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._process = process
        self._beats = beats
        self._reader = FrameReader()
        self._ids = itertools.count(FIRST_REQUEST_ID)
        self._replies: dict[int, asyncio.Future[Message]] = {}
        self._streams: dict[int, asyncio.Queue[Message]] = {}
        self._farewells: set[asyncio.Task[None]] = set()
        self._heard_at = self._now()
        self._closing = False
        self._tasks = [
            asyncio.create_task(self._read(hello.rest)),
            asyncio.create_task(self._beat()),
        ]

    @property
    def pid(self) -> int:
        """The process id of the local command."""
        return self._process.pid

    @property
    def exit_status(self) -> int:
        """How the local command ended; 0 after an orderly stop."""
        return self._process.status

    def send(self, message: Message) -> None:
        """Queue one frame; whoever needs to know that it arrived asks for a reply instead."""
        if not self.lost.done():
            self._process.stdin.write(encode_frame(message))

    async def request(self, message: Message) -> Message:
        """Send an order that has one reply and give that. Raises AgentError when the agent is lost
        or its own bug kept it from answering. A message that names a round or a capture brings its
        ``id``; every other gets one here."""
        identity = message.get("id") or next(self._ids)
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[identity] = reply
        try:
            self.send({**message, "id": identity})
            await self._drain()
            waited: set[asyncio.Future[Any]] = {reply, self.lost}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                self.lost.result()
            return self._checked(reply.result())
        finally:
            del self._replies[identity]

    def subscribe(self, order_id: int) -> asyncio.Queue[Message]:
        """The frames of an order: ``outcomes`` ..., then ``done`` or ``fault``; a lost agent adds a
        last frame ``{"t": "lost"}``. Read it to its end or ``unsubscribe``: it is bounded."""
        return self._streams.setdefault(order_id, asyncio.Queue(QUEUE_FRAMES))

    def unsubscribe(self, order_id: int) -> None:
        """Frames of this order are no longer wanted; harmless when it is over."""
        queue = self._streams.pop(order_id, None)
        while queue is not None and not queue.empty():
            queue.get_nowait()

    async def stream(self, message: Message) -> AsyncIterator[Message]:
        """Send an order and give its frames up to and including ``done``.

        Raises AgentError when the agent is lost, or when its own bug ended the order.
        """
        identity = message["id"]
        queue = self.subscribe(identity)
        try:
            self.send(message)
            await self._drain()
            while True:
                frame = await queue.get()
                if frame["t"] == "lost":
                    self.lost.result()
                yield self._checked(frame)
                if frame["t"] == "done":
                    return
        finally:
            self.unsubscribe(identity)

    async def close(self) -> None:
        """Stop the agent, wait up to 3 s for its goodbye, then end its processes. Never raises."""
        self._closing = True
        self.send({"t": "stop"})
        try:
            await self._process.end(CLOSE_S)
        finally:
            self._lose("the agent was stopped")
            for task in (*self._tasks, *self._farewells):
                task.cancel()

    def _checked(self, frame: Message) -> Message:
        if frame["t"] == "fault":
            raise AgentError("agent-fault", f"{self.host}: a bug in the agent: {frame['words']}")
        return frame

    async def _drain(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.drain()

    async def _read(self, rest: bytes) -> None:
        words = "its output could not be read"
        try:
            data = rest
            while True:
                for frame in self._reader.feed(data):
                    await self._deliver(frame)
                self._heard_at = self._now()
                data = await self._process.stdout.read(READ_BYTES)
                if not data:
                    break
            status = await self._process.wait()
            words = ended_words(self._process.command, status, self._process.last_words())
        except ValueError as error:
            words = f"it sent something else than frames ({error})"
        finally:
            self._lose(words)

    async def _deliver(self, frame: Message) -> None:
        kind, identity = frame["t"], frame.get("id", 0)
        reply = self._replies.get(identity) if kind not in STREAMED else None
        if reply is not None:
            if not reply.done():
                reply.set_result(frame)
        elif identity in self._streams:
            await self._streams[identity].put(frame)
        elif kind == "fault":
            log.warning("%s: a bug in the agent: %s", self.host, frame["words"])
            if identity is None:
                await self._fail_all(frame)

    async def _fail_all(self, fault: Message) -> None:
        """A bug that no order can be named for may have ended any: nobody waits for ever."""
        for reply in self._replies.values():
            if not reply.done():
                reply.set_result(fault)
        for queue in list(self._streams.values()):
            await queue.put(fault)

    async def _beat(self) -> None:
        while not self.lost.done():
            self.send({"t": "beat"})
            await asyncio.sleep(self._beats.interval_s)
            if self._is_silent():
                self._lose(f"it was silent for {self._beats.silence_s:g} s")
                self._process.signal(signal.SIGKILL)

    def _is_silent(self) -> bool:
        # While a consumer lags we do not read: what we do not hear then is our own doing.
        if any(queue.full() for queue in self._streams.values()):
            self._heard_at = self._now()
        return self._now() - self._heard_at > self._beats.silence_s

    def _lose(self, words: str) -> None:
        if self.lost.done():
            return
        error = AgentError("agent-lost", f"the agent of {self.host} was lost: {words}")
        self.lost.set_exception(error)
        for queue in self._streams.values():
            farewell = asyncio.create_task(queue.put({"t": "lost", "words": str(error)}))
            self._farewells.add(farewell)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

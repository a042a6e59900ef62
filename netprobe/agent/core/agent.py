"""The agent's life: orders in, frames out, and an end that leaves nothing behind."""

import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from ..wire.frames import HELLO_PREFIX, SILENCE_S, FrameReader, Template
from . import loop as looping
from .deadman import DeadMan
from .output import Output
from .pace import Answers, Bucket

READ_BYTES = 256 * 1024
FAREWELL_S = 1.0
FAULT_LINES = 12
# A bug that strikes at every turn of the loop would say so forever.
MAX_STRIKES = 64
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Message = Dict[str, Any]


class Agent:
    """What the handlers and engines share: the loop, the run's key, templates, and the way out."""

    def __init__(
        self,
        loop: looping.Loop,
        input_fd: int,
        output_fd: int,
        orders: "Dict[str, Callable[[Agent, Message], None]]",
    ) -> None:
        self.loop = loop
        self.key = b""
        self.host = 0
        self.templates: Dict[int, Template] = {}
        self.rate = Bucket(None)
        self.answers = Answers()
        self.parts: Dict[str, Any] = {}
        # What must stay open as long as the agent lives.
        self.keep: Tuple[socket.socket, ...] = ()
        self._ended = False
        self._strikes = 0
        self._orders = orders
        self._input_fd = input_fd
        self._reader = FrameReader()
        self._output = Output(loop, output_fd, self._drained, self.end)
        self.dead_man = DeadMan(loop, SILENCE_S, self.end)
        os.set_blocking(input_fd, False)
        loop.watch(input_fd, looping.READ, self._read)

    def send(self, message: Message) -> None:
        """Queue one frame for the coordinator; never blocks."""
        self._output.send(message)

    def greet(self, hello: Message) -> None:
        """Send the hello line, after which both ways speak frames."""
        self._output.write(HELLO_PREFIX + json.dumps(hello).encode("ascii") + b"\n")

    def may_start(self) -> bool:
        """False while so much output waits that new probes must wait too."""
        return not self._output.full

    def part(self, name: str, make: "Callable[[Agent], Any]") -> Any:
        """An engine of this agent, made when it is first needed."""
        if name not in self.parts:
            self.parts[name] = make(self)
        return self.parts[name]

    def serve(self) -> None:
        """Run until the end; a bug of ours is reported and does not end the agent."""
        while not self._ended:
            try:
                self.loop.run()
            except Exception:
                self.fault(None)
                self._strikes += 1
                if self._strikes > MAX_STRIKES:
                    self.end()

    def fault(self, identity: Optional[int]) -> None:
        """Report the exception that is being handled, with the last lines of its traceback."""
        error = sys.exc_info()[1]
        try:
            import traceback  # not at the start: it costs more than the whole of this module

            lines = traceback.format_exc().strip().splitlines()[-FAULT_LINES:]
        except OSError:
            lines = [repr(error)]  # no descriptor is left to import with
        self.send({"t": "fault", "id": identity, "words": "\n".join(lines)})

    def end(self) -> None:
        """Leave the loop after this batch."""
        self._ended = True
        self.loop.stop()

    def close(self) -> None:
        """Close every socket, then say what is still to be said."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:
                    self.fault(None)
        self._output.finish(FAREWELL_S)

    def _read(self, _events: int) -> None:
        try:
            data = os.read(self._input_fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.loop.unwatch(self._input_fd)
            self.end()
            return
        self.dead_man.hear()
        self._dispatch(data)

    def _dispatch(self, data: bytes) -> None:
        try:
            messages = self._reader.feed(data)
        except ValueError:
            # Frames cannot be found again in a stream that lost its place.
            self.fault(None)
            self.end()
            return
        for message in messages:
            try:
                self._orders[message["t"]](self, message)
            except Exception:
                self.fault(message.get("id"))

    def _drained(self) -> None:
        for part in self.parts.values():
            resume = getattr(part, "resume", None)
            if resume is not None:
                resume()


def end_on_signals(agent: Agent) -> None:
    """A signal that asks to end ends the loop, which then closes everything."""
    ours, signals = socket.socketpair()
    ours.setblocking(False)
    signals.setblocking(False)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for number in ENDING_SIGNALS:
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(signals.fileno())
    agent.loop.watch(ours.fileno(), looping.READ, lambda _events: agent.end())
    # The bootstrap's alarm guards the time before the dead man's switch.
    signal.alarm(0)
    agent.keep = (ours, signals)

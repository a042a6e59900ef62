"""The agent's life: hello, orders in, frames out, and an end that leaves nothing behind.

Standard input and output belong to the protocol. Everything else that prints goes to stderr.
"""

import gc
import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from . import loop as looping
from .deadman import DeadMan
from .hello import hello
from .output import Output
from .pace import Answers, Bucket
from .wire import HELLO_PREFIX, SILENCE_S, FrameReader, Template, template_from_json

READ_BYTES = 256 * 1024
FAREWELL_S = 1.0
FAULT_LINES = 12
# A bug that strikes at every turn of the loop would say so forever.
MAX_STRIKES = 64
# Engines hold thousands of tuples for moments; looking at all of them again and again for cycles,
# which nothing here makes, would take a tenth of their time.
GARBAGE_OBJECTS = 50000
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Message = Dict[str, Any]


class Agent:
    """What the handlers and engines share: the loop, the run's key, templates, and the way out."""

    def __init__(self, loop, input_fd, output_fd):
        # type: (looping.Loop, int, int) -> None
        self.loop = loop
        self.key = b""
        self.host = 0
        self.templates = {}  # type: Dict[int, Template]
        self.rate = Bucket(None)
        # How many processes may work on a large order.
        self.jobs = 1
        # How many processes divide the source ports that this host can spare.
        self.sharers = 1
        self.answers = Answers()
        self.parts = {}  # type: Dict[str, Any]
        # What must stay open as long as the agent lives.
        self.keep = ()  # type: Tuple[socket.socket, ...]
        self._ended = False
        self._strikes = 0
        self._input_fd = input_fd
        self._reader = FrameReader()
        self._output = Output(loop, output_fd, self._drained, self.end)
        self.dead_man = DeadMan(loop, SILENCE_S, self.end)
        os.set_blocking(input_fd, False)
        loop.watch(input_fd, looping.READ, self._read)

    def send(self, message):
        # type: (Message) -> None
        """Queue one frame for the coordinator; never blocks."""
        self._output.send(message)

    def greet(self):
        # type: () -> None
        """Send the hello line, after which both ways speak frames."""
        self._output.write(HELLO_PREFIX + json.dumps(hello()).encode("ascii") + b"\n")

    def may_start(self):
        # type: () -> bool
        """False while so much output waits that new probes must wait too."""
        return not self._output.full

    def part(self, name, make):
        # type: (str, Callable[[Agent], Any]) -> Any
        """An engine of this agent, made when it is first needed."""
        if name not in self.parts:
            self.parts[name] = make(self)
        return self.parts[name]

    def serve(self):
        # type: () -> None
        """Run until the end; a bug of ours is reported and does not end the agent."""
        while not self._ended:
            try:
                self.loop.run()
            except Exception:
                self.fault(None)
                self._strikes += 1
                if self._strikes > MAX_STRIKES:
                    self.end()

    def fault(self, identity):
        # type: (Optional[int]) -> None
        """Report the exception that is being handled, with the last lines of its traceback."""
        error = sys.exc_info()[1]
        try:
            import traceback  # not at the start: it costs more than the whole of this module

            lines = traceback.format_exc().strip().splitlines()[-FAULT_LINES:]
        except OSError:
            lines = [repr(error)]  # no descriptor is left to import with
        self.send({"t": "fault", "id": identity, "words": "\n".join(lines)})

    def end(self):
        # type: () -> None
        """Leave the loop after this batch."""
        self._ended = True
        self.loop.stop()

    def close(self):
        # type: () -> None
        """Close every socket, then say what is still to be said."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:
                    self.fault(None)
        self._output.finish(FAREWELL_S)

    def _read(self, _events):
        # type: (int) -> None
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

    def _dispatch(self, data):
        # type: (bytes) -> None
        try:
            messages = self._reader.feed(data)
        except ValueError:
            # Frames cannot be found again in a stream that lost its place.
            self.fault(None)
            self.end()
            return
        for message in messages:
            try:
                ORDERS[message["t"]](self, message)
            except Exception:
                self.fault(message.get("id"))

    def _drained(self):
        # type: () -> None
        for part in self.parts.values():
            resume = getattr(part, "resume", None)
            if resume is not None:
                resume()


def _start(agent, message):
    # type: (Agent, Message) -> None
    agent.key = bytes(bytearray.fromhex(message["key"]))
    agent.host = message["host"]
    agent.dead_man.allow(message["silence_s"])


def _beat(agent, _message):
    # type: (Agent, Message) -> None
    agent.send({"t": "beat"})
    if "workers" in agent.parts:
        agent.parts["workers"].beat(agent.dead_man.silence_s)


def _rate(agent, message):
    # type: (Agent, Message) -> None
    agent.rate.limit(message["per_s"])
    if "workers" in agent.parts:
        agent.parts["workers"].limit(message["per_s"])


def _jobs(agent, message):
    # type: (Agent, Message) -> None
    agent.jobs = min(message["count"], len(os.sched_getaffinity(0)))


def _templates(agent, message):
    # type: (Agent, Message) -> None
    for number, item in message["items"].items():
        agent.templates[int(number)] = template_from_json(item)
    if "workers" in agent.parts:
        agent.parts["workers"].tell(message)


def _probe(agent, message):
    # type: (Agent, Message) -> None
    from .probes import PROBES

    if agent.jobs > 1 and message["proto"] == "tcp":
        from .workers import Workers

        if agent.part("workers", Workers).take(message):
            return
    engine = PROBES[message["proto"]]
    agent.part(message["proto"], engine()).submit(message)


def _cancel(agent, message):
    # type: (Agent, Message) -> None
    from .probes import PROBES

    for name in (*PROBES, "workers"):
        if name in agent.parts:
            agent.parts[name].cancel(message["id"])


def _walk(agent, message):
    # type: (Agent, Message) -> None
    from .walk import Walker

    agent.part("walk", Walker).submit(message)


def _listeners(agent):
    # type: (Agent) -> Any
    from .listen import Listeners

    return agent.part("listeners", Listeners)


def _capture(agent, message):
    # type: (Agent, Message) -> None
    from .capture import Captures

    agent.part("capture", Captures).capture(message)


def _captured(agent, message):
    # type: (Agent, Message) -> None
    from .capture import Captures

    agent.part("capture", Captures).captured(message)


def _resolve(agent, message):
    # type: (Agent, Message) -> None
    from .resolve import Resolver

    agent.part("resolve", Resolver).submit(message)


def _route(agent, message):
    # type: (Agent, Message) -> None
    from .route import routed

    agent.send(routed(message))


def _back(agent, message):
    # type: (Agent, Message) -> None
    from .back import way_back

    agent.send(way_back(message))


def _room(agent, message):
    # type: (Agent, Message) -> None
    from .room import room

    agent.send(room(message))


def _departures(agent, message):
    # type: (Agent, Message) -> None
    from .departures import departures

    departures(agent, message)


def _stream(agent, message):
    # type: (Agent, Message) -> None
    from .stream import Streams

    agent.part("stream", Streams).order(message)


def _nameservers(agent, message):
    # type: (Agent, Message) -> None
    from .nameservers import nameservers

    agent.send(nameservers(message))


def _stop(agent, _message):
    # type: (Agent, Message) -> None
    agent.send({"t": "bye"})
    agent.end()


# Every order that the agent knows. Its part is imported with its first order: an agent that only
# listens need not compile the probes, nor one that only probes the listeners.
ORDERS = {
    "start": _start,
    "beat": _beat,
    "rate": _rate,
    "jobs": _jobs,
    "templates": _templates,
    "listen": lambda agent, message: _listeners(agent).listen(message),
    "close": lambda agent, message: _listeners(agent).close_round(message),
    "seen": lambda agent, message: _listeners(agent).seen(message),
    "held": lambda agent, message: _listeners(agent).held(message),
    "capture": _capture,
    "captured": _captured,
    "probe": _probe,
    "cancel": _cancel,
    "resolve": _resolve,
    "route": _route,
    "back": _back,
    "room": _room,
    "walk": _walk,
    "nameservers": _nameservers,
    **dict.fromkeys(("open", "data", "credit", "await", "info", "shut", "drop"), _stream),
    "departures": _departures,
    "stop": _stop,
}  # type: Dict[str, Callable[[Agent, Message], None]]


def main():
    # type: () -> None
    """Run the agent on standard input and output; it ends the process."""
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()
    output_fd = _take_stdout()
    loop = looping.Loop()
    agent = Agent(loop, 0, output_fd)
    end_on_signals(agent)
    agent.greet()
    agent.serve()
    agent.close()
    # Not sys.exit: a resolver thread may hang in getaddrinfo, and nothing is left to be flushed.
    os._exit(0)


def _take_stdout():
    # type: () -> int
    """Keep standard output for frames; whatever prints from now on prints to stderr."""
    output_fd = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return output_fd


def end_on_signals(agent):
    # type: (Agent) -> None
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

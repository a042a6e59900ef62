"""The agent's life: orders in, frames out, and an end that leaves nothing behind."""

import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, Optional, Set, Tuple

from ..wire.answers import Alive, Bye, Fault, HelloLine
from ..wire.failures import find_shortage
from ..wire.frames import HELLO_PREFIX, SILENCE_S, FrameReader, encode_message
from ..wire.messages import ORDERS
from ..wire.orders import Beat, RateOrder, StartOrder, StopOrder, TemplatesOrder
from ..wire.parts import Standstill
from ..wire.templates import Template, template_of
from . import loop as looping
from .output import FrameQueue
from .pace import Answers, Bucket

READ_BYTES = 256 * 1024
FAREWELL_S = 1.0
FAULT_LINES = 12
# A bug that repeats in every turn of the loop would be reported without end.
MAX_STRIKES = 64
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# A message of wire/messages.py; every one is a record.
Record = Tuple[Any, ...]


class AgentCore:
    """Everything that orders and engines share: the loop, the run's key, templates, the output.

    Tests give it another ``send`` and ``may_start``; a real agent is a ``PipeAgent``.
    """

    def __init__(self, loop: looping.Loop) -> None:
        self.loop = loop
        self.key = b""
        self.host = 0
        self.templates: Dict[int, Template] = {}
        self.rate = Bucket(None)
        self.answers = Answers()
        # Pauses that ended before this were told.
        self.told_until = 0.0
        self.parts: Dict[Any, Any] = {}
        # Where packets are kept: address and port that were asked, and the port that asked.
        self.own_ports: Optional[Set[Tuple[bytes, int, int]]] = None

    def send(self, message: Record) -> None:
        """Queue one frame for the coordinator; never blocks."""
        raise NotImplementedError

    def may_start(self) -> bool:
        """False while so much output waits that new probes must wait too."""
        raise NotImplementedError

    def part(self, make: "Callable[[Any], Any]") -> Any:
        """Give the part that ``make`` makes, a class mostly; it is made when it is first needed."""
        if make not in self.parts:
            self.parts[make] = make(self)
        return self.parts[make]


class DeadMan:
    """The dead man's switch: call ``expired`` once nothing was heard for ``silence_s`` seconds.

    ``hear`` only notes the time, so it costs nothing per frame. What came before a turn of the loop
    is read before the switch looks at that turn's time, so an agent that was itself stopped or at
    work for a while does not end.
    """

    def __init__(self, loop: looping.Loop, silence_s: float, expired: Callable[[], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._heard_at = loop.now()
        self._silence_s = silence_s
        self._timer = loop.call_later(silence_s, self._end_if_silent)

    def allow(self, silence_s: float) -> None:
        """Change how long the silence may be."""
        self._silence_s = silence_s
        self._timer.cancel()
        self._end_if_silent()

    def hear(self) -> None:
        """Note that something arrived from the coordinator."""
        self._heard_at = self._loop.now()

    def _end_if_silent(self) -> None:
        left_s = self._heard_at + self._silence_s - self._loop.turn_at
        if left_s <= 0:
            self._expired()
        else:
            self._timer = self._loop.call_later(left_s, self._end_if_silent)


class ServingAgent(AgentCore):
    """An agent with a life: it serves until its end, and no bug ends it.

    ``carry_out`` is called with the agent and each order.
    """

    def __init__(
        self, loop: looping.Loop, carry_out: "Callable[[ServingAgent, Any], None]"
    ) -> None:
        AgentCore.__init__(self, loop)
        self._carry_out = carry_out
        self._ended = False
        self._strikes = 0
        # Sockets that must stay open as long as the agent lives.
        self.keep: Tuple[socket.socket, ...] = ()

    def serve(self) -> None:
        """Run until the end. A bug in the agent is reported and does not end it."""
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
        self.send(Fault(identity, "\n".join(lines), find_shortage(error)))

    def end(self) -> None:
        """Leave the loop after this batch."""
        self._ended = True
        self.loop.stop()

    def close(self) -> None:
        """Close every socket."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:
                    self.fault(None)

    def dispatch(self, order: Any) -> None:
        """Carry out an order; a bug is its answer."""
        try:
            self._carry_out(self, order)
        except Exception:
            self.fault(getattr(order, "id", None))


class PipeAgent(ServingAgent):
    """An agent that reads orders from one descriptor and writes answers to another."""

    def __init__(
        self,
        loop: looping.Loop,
        input_fd: int,
        output_fd: int,
        carry_out: "Callable[[Any, Any], None]",
    ) -> None:
        ServingAgent.__init__(self, loop, carry_out)
        self.dead_man = DeadMan(loop, SILENCE_S, self.end)
        self._input_fd = input_fd
        self._reader = FrameReader(ORDERS)
        self._output = FrameQueue(loop, output_fd, self._resume_parts, self.end)
        os.set_blocking(input_fd, False)
        loop.watch(input_fd, looping.READ, self._read_input)

    def send(self, message: Record) -> None:
        """Queue one frame for the coordinator; never blocks."""
        self._output.send(message)

    def may_start(self) -> bool:
        """False while so much output waits that new probes must wait too."""
        return not self._output.full

    def greet(self, hello: HelloLine) -> None:
        """Send the hello line, after which both ways speak frames."""
        self._output.write(HELLO_PREFIX + encode_message(hello) + b"\n")

    def close(self) -> None:
        """Close every socket, then send what is still queued."""
        ServingAgent.close(self)
        self._output.finish(FAREWELL_S)

    def _read_input(self, _events: int) -> None:
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
        self._dispatch_orders(data)

    def _dispatch_orders(self, data: bytes) -> None:
        try:
            for order in self._reader.feed(data):
                self.dispatch(order)
        except ValueError:
            # The next frame cannot be found in a stream that lost its place, and an order that
            # cannot be read has no id: the coordinator would wait for its answer without end.
            self.fault(None)
            self.end()

    def _resume_parts(self) -> None:
        for part in self.parts.values():
            resume = getattr(part, "resume", None)
            if resume is not None:
                resume()


def end_on_signals(agent: ServingAgent) -> None:
    """Make the signals that ask a process to end stop the loop, which then closes everything."""
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


def start_run(agent: PipeAgent, order: StartOrder) -> None:
    """Take over the run's key, this agent's index, and how long silence may last."""
    agent.key = order.key
    agent.host = order.host
    agent.dead_man.allow(order.silence_s)


def answer_beat(agent: AgentCore, _order: Beat) -> None:
    """Answer a sign of life with another, and with the pauses since the last one."""
    pauses, now = agent.loop.pauses, agent.loop.now()
    pauses.note(now)
    told = pauses.since(agent.told_until)
    agent.told_until = now
    agent.send(
        Alive(
            [Standstill(int((now - end) * 1000), int((end - start) * 1000)) for start, end in told],
            _read_waited_ms(),
        )
    )


def _read_waited_ms() -> int:
    """Read how long this thread has waited for a processor; 0 where the kernel does not say."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) // 1000000
    except (OSError, ValueError, IndexError):
        return 0


def limit_rate(agent: AgentCore, order: RateOrder) -> None:
    """Start at most so many new probes a second from now on."""
    agent.rate.limit(order.per_s)


def keep_templates(agent: AgentCore, order: TemplatesOrder) -> None:
    """Keep templates for the orders that name them by their numbers."""
    for item in order.items:
        agent.templates[item.number] = template_of(item)


def stop_run(agent: PipeAgent, _order: StopOrder) -> None:
    """Say goodbye and end."""
    agent.send(Bye())
    agent.end()

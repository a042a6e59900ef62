"""Carries out the script of a round, phase by phase, and says to the results what happens."""

import os
import socket
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from ..core import loop as looping
from ..core.agent import ServingAgent, end_on_signals
from ..host.hello import make_hello
from ..main import carry_out
from ..wire.answers import Done, Fault
from ..wire.batch import BatchStart
from ..wire.orders import EchoOrder, ProbeOrder
from .autonomy import Autonomy
from .results import HostClock, RunResults
from .script import Script
from .summary import WRONG_STATUS, RunSummary

# What is still out when the time of a phase is over gets so long to say so.
CANCEL_S = 1.0
# Listeners are opened and dialled, names resolved and stories told within this time.
PHASE_S = 60.0

Callback = Callable[[], None]


class BatchAgent(ServingAgent):
    """An agent whose answers go to results. ``give`` runs orders; an order ends with its last
    answer."""

    def __init__(self, loop: looping.Loop, results: RunResults) -> None:
        ServingAgent.__init__(self, loop, carry_out)
        self.results = results
        self.summary = RunSummary()
        self._open: Dict[int, Any] = {}
        self._answers: Dict[int, List[Any]] = {}
        self._follow: Callable[[Any, List[Any]], Iterable[Any]] = lambda _order, _answers: ()
        self._done: Callback = lambda: None
        self._limit = loop.call_later(0, lambda: None)

    def send(self, message: Any) -> None:
        """Write an answer, and go on where it was the last that was waited for."""
        self.results.add(message)
        if self.results.failure is not None:
            self.end()
        order = self._open.get(getattr(message, "id", None) or 0)
        if order is None:
            self.summary.take(None, message)
            return
        self.summary.take(order, message)
        self._answers[order.id].append(message)
        # Orders that look report as they go, and then say that they are done.
        if isinstance(message, (Done, Fault)) or not isinstance(order, (ProbeOrder, EchoOrder)):
            self._finish_order(order)

    def may_start(self) -> bool:
        """Tell that a file takes everything."""
        return True

    def run(
        self,
        orders: Iterable[Any],
        limit_s: float,
        done: Callback,
        follow: Callable[[Any, List[Any]], Iterable[Any]] = lambda _order, _answers: (),
    ) -> None:
        """Run orders side by side; call ``done`` when the last one has ended, or after the limit.

        ``follow`` gives further orders for each that has ended.
        """
        self._done, self._follow = done, follow
        self._limit = self.loop.call_later(limit_s, self._cancel_orders)
        for order in orders:
            self._give_order(order)
        self.loop.call_later(0, self._end_phase)

    def _give_order(self, order: Any) -> None:
        identity = getattr(order, "id", None)
        if identity is not None:
            self.results.add(order)
            self._open[identity] = order
            self._answers[identity] = []
        self.dispatch(order)

    def _finish_order(self, order: Any) -> None:
        del self._open[order.id]
        for more in self._follow(order, self._answers.pop(order.id)):
            self._give_order(more)
        if not self._open:
            self.loop.call_later(0, self._end_phase)

    def cut_phase(self) -> None:
        """Let the time of what is being done be over now."""
        if self._open:
            self._limit.cancel()
            self._cancel_orders()

    def _end_phase(self) -> None:
        if not self._open:
            self._limit.cancel()
            done, self._done = self._done, lambda: None
            done()

    def _cancel_orders(self) -> None:
        """End what probes still; what says nothing even then is given up."""
        self._follow = lambda _order, _answers: ()
        self.summary.late += len(self._open)
        for identity in list(self._open):
            self._cancel_order(identity)
        self._limit = self.loop.call_later(CANCEL_S, self._drop_orders)

    def _cancel_order(self, identity: int) -> None:
        """End a probe or echo order early, whichever engine has it."""
        for part in self.parts.values():
            cancel = getattr(part, "cancel", None)
            if cancel is not None:
                cancel(identity)

    def _drop_orders(self) -> None:
        self._open.clear()
        self._end_phase()


class RoundRunner:
    """Runs one script; ``wait`` is called with ``listen``, ``go`` or ``tell`` and with what to do
    when the barrier before that phase is passed."""

    def __init__(
        self,
        agent: BatchAgent,
        script: Script,
        wait: "Callable[[str, Callback], None]",
        over: Callback,
    ) -> None:
        self._agent = agent
        self._script = script
        self._wait = wait
        self._over = over
        self._autonomy = Autonomy(script.start, script.phases)
        # Parts of the phase that runs, which are still to come; and that no further phase probes.
        self._waiting: List[List[Any]] = []
        self._is_cut = False

    def cut_window(self) -> None:
        """Let the time for probing be over now; what was seen is still told."""
        self._is_cut = True
        del self._waiting[:]
        self._agent.cut_phase()

    def begin(self) -> None:
        """Say hello, and begin as soon as the barrier says so."""
        agent, start = self._agent, self._script.start
        agent.key, agent.host = start.key, start.host
        self._mark_phase("begin")
        self._wait("listen", self._open_listeners)

    def _open_listeners(self) -> None:
        self._run_all(self._script.orders("listen"), PHASE_S, self._tell_listening)

    def _tell_listening(self) -> None:
        self._mark_phase("listening")
        self._wait("go", self._ask_denied)

    def _ask_denied(self) -> None:
        self._mark_phase("go")
        denied, window_s = self._script.orders("denied"), self._script.start.window_s
        self._agent.summary.note_denied(order for orders in denied for order in orders)
        until = self._agent.loop.now() + window_s
        self._run_all(denied, window_s, lambda: self._ask_others(until))

    def _ask_others(self, until: float) -> None:
        left_s = until - self._agent.loop.now()
        orders = [] if self._is_cut else self._script.orders("go")
        self._run_all(orders, left_s, self._tell_probed, self._follow_up)

    def _follow_up(self, order: Any, answers: List[Any]) -> Iterator[Any]:
        for more in self._autonomy.follow(order, answers):
            if self._autonomy.is_again(more):
                self._agent.summary.note_again(more.id)
            yield more

    def _tell_probed(self) -> None:
        self._mark_phase("probed")
        self._wait("tell", self._tell_seen)

    def _tell_seen(self) -> None:
        self._mark_phase("tell")
        own = list(self._autonomy.list_tells())
        # Listeners close in the script's own orders, and what they saw is known after that, too.
        self._run_all([own, *self._script.orders("tell")], PHASE_S, self._end_round)

    def _end_round(self) -> None:
        self._mark_phase("told")
        self._over()

    def _mark_phase(self, phase: str) -> None:
        if phase == "begin":
            self._agent.results.add(make_hello())
        self._agent.results.mark(self._script.start.round, phase)

    def _run_all(
        self,
        parts: List[List[Any]],
        limit_s: float,
        done: Callback,
        follow: "Callable[[Any, List[Any]], Iterable[Any]]" = lambda _order, _answers: (),
    ) -> None:
        """Run the parts of a phase one after the other, within its limit."""
        ends_at = self._agent.loop.now() + limit_s
        waiting = self._waiting = list(parts)

        def run_next() -> None:
            if not waiting:
                done()
                return
            left_s = max(0.0, ends_at - self._agent.loop.now())
            self._agent.run(waiting.pop(0), left_s, run_next, follow)

        run_next()


class WrongUse(Exception):
    """What was asked for cannot be done; one line for the user."""


def take_lock(start: BatchStart) -> Optional[socket.socket]:
    """Hold the name of this run at this host, in this network stack, as long as the process lives.

    Gives None where another process holds it.
    """
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind("\0netprobe-%s-%d" % (start.run, start.host))
    except OSError:
        held.close()
        return None
    return held


def check_deadline(start: BatchStart, clock: HostClock) -> None:
    """Raise WrongUse where it is too late to begin."""
    ends_at = start.ends_at
    if start.starts_at is not None:
        ends_at = min(ends_at or start.starts_at + start.window_s, start.starts_at + start.window_s)
    now = clock.now()
    if ends_at is not None and now > ends_at:
        raise WrongUse(
            "too late: this run ended at %s, and this host's clock says %s; make a new bundle, or "
            "set the clock" % (format_time(ends_at), format_time(now))
        )


def format_time(time_s: float) -> str:
    """Give a time as people write UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s))


def make_agent(make_results: Callable[[looping.Loop], RunResults]) -> BatchAgent:
    """Make the agent of a run, with what takes its results."""
    loop = looping.Loop()
    agent = BatchAgent(loop, make_results(loop))
    end_on_signals(agent)
    return agent


def say(words: str) -> None:
    """Say something to whoever has started this."""
    print_line("netprobe: %s" % words, 2)


def print_line(words: str, descriptor: int = 1) -> None:
    """Print a line, if anybody reads it; not every host's Python writes more than ASCII."""
    try:
        os.write(descriptor, words.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass


def refuse(error: Exception) -> int:
    """Say why nothing was done; gives the exit status."""
    say(str(error))
    return WRONG_STATUS

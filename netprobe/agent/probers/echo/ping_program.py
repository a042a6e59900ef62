"""The ``ping`` program, for hosts where this process may open no ICMP socket but ping may.

Only its exit status is believed: 0 is an answer, 1 is none. It says nothing about ICMP errors.
"""

import math
import os
import socket
from collections import deque
from typing import Any, Callable, Deque, List, Optional

from ...core.loop import READ
from ...wire import replies
from ...wire.failures import NO_ANSWER, NO_PERMISSION, name_of
from ..datagram.orders import TRIES
from ..outcomes import Kind, kind
from .orders import Sweep

FOLDERS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin")
MOST_AT_ONCE = 32
ANSWERED, NOT_ANSWERED = 0, 1
# RFC 863: a port that is never asked, only routed to.
DISCARD = 9


class Run:
    """One destination of an order and its present ping process."""

    def __init__(self, sweep: Sweep, place: int) -> None:
        self.sweep = sweep
        self.place = place
        self.tries = 0
        self.process: Any = None


class PingProgram:
    """Echo orders by the setuid program, a few processes at a time.

    ``end(order, place, outcome)`` is told what became of a destination.
    """

    def __init__(self, agent: Any, end: Callable[[Sweep, int, Kind], None]) -> None:
        self._agent = agent
        self._tell = end
        self._waiting: Deque[Run] = deque()
        self._running: List[Run] = []

    def submit(self, sweep: Sweep) -> None:
        """Ask every destination by ``ping``."""
        self._waiting.extend(Run(sweep, place) for place in range(len(sweep.addresses)))
        self.resume()

    def cancel(self, sweep: Sweep) -> None:
        """Forget an order, which may be none of ours."""
        self._waiting = deque(run for run in self._waiting if run.sweep is not sweep)
        for run in [run for run in self._running if run.sweep is sweep]:
            self._running.remove(run)
            self._reap(run, True)
        self.resume()

    def close(self) -> None:
        """End every process of ours."""
        self._waiting.clear()
        for run in self._running:
            self._reap(run, True)
        self._running = []

    def resume(self) -> None:
        """Start what may start now."""
        while self._waiting and len(self._running) < MOST_AT_ONCE and self._agent.may_start():
            run = self._waiting.popleft()
            self._running.append(run)
            self._spawn(run)

    def _spawn(self, run: Run) -> None:
        import subprocess  # most hosts never need it, and it is slow to import

        run.tries += 1
        argv = command(run.sweep, run.place)
        if argv is None:
            self._end(run, kind("bind", NO_PERMISSION))
            return
        try:
            # Its stdout ends when it does, which is how the loop hears of that.
            run.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._end(run, kind("bind", NO_PERMISSION))
            return
        self._agent.loop.watch(run.process.stdout.fileno(), READ, lambda events: self._heard(run))

    def _heard(self, run: Run) -> None:
        if os.read(run.process.stdout.fileno(), 4096):
            return
        status = self._reap(run, False)
        if status == ANSWERED:
            self._end(run, kind("answer", answer=replies.ECHO))
        elif status != NOT_ANSWERED:
            self._end(run, self._refusal(run.sweep, run.place))
        elif run.tries < TRIES * run.sweep.looks:
            self._spawn(run)
        else:
            self._end(run, kind("answer", NO_ANSWER))
        self.resume()

    def _refusal(self, sweep: Sweep, place: int) -> Kind:
        """ping could not even send: our own routing table says so to anybody, else it may not."""
        with socket.socket(sweep.target.family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((sweep.addresses[place], DISCARD, *sweep.sockaddr(place)[2:]))
            except OSError as error:
                return kind("send", name_of(error.errno), None, False)
        return kind("bind", NO_PERMISSION)

    def _reap(self, run: Run, kill: bool) -> int:
        process, run.process = run.process, None
        if process is None:
            return NOT_ANSWERED
        self._agent.loop.unwatch(process.stdout.fileno())
        if kill:
            try:
                process.kill()
            except OSError:
                pass  # a setuid program is not ours to kill; it ends by its own -W
        process.stdout.close()
        return int(process.wait())

    def _end(self, run: Run, what: Kind) -> None:
        self._running.remove(run)
        run.sweep.look[run.place] = math.ceil(run.tries / float(TRIES))
        self._tell(run.sweep, run.place, what)


def command(sweep: Sweep, place: int) -> Optional[List[str]]:
    """The argv of one echo request, None where there is no ping program."""
    wait_s = str(math.ceil(sweep.look_ms / 1000.0 / TRIES))
    options = ["-c", "1", "-W", wait_s, "-q"]
    if sweep.target.source is not None:
        options += ["-I", sweep.target.source]
    if sweep.target.family == socket.AF_INET6:
        path = find("ping6")
        if path is None:
            path, options = find("ping"), ["-6", *options]
    else:
        path = find("ping")
    if path is None:
        return None
    return [path, *options, sweep.addresses[place]]


def find(name: str) -> Optional[str]:
    """The program's path, wherever a distribution puts it."""
    for folder in FOLDERS:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return None

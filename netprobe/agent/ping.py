"""The ``ping`` program, for hosts where this process may open no ICMP socket but ping may.

Only its exit status is believed: 0 is an answer, 1 is none. It says nothing about ICMP errors.
"""

import math
import os
import socket
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from . import replies
from .asks import TRIES
from .failures import NO_ANSWER, NO_PERMISSION, name_of
from .loop import READ
from .orders import Order
from .outcomes import Kind, kind

FOLDERS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin")
MOST_AT_ONCE = 32
ANSWERED, NOT_ANSWERED = 0, 1


class Run:
    """One order and its present ping process."""

    def __init__(self, order):
        # type: (Order) -> None
        self.order = order
        self.tries = 0
        self.process = None  # type: Any


class PingProgram:
    """Echo orders by the setuid program, a few processes at a time."""

    def __init__(self, agent):
        # type: (Any) -> None
        self._agent = agent
        self._waiting = deque()  # type: Deque[Run]
        self._running = {}  # type: Dict[int, Run]

    def submit(self, order):
        # type: (Order) -> None
        """Ask by ``ping``; the order's outcome and ``done`` follow."""
        self._waiting.append(Run(order))
        self._start()

    def cancel(self, order_id):
        # type: (int) -> bool
        """End an order early; whether it was one of ours."""
        for run in list(self._waiting):
            if run.order.id == order_id:
                self._waiting.remove(run)
                self._done(run, True)
                return True
        running = self._running.pop(order_id, None)
        if running is None:
            return False
        self._reap(running, True)
        self._done(running, True)
        return True

    def close(self):
        # type: () -> None
        """End every process of ours."""
        self._waiting.clear()
        for run in self._running.values():
            self._reap(run, True)
        self._running = {}

    def _start(self):
        # type: () -> None
        while self._waiting and len(self._running) < MOST_AT_ONCE and self._agent.may_start():
            run = self._waiting.popleft()
            self._running[run.order.id] = run
            self._spawn(run)

    def _spawn(self, run):
        # type: (Run) -> None
        import subprocess  # most hosts never need it, and it is slow to import

        run.tries += 1
        argv = command(run.order)
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

    def _heard(self, run):
        # type: (Run) -> None
        if os.read(run.process.stdout.fileno(), 4096):
            return
        status = self._reap(run, False)
        if status == ANSWERED:
            self._end(run, kind("answer", answer=replies.ECHO))
        elif status != NOT_ANSWERED:
            self._end(run, self._refusal(run.order))
        elif run.tries < TRIES * run.order.looks:
            self._spawn(run)
        else:
            self._end(run, kind("answer", NO_ANSWER))

    def _refusal(self, order):
        # type: (Order) -> Kind
        """ping could not even send: our own routing table says so to anybody, else it may not."""
        with socket.socket(order.target.family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect(order.target.sockaddr(9))
            except OSError as error:
                return kind("send", name_of(error.errno), None, False)
        return kind("bind", NO_PERMISSION)

    def _reap(self, run, kill):
        # type: (Run, bool) -> int
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

    def _end(self, run, what):
        # type: (Run, Kind) -> None
        self._running.pop(run.order.id, None)
        attempts = math.ceil(run.tries / float(TRIES))
        run.order.outcomes.add(0, what, None, attempts)
        self._done(run, False)

    def _done(self, run, cancelled):
        # type: (Run, bool) -> None
        run.order.outcomes.flush()
        self._agent.send({"t": "done", "id": run.order.id, "cancelled": cancelled})
        self._start()


def command(order):
    # type: (Order) -> Optional[List[str]]
    """The argv of one echo request, None where there is no ping program."""
    wait_s = str(math.ceil(order.look_s / TRIES))
    options = ["-c", "1", "-W", wait_s, "-q"]
    if order.target.source is not None:
        options += ["-I", order.target.source]
    if order.target.family == socket.AF_INET6:
        path = find("ping6")
        if path is None:
            path, options = find("ping"), ["-6", *options]
    else:
        path = find("ping")
    if path is None:
        return None
    return [path, *options, order.target.address]


def find(name):
    # type: (str) -> Optional[str]
    """The program's path, wherever a distribution puts it."""
    for folder in FOLDERS:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return None

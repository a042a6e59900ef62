"""Large TCP orders over several processes (``--jobs``): each worker is this agent, forked.

A worker speaks the wire's own frames over a socket pair with its agent as coordinator, so what
ends an agent ends it too: the end of its input, silence, a signal. What a worker that died still
owed is given to a new one. Listeners, witnesses and all small orders stay with the agent itself.
"""

import os
import signal
import socket
import sys
import time
from typing import Any, Dict, List, Optional, Set

from ..wire.frames import FrameReader
from . import loop as looping
from .output import Output

# Fewer ports are done before a worker would have them.
LARGE = 1024
MOST_DEATHS = 3
READ_BYTES = 256 * 1024
END_S = 1.0
END_STEP_S = 0.005

Message = Dict[str, Any]


class Share:
    """The ports of an order that one worker has, and which of them it still owes."""

    def __init__(self, message: Message) -> None:
        self.message = message
        ranges = [ports for block in message["blocks"] for ports in block["ports"]]
        self._base = min(first for first, _ in ranges)
        self._owed = bytearray(max(last for _, last in ranges) - self._base + 1)
        for first, last in ranges:
            self._owed[first - self._base : last - self._base + 1] = b"\1" * (last - first + 1)

    def note(self, runs: List[List[int]]) -> None:
        """These ports have their outcome."""
        for first, last, _, _, _ in runs:
            self._owed[first - self._base : last - self._base + 1] = bytes(last - first + 1)

    def rest(self) -> Message:
        """The order for what is still owed."""
        blocks = []
        for block in self.message["blocks"]:
            ports = [pair for first, last in block["ports"] for pair in self._owed_of(first, last)]
            if ports:
                blocks.append(dict(block, ports=ports))
        return dict(self.message, blocks=blocks)

    def _owed_of(self, first: int, last: int) -> List[List[int]]:
        pairs: List[List[int]] = []
        at, end = first - self._base, last - self._base + 1
        while True:
            start = self._owed.find(1, at, end)
            if start < 0:
                return pairs
            at = self._owed.find(0, start, end)
            at = end if at < 0 else at
            pairs.append([self._base + start, self._base + at - 1])


class Worker:
    """One forked agent, seen from its agent. ``crew`` takes its frames, and its death."""

    def __init__(self, agent: Any, crew: Any) -> None:
        self._agent = agent
        self._crew = crew
        self._reader = FrameReader()
        self._watched = False
        self.shares: Dict[int, Share] = {}
        self.heard_at = agent.loop.now()
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            _work(agent, theirs.detach())
        theirs.close()
        self._in = ours.detach()
        self._out = os.dup(self._in)
        self._output = Output(agent.loop, self._out, _nothing, _nothing)
        self.watch()

    def send(self, message: Message) -> None:
        """One frame to the worker."""
        self._output.send(message)

    def give(self, message: Message) -> None:
        """Let it probe."""
        self.shares[message["id"]] = Share(message)
        self.send(message)

    def watch(self) -> None:
        """Read what it says, from now on."""
        if not self._watched:
            self._watched = True
            self._agent.loop.watch(self._in, looping.READ, lambda _events: self._read())

    def is_silent(self, silence_s: float) -> bool:
        """Whether it has said nothing for so long, though it was listened to."""
        return self._watched and self._agent.loop.now() - self.heard_at > silence_s

    def close(self) -> None:
        """The end of its input, which ends it."""
        if self._in < 0:
            return
        self._unwatch()
        self._output.finish(0.0)
        os.close(self._in)
        os.close(self._out)
        self._in = self._out = -1

    def reap(self, until: float) -> None:
        """Wait until it is gone; kill it once ``until`` (of time.monotonic) has passed."""
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return
            time.sleep(END_STEP_S)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._agent.loop.unwatch(self._in)

    def _read(self) -> None:
        if not self._agent.may_start():
            # The coordinator does not keep up: then this worker's own queue fills, and it waits.
            self._unwatch()
            return
        try:
            data = os.read(self._in, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._crew.died(self)
            return
        self.heard_at = self._agent.loop.now()
        for frame in self._reader.feed(data):
            self._crew.heard(self, frame)


class Workers:
    """The workers of an agent, and which orders they share."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._workers: List[Worker] = []
        self._cancelled: Set[int] = set()
        self._deaths = 0
        self._per_s: Optional[float] = None

    def take(self, message: Message) -> bool:
        """Share an order out among the workers; False where that brings nothing."""
        count = sum(
            last - first + 1 for block in message["blocks"] for first, last in block["ports"]
        )
        if count < LARGE or self._agent.rate.is_limited or _has_threads():
            return False
        while len(self._workers) < self._agent.jobs:
            self._workers.append(Worker(self._agent, self))
        for worker, blocks in zip(self._workers, split(message["blocks"], count, self._agent.jobs)):
            worker.give(dict(message, blocks=blocks))
        return True

    def tell(self, message: Message) -> None:
        """What every worker must know, too."""
        for worker in self._workers:
            worker.send(message)

    def beat(self, silence_s: float) -> None:
        """Keep the workers alive; one that does not answer any more is as good as dead."""
        self.tell({"t": "beat"})
        for worker in list(self._workers):
            if worker.is_silent(silence_s):
                os.kill(worker.pid, signal.SIGKILL)

    def limit(self, per_s: Optional[float]) -> None:
        """Probes per second of this agent and its workers together, as long as these are busy."""
        self._per_s = per_s
        busy = any(worker.shares for worker in self._workers)
        share = per_s / (1 + len(self._workers)) if per_s and busy else per_s
        self._agent.rate.limit(share)
        self.tell({"t": "rate", "per_s": share})

    def cancel(self, order_id: int) -> None:
        """End an order early, wherever it is."""
        for worker in self._workers:
            if order_id in worker.shares:
                worker.send({"t": "cancel", "id": order_id})

    def resume(self) -> None:
        """The agent's output has drained."""
        for worker in self._workers:
            worker.watch()

    def close(self) -> None:
        """End every worker and wait until it is gone."""
        for worker in self._workers:
            worker.close()
        until = time.monotonic() + END_S
        for worker in self._workers:
            worker.reap(until)
        self._workers = []

    def heard(self, worker: Worker, frame: Message) -> None:
        """A worker has something to say."""
        share = worker.shares.get(frame.get("id", 0))
        if frame["t"] == "outcomes" and share is not None:
            share.note(frame["runs"])
            self._agent.send(frame)
        elif frame["t"] == "done" and share is not None:
            if frame["cancelled"]:
                self._cancelled.add(frame["id"])
            self._done(worker, frame["id"])
        elif frame["t"] == "fault":
            self._agent.send(frame)

    def died(self, worker: Worker) -> None:
        """A worker is gone. What it owes goes to a new one, but not again and again."""
        self._workers.remove(worker)
        worker.close()
        worker.reap(0.0)
        self._deaths += 1
        owed = [share.rest() for share in worker.shares.values()]
        if self._deaths > MOST_DEATHS:
            for message in owed:
                words = "the workers of --jobs die again and again"
                self._agent.send({"t": "fault", "id": message["id"], "words": words})
        elif owed:
            heir = Worker(self._agent, self)
            self._workers.append(heir)
            for message in owed:
                heir.give(message) if message["blocks"] else self._done(worker, message["id"])

    def _done(self, worker: Worker, order_id: int) -> None:
        worker.shares.pop(order_id, None)
        if any(order_id in each.shares for each in self._workers):
            return
        cancelled = order_id in self._cancelled
        self._cancelled.discard(order_id)
        self._agent.send({"t": "done", "id": order_id, "cancelled": cancelled})
        if self._per_s:
            self.limit(self._per_s)


def split(blocks: List[Message], count: int, pieces: int) -> List[List[Message]]:
    """The blocks of ``count`` ports cut into so many parts of neighbouring ports."""
    parts: List[List[Message]] = []
    taken = 0
    for block in blocks:
        for first, last in block["ports"]:
            at = first
            while at <= last:
                number = taken * pieces // count
                # The part with this number ends before the port that begins the next one.
                room = -(-(number + 1) * count // pieces) - taken
                end = min(last, at + room - 1)
                if len(parts) <= number:
                    parts.append([])
                if not parts[number] or parts[number][-1]["of"] is not block:
                    parts[number].append({"of": block, "ports": []})
                parts[number][-1]["ports"].append([at, end])
                taken += end - at + 1
                at = end + 1
    return [[dict(piece["of"], ports=piece["ports"]) for piece in part] for part in parts]


def _nothing() -> None:
    """A worker's end is seen where it is read."""


def _has_threads() -> bool:
    """Whether other threads run (names are being resolved): a fork would copy their locks."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def _work(agent: Any, channel: int) -> None:
    """The worker's whole life; it does not return, so nothing of the agent is ever collected."""
    try:
        signal.set_wakeup_fd(-1)
        _close_all_but(2, channel)
        from ..main import ORDERS
        from .agent import Agent, end_on_signals

        worker = Agent(looping.Loop(), channel, os.dup(channel), ORDERS)
        worker.key, worker.host = agent.key, agent.host
        worker.sharers = agent.jobs
        worker.templates, worker.answers = agent.templates, agent.answers
        worker.dead_man.allow(agent.dead_man.silence_s)
        end_on_signals(worker)
        worker.serve()
        worker.close()
    finally:
        os._exit(0)


def _close_all_but(*kept: int) -> None:
    """Let go of the agent's sockets, listeners and pipes: only the agent itself holds them."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor that listed them

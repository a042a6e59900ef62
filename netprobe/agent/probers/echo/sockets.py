"""The sockets that echo orders share: one a family, interface and source address.

The ``ping`` program, for hosts where this process may open no ICMP socket but ping may.

Only its exit status is believed: 0 is an answer, 1 is none. It says nothing about ICMP errors.
"""

import math
import os
import socket
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

from ...core.agent import AgentCore
from ...core.loop import READ, Loop
from ...host.hello import find_program
from ...net.icmp import open_echo
from ...wire import replies
from ...wire.failures import NO_ANSWER, NO_PERMISSION, name_of
from ...wire.parts import OutcomeKind
from ..datagram.orders import TRIES, Channel
from ..outcomes import kind
from .orders import RunningEchoOrder

# A raw socket takes the kernel milliseconds to close: orders that follow each other share one.
IDLE_S = 1.0
SEQUENCE_NUMBERS = 1 << 16

ChannelKey = Tuple[int, Optional[str], int, bool]

MOST_AT_ONCE = 32
ANSWERED, NOT_ANSWERED = 0, 1
# RFC 863: a port that is never asked, only routed to.
DISCARD = 9


class SentRequest(NamedTuple):
    """A request that went: whose, what its reply must carry, and when."""

    order: RunningEchoOrder
    port: int
    payload: bytes
    sent_at: float


class EchoChannel(Channel):
    """A socket of several orders; it knows its packets by their sequence numbers."""

    def __init__(
        self,
        loop: Loop,
        order: RunningEchoOrder,
        on_ready: Callable[[Channel], None],
        key: ChannelKey,
    ) -> None:
        opened = open_echo(order.target)
        self.kind, self.number = opened.kind, opened.number
        self.key = key
        self.users = 0
        self._sent: Dict[int, SentRequest] = {}
        self._next = 0
        Channel.__init__(self, loop, opened.sock, order.size is not None, on_ready)

    def note_request(self, request: SentRequest) -> int:
        """Give the sequence number of a request that is about to go."""
        sequence = self._next
        self._sent[sequence] = request
        self._next = (sequence + 1) % SEQUENCE_NUMBERS
        return sequence

    def find_request(self, sequence: Optional[int]) -> Optional[SentRequest]:
        """Find the latest request with this number; None where none had it."""
        return self._sent.get(sequence)  # type: ignore[arg-type]  # None has none


class EchoSockets:
    """Opens them when they are needed, and closes them when nobody has needed them for a while."""

    def __init__(self, loop: Loop, on_ready: Callable[[Channel], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._channels: Dict[ChannelKey, EchoChannel] = {}

    def share(self, order: RunningEchoOrder) -> EchoChannel:
        """Give the socket that an order is to use. Raises OSError."""
        target = order.target
        key = (target.family, target.source, target.scope, order.size is not None)
        channel = self._channels.get(key)
        if channel is None:
            channel = EchoChannel(self._loop, order, self._on_ready, key)
            self._channels[key] = channel
        channel.users += 1
        return channel

    def release(self, channel: EchoChannel) -> None:
        """Note that an order needs it no more."""
        channel.users -= 1
        if not channel.users:
            self._loop.call_later(IDLE_S, lambda: self._close_idle(channel))

    def close(self) -> None:
        """Close all."""
        for channel in list(self._channels.values()):
            self._close_channel(channel)

    def _close_idle(self, channel: EchoChannel) -> None:
        if channel.is_open and not channel.users:
            self._close_channel(channel)

    def _close_channel(self, channel: EchoChannel) -> None:
        del self._channels[channel.key]
        channel.close()


class PingRun:
    """One destination of an order and its present ping process."""

    def __init__(self, order: Any, port: int) -> None:
        self.order = order
        self.port = port
        self.tries = 0
        self.process: Any = None


class PingProgram:
    """Echo orders by the setuid program, a few processes at a time.

    ``report(order, port, outcome, None, looks)`` is told what became of a destination.
    """

    def __init__(
        self, agent: AgentCore, report: Callable[[Any, int, OutcomeKind, None, int], None]
    ) -> None:
        self._agent = agent
        self._report = report
        self._waiting: Deque[PingRun] = deque()
        self._running: List[PingRun] = []

    def submit(self, order: Any) -> None:
        """Ask every destination of an order by ``ping``."""
        self._waiting.extend(PingRun(order, port) for _, port, _ in order.take(order.pending))
        self.resume()

    def cancel(self, order: Any) -> None:
        """Forget an order, whether or not ``ping`` asks for it."""
        self._waiting = deque(run for run in self._waiting if run.order is not order)
        for run in [run for run in self._running if run.order is order]:
            self._running.remove(run)
            self._reap_process(run, True)
        self.resume()

    def close(self) -> None:
        """End every process of ours."""
        self._waiting.clear()
        for run in self._running:
            self._reap_process(run, True)
        self._running = []

    def resume(self) -> None:
        """Start what may start now."""
        while self._waiting and len(self._running) < MOST_AT_ONCE and self._agent.may_start():
            run = self._waiting.popleft()
            self._running.append(run)
            self._spawn_process(run)

    def _spawn_process(self, run: PingRun) -> None:
        import subprocess  # most hosts never need it, and it is slow to import

        run.tries += 1
        argv = ping_command(run.order, run.port)
        if argv is None:
            self._end_run(run, kind("bind", NO_PERMISSION))
            return
        try:
            # Its stdout ends when it does, which is how the loop hears of that.
            run.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._end_run(run, kind("bind", NO_PERMISSION))
            return
        self._agent.loop.watch(
            run.process.stdout.fileno(), READ, lambda _events: self._read_status(run)
        )

    def _read_status(self, run: PingRun) -> None:
        if os.read(run.process.stdout.fileno(), 4096):
            return
        status = self._reap_process(run, False)
        if status == ANSWERED:
            self._end_run(run, kind("answer", answer=replies.ECHO))
        elif status != NOT_ANSWERED:
            self._end_run(run, self._find_refusal(run))
        elif run.tries < TRIES * run.order.looks:
            self._spawn_process(run)
        else:
            self._end_run(run, kind("answer", NO_ANSWER))
        self.resume()

    def _find_refusal(self, run: PingRun) -> OutcomeKind:
        """ping could not even send: our own routing table says so to anybody, else it may not."""
        address, _, *rest = run.order.sockaddr_of(run.port)
        with socket.socket(run.order.target.family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((address, DISCARD, *rest))
            except OSError as error:
                return kind("send", name_of(error.errno), None, False)
        return kind("bind", NO_PERMISSION)

    def _reap_process(self, run: PingRun, kill: bool) -> int:
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

    def _end_run(self, run: PingRun, what: OutcomeKind) -> None:
        self._running.remove(run)
        self._report(run.order, run.port, what, None, math.ceil(run.tries / float(TRIES)))


def ping_command(order: Any, port: int) -> Optional[List[str]]:
    """Give the argv of one echo request, None where there is no ping program."""
    wait_s = str(math.ceil(order.look_s / TRIES))
    options = ["-c", "1", "-W", wait_s, "-q"]
    if order.target.source is not None:
        options += ["-I", order.target.source]
    path = find_program("ping6") if order.target.family == socket.AF_INET6 else None
    if path is None:
        path = find_program("ping")
        if order.target.family == socket.AF_INET6:
            options = ["-6", *options]
    if path is None:
        path, options = find_program("ping"), ["-6", *options]
    else:
        path = find_program("ping")
    if path is None:
        return None
    return [path, *options, order.address_of(port)]

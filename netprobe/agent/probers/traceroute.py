"""Traceroute by the real protocol and port: packets with TTL 1, 2, 3 ... show which routers answer.

TCP and UDP need no privilege: time-exceeded errors come through the error queue. Every router keeps
a bucket of errors for each address, so walks start at a pace, and their hops are asked in parallel
(docs/network-facts.md, sections 4 and 5). Where the first hop was the only one that answered a
walk, other walks of the same probe by the same gateway know it, and spare it.
"""

import socket
from collections import deque
from typing import Deque, Dict, List, Optional, Set, Tuple

from ..core.agent import AgentCore
from ..core.loop import READ, WRITE, Timer
from ..core.pace import LEAST_GRACE_S, ROUND_TRIPS, Bucket
from ..host.route import look_up_route
from ..net.errqueue import ORIGIN_ICMP, ORIGIN_ICMP6, QueuedError, drain
from ..net.icmp import EchoSocket, echo_request, open_echo, quoted_sequence, read_echo_reply
from ..net.sockets import open_probe, set_ttl, target_of
from ..wire.answers import Walked
from ..wire.failures import ENDED_AFTER_OPEN, IN_PROGRESS, NO_PERMISSION, REFUSED, name_of
from ..wire.host_messages import RouteOrder
from ..wire.orders import WalkOrder
from ..wire.parts import WalkHop
from ..wire.templates import pack_nonce

# A Linux router sends 6 errors at once, then one a second; one is left for another traceroute.
WALKS_AT_ONCE = 5
WALK_EVERY_S = 1.02
WAVE = 8
# Go on behind a wave only if one of its last TTLs was answered; else the rest is silent too.
WAVE_END = 4
# Every hop is asked twice. Where the destination's own answers told a round trip, this long is
# enough; else as long as the kernel waits before it repeats a SYN, and as long again.
AGAIN_S = 1.0
WAVE_S = 2.2
TIME_EXCEEDED = frozenset(((ORIGIN_ICMP, 11), (ORIGIN_ICMP6, 3)))
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


# Gateway, protocol and port: walks that are alike up to their first hop.
Likeness = Tuple[str, str, int]


class Hop:
    """One TTL of a walk: its socket while it waits, its answer when it came."""

    def __init__(self, ttl: int) -> None:
        self.ttl = ttl
        self.sock: Optional[socket.socket] = None
        self.echo: Optional[EchoSocket] = None
        self.address: Optional[str] = None
        self.reached = False
        self.refused = False
        self.tries = 0


class Walk:
    """One walk as it is ordered and as far as it has come."""

    def __init__(self, agent: AgentCore, order: WalkOrder) -> None:
        self.id = order.id
        self.proto = order.proto
        self.target = target_of(order.dst, order.src)
        self.port = order.port
        self.most = order.max_ttl
        self.template = agent.templates[order.template] if order.template else None
        self.hops: List[Hop] = []
        self.wave: List[Hop] = []
        self.failure: Optional[str] = None
        self.timers: List[Timer] = []
        self.likeness: Optional[Likeness] = None
        self.again_s, self.wave_s = AGAIN_S, WAVE_S
        if agent.answers.knows(order.dst):
            self.again_s = max(LEAST_GRACE_S, ROUND_TRIPS * agent.answers.rtt_s(order.dst))
            self.again_s = min(self.again_s, AGAIN_S)
            self.wave_s = min(2 * self.again_s, WAVE_S)

    def know_first(self, address: str) -> None:
        """Take the first hop from another walk."""
        first = Hop(1)
        first.address, first.tries = address, 1
        self.hops = [first]

    def only_hop(self) -> Optional[str]:
        """Give the first hop where no other one answered."""
        heard = [hop for hop in self.hops if hop.address is not None]
        alone = len(heard) == 1 and heard[0].ttl == 1 and self.end() is None
        return heard[0].address if alone else None

    def end(self) -> Optional[Hop]:
        """Find the nearest TTL that reached the destination or was refused; no hop is behind it."""
        for hop in self.hops:
            if hop.reached or hop.refused:
                return hop
        return None


class Walker:
    """All TTL walks of the agent."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._loop = agent.loop
        self._pacer = Bucket(1 / WALK_EVERY_S, WALKS_AT_ONCE)
        self._waiting: Deque[Walk] = deque()
        self._walks: Dict[int, Walk] = {}
        self._timer: Optional[Timer] = None
        # First hops behind which nobody answered; and walks whose first hop others wait for.
        self._first_hops: Dict[Likeness, str] = {}
        self._leading: Set[Likeness] = set()
        self._led: Set[Likeness] = set()

    def submit(self, order: WalkOrder) -> None:
        """Start a walk when its turn comes; ``Walked`` follows."""
        walk = Walk(self._agent, order)
        gateway = _find_gateway(order)
        walk.likeness = (gateway, order.proto, order.port) if gateway else None
        self._waiting.append(walk)
        self._start_walks()

    def close(self) -> None:
        """Close every socket."""
        self._waiting.clear()
        for walk in self._walks.values():
            self._close_wave(walk)
        self._walks = {}
        if self._timer is not None:
            self._timer.cancel()

    def _start_walks(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for walk in waiting:
            if not self._start_walk(walk):
                self._waiting.append(walk)
        if any(walk.likeness not in self._leading for walk in self._waiting):
            if self._timer is not None:
                self._timer.cancel()
            wait_s = self._pacer.wait_s(self._loop.now()) + 0.01
            self._timer = self._loop.call_later(wait_s, self._start_walks)

    def _start_walk(self, walk: Walk) -> bool:
        """Start a walk, unless it has to wait: for its turn, or for one that is alike."""
        alike = walk.likeness
        if alike is not None and alike in self._first_hops:
            walk.know_first(self._first_hops[alike])
        elif alike in self._leading or not self._pacer.take(1, self._loop.now()):
            return False
        elif alike is not None and alike not in self._led:
            self._leading.add(alike)
            self._led.add(alike)
        self._walks[walk.id] = walk
        self._send_wave(walk)
        return True

    def _send_wave(self, walk: Walk) -> None:
        """Ask the next hops, all at once: each is another router with a bucket of its own."""
        first = len(walk.hops) + 1
        walk.wave = [Hop(ttl) for ttl in range(first, min(walk.most, first + WAVE - 1) + 1)]
        wave = walk.wave
        walk.hops += wave
        walk.timers = [
            self._loop.call_later(walk.again_s, lambda: self._ask_again(walk)),
            self._loop.call_later(walk.wave_s, lambda: self._end_wave_late(walk, wave)),
        ]
        for hop in walk.wave:
            try:
                self._open_hop(walk, hop)
                self._ask_hop(walk, hop)
            except OSError as error:
                self._close_hop(hop)
                # An echo walk without even its first socket may not have one.
                unopened = walk.hops[0].sock is None and not walk.hops[0].tries
                no_echo = walk.proto == "icmp" and unopened
                walk.failure = NO_PERMISSION if no_echo else name_of(error.errno)
                break
        if walk.failure is not None:
            self._finish_walk(walk)
        else:
            self._check_walk(walk)

    def _open_hop(self, walk: Walk, hop: Hop) -> None:
        if walk.proto == "icmp":
            hop.echo = open_echo(walk.target)
            hop.sock = hop.echo.sock
        else:
            hop.sock = open_probe(walk.target, KINDS[walk.proto])
        set_ttl(hop.sock, hop.ttl)
        events = READ | WRITE if walk.proto == "tcp" else READ
        self._loop.watch(hop.sock.fileno(), events, lambda _: self._hear_hop(walk, hop))

    def _ask_hop(self, walk: Walk, hop: Hop) -> None:
        assert hop.sock is not None
        hop.tries += 1
        if walk.proto == "tcp":
            code = hop.sock.connect_ex(walk.target.sockaddr(walk.port))
            if code and code not in IN_PROGRESS:
                raise OSError(code, "connect")
            return
        nonce = pack_nonce(walk.id & 0xFFFFFFFF, walk.port, _make_sequence(hop))
        if hop.echo is not None:
            packet = echo_request(walk.target.family, hop.echo.number, _make_sequence(hop), nonce)
            hop.sock.sendto(packet, walk.target.sockaddr(0))
            return
        request = b"" if walk.template is None else walk.template.fill(self._agent.key, nonce)
        hop.sock.sendto(request, walk.target.sockaddr(walk.port))

    def _ask_again(self, walk: Walk) -> None:
        for hop in walk.wave:
            if hop.sock is not None:
                try:
                    if walk.proto == "tcp":
                        if walk.again_s >= AGAIN_S:
                            continue  # the kernel has just sent its second SYN
                        self._close_hop(hop)
                        self._open_hop(walk, hop)
                    self._ask_hop(walk, hop)
                except OSError:
                    pass  # an ICMP error that send() returned; it is in the error queue too
                self._hear_hop(walk, hop)

    # Hearing

    def _hear_hop(self, walk: Walk, hop: Hop) -> None:
        if hop.sock is None:
            return
        for error in drain(hop.sock):
            if self._is_ours(walk, hop, error) and hop.address is None:
                hop.address = error.offender
                hop.reached = error.offender == walk.target.address
                hop.refused = (error.origin, error.type) not in TIME_EXCEEDED
        if hop.address is None:
            self._hear_answer(walk, hop)
        if hop.address is not None:
            self._close_hop(hop)
            self._check_walk(walk)

    def _is_ours(self, walk: Walk, hop: Hop, error: QueuedError) -> bool:
        if not error.is_icmp or error.to != walk.target.address:
            return False
        if hop.echo is not None:
            sequence = quoted_sequence(error.data)
            return sequence is not None and sequence >> 8 == hop.ttl
        return error.port == walk.port

    def _hear_answer(self, walk: Walk, hop: Hop) -> None:
        """Whether the destination itself answered: a handshake, a reset, a datagram, an echo."""
        assert hop.sock is not None
        if walk.proto == "tcp":
            self._hear_handshake(walk, hop, hop.sock)
            return
        try:
            data, sender = hop.sock.recvfrom(65535)
        except OSError:
            return
        if sender[0].partition("%")[0] != walk.target.address:
            return
        if hop.echo is not None:
            reply = read_echo_reply(hop.sock.family, hop.echo.kind, data)
            wanted = pack_nonce(walk.id & 0xFFFFFFFF, walk.port, _make_sequence(hop))[:7]
            if reply is None or reply[1][:7] != wanted:
                return
        elif sender[1] != walk.port:
            return
        hop.address, hop.reached = walk.target.address, True

    def _hear_handshake(self, walk: Walk, hop: Hop, sock: socket.socket) -> None:
        code = sock.connect_ex(walk.target.sockaddr(walk.port))
        if code == 0 or code in ENDED_AFTER_OPEN or name_of(code) == REFUSED:
            hop.address, hop.reached = walk.target.address, True
        elif code not in IN_PROGRESS:
            # Failed without an ICMP error to read (before Linux 5.8): nobody to name.
            self._close_hop(hop)
            self._check_walk(walk)

    # Ending

    def _check_walk(self, walk: Walk) -> None:
        """End the walk as soon as nothing that is still out can tell more."""
        if walk.id not in self._walks:
            return
        end = walk.end()
        most = end.ttl if end is not None else walk.hops[-1].ttl
        if any(hop.sock is not None for hop in walk.wave if hop.ttl <= most):
            return
        self._end_wave(walk)

    def _end_wave_late(self, walk: Walk, wave: List[Hop]) -> None:
        for hop in wave:
            # Ask once more: this process may not have run for a while.
            self._hear_hop(walk, hop)
        if walk.wave is wave:
            self._end_wave(walk)

    def _end_wave(self, walk: Walk) -> None:
        """Go on behind the last router that answered, or end the walk."""
        if self._walks.get(walk.id) is not walk:
            return
        self._close_wave(walk)
        heard = any(hop.address is not None for hop in walk.wave[-WAVE_END:])
        if heard and walk.end() is None and len(walk.hops) < walk.most:
            self._send_wave(walk)
        else:
            self._finish_walk(walk)

    def _finish_walk(self, walk: Walk) -> None:
        self._close_wave(walk)
        self._walks.pop(walk.id, None)
        if walk.likeness is not None:
            self._leading.discard(walk.likeness)
            only = walk.only_hop()
            if only is not None:
                self._first_hops[walk.likeness] = only
        end = walk.end()
        most = end.ttl if end is not None else len(walk.hops)
        hops = [WalkHop(hop.ttl, hop.address) for hop in walk.hops if hop.ttl <= most]
        reached = end is not None and end.reached
        self._agent.send(Walked(walk.id, hops, reached, walk.failure))
        self._start_walks()

    def _close_wave(self, walk: Walk) -> None:
        for timer in walk.timers:
            timer.cancel()
        walk.timers = []
        for hop in walk.wave:
            self._close_hop(hop)

    def _close_hop(self, hop: Hop) -> None:
        if hop.sock is not None:
            self._loop.unwatch(hop.sock.fileno())
            hop.sock.close()
            hop.sock = None


def _find_gateway(order: WalkOrder) -> Optional[str]:
    try:
        return look_up_route(RouteOrder(0, order.dst, order.src)).gateway
    except OSError:
        return None  # the walk itself says why


def _make_sequence(hop: Hop) -> int:
    return hop.ttl << 8 | hop.tries

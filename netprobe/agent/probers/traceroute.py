"""Traceroute by the real protocol and port: packets with TTL 1, 2, 3 ... show which routers answer.

TCP and UDP need no privilege: time-exceeded errors come through the error queue. What is asked, and
when, is in ``courses`` (docs/network-facts.md, sections 4 and 5).
"""

import socket
from typing import Dict, List, Optional

from ..core.agent import AgentCore
from ..core.loop import READ, WRITE, Timer
from ..core.pace import LEAST_GRACE_S, ROUND_TRIPS
from ..host.route import look_up_route
from ..net.errqueue import ORIGIN_ICMP, ORIGIN_ICMP6, QueuedError, drain
from ..net.icmp import EchoSocket, echo_request, open_echo, quoted_sequence, read_echo_reply
from ..net.sockets import forget_own_port, open_probe, set_ttl, target_of
from ..wire.answers import Walked
from ..wire.failures import (
    ENDED_AFTER_OPEN,
    IN_PROGRESS,
    NO_PERMISSION,
    NO_SOURCE_PORT,
    REFUSED,
    is_transient,
    name_of,
)
from ..wire.host_messages import RouteOrder
from ..wire.orders import WalkOrder
from ..wire.parts import WalkHop
from ..wire.templates import pack_nonce
from .courses import TRIES, Course, Courses, Hop

# Where the destination's own answers told a round trip, a TTL waits as it demands, and is asked the
# second time after a part of that; else each question waits a little longer than the kernel, which
# repeats a SYN then.
AGAIN_S = 1.1
GAP_PART = 1 / 3
TIME_EXCEEDED = frozenset(((ORIGIN_ICMP, 11), (ORIGIN_ICMP6, 3)))
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


class HopQuestion:
    """The socket of a hop that has been asked and not answered."""

    def __init__(self, sock: socket.socket, echo: Optional[EchoSocket]) -> None:
        self.sock = sock
        self.echo = echo


class Walk:
    """One walk as it is ordered, how far it has come, and its open questions by TTL."""

    def __init__(self, agent: AgentCore, order: WalkOrder) -> None:
        self.id = order.id
        self.proto = order.proto
        self.target = target_of(order.dst, order.src)
        self.port = order.port
        self.template = agent.templates[order.template] if order.template else None
        again_s = gap_s = AGAIN_S
        if agent.answers.knows(order.dst):
            wanted_s = max(LEAST_GRACE_S, ROUND_TRIPS * agent.answers.rtt_s(order.dst))
            if wanted_s < AGAIN_S:
                gap_s = wanted_s * GAP_PART
                again_s = wanted_s - gap_s
        self.course = Course(
            _find_gateway(order), order.proto, order.port, order.max_ttl, again_s, gap_s
        )
        self.questions: Dict[int, List[HopQuestion]] = {}
        self.has_opened = False
        self.failure: Optional[str] = None
        self.timer: Optional[Timer] = None


class Walker:
    """All TTL walks of the agent."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._loop = agent.loop
        self._courses = Courses()
        self._waiting: List[Walk] = []
        self._walks: Dict[int, Walk] = {}

    def submit(self, order: WalkOrder) -> None:
        """Start a walk as soon as it need not wait for what others find; ``Walked`` follows."""
        self._waiting.append(Walk(self._agent, order))
        self._start_walks()

    def close(self) -> None:
        """Close every socket."""
        self._waiting = []
        for walk in self._walks.values():
            self._close_walk(walk)
        self._walks = {}

    def _start_walks(self) -> None:
        begun = [walk for walk in self._waiting if self._courses.begin(walk.course)]
        self._waiting = [walk for walk in self._waiting if walk not in begun]
        for walk in begun:
            self._walks[walk.id] = walk
            self._take_turn(walk)

    def _take_turn(self, walk: Walk) -> None:
        """Ask what is to be asked now, or end the walk."""
        for ttl in list(walk.questions):
            # Look once more: this process may not have run for a while.
            self._read_answer(walk, walk.course.hops[ttl])
        hops = self._courses.next_hops(walk.course, self._loop.now())
        for hop in hops or ():
            if walk.failure is None:
                self._ask_hop(walk, hop)
        if hops is None or walk.failure is not None:
            self._finish_walk(walk)
            return
        if walk.timer is not None:
            walk.timer.cancel()
        wait_s = max(0.0, walk.course.due_s - self._loop.now())
        walk.timer = self._loop.call_later(wait_s, lambda: self._take_turn(walk))

    # Asking

    def _ask_hop(self, walk: Walk, hop: Hop) -> None:
        is_tcp = walk.proto == "tcp"
        if is_tcp and hop.asked == TRIES and walk.course.gap_s >= AGAIN_S:
            return  # the kernel has just sent its second SYN
        try:
            # A SYN needs a socket of its own; the one before may still be answered.
            known = [] if is_tcp else walk.questions.get(hop.ttl, [])
            self._send_question(walk, hop, known[0] if known else self._open_question(walk, hop))
        except OSError as error:
            is_short = is_transient(error.errno) or error.errno in NO_SOURCE_PORT
            if hop.asked > 1 and not is_short:
                return  # an ICMP error that send() returned; it is in the error queue too
            # An echo walk without even its first socket may not have one.
            no_echo = walk.proto == "icmp" and not walk.has_opened
            walk.failure = NO_PERMISSION if no_echo else name_of(error.errno)

    def _open_question(self, walk: Walk, hop: Hop) -> HopQuestion:
        echo = open_echo(walk.target) if walk.proto == "icmp" else None
        sock = open_probe(walk.target, KINDS[walk.proto]) if echo is None else echo.sock
        walk.has_opened = True
        question = HopQuestion(sock, echo)
        walk.questions.setdefault(hop.ttl, []).append(question)
        set_ttl(sock, hop.ttl)
        events = READ | WRITE if walk.proto == "tcp" else READ
        self._loop.watch(sock.fileno(), events, lambda _: self._hear_hop(walk, hop))
        return question

    def _send_question(self, walk: Walk, hop: Hop, question: HopQuestion) -> None:
        sock, echo = question.sock, question.echo
        if walk.proto == "tcp":
            code = sock.connect_ex(walk.target.sockaddr(walk.port))
            if self._agent.own_ports is not None:
                # A probe may have left from this port before.
                forget_own_port(self._agent.own_ports, walk.target, walk.port, sock)
            if code and code not in IN_PROGRESS:
                raise OSError(code, "connect")
            return
        nonce = _make_nonce(walk, hop)
        if echo is not None:
            packet = echo_request(walk.target.family, echo.number, _make_sequence(hop), nonce)
            sock.sendto(packet, walk.target.sockaddr(0))
            return
        request = b"" if walk.template is None else walk.template.fill(self._agent.key, nonce)
        sock.sendto(request, walk.target.sockaddr(walk.port))

    # Hearing

    def _hear_hop(self, walk: Walk, hop: Hop) -> None:
        self._read_answer(walk, hop)
        if walk.id in self._walks and not walk.course.open_hops():
            self._take_turn(walk)

    def _read_answer(self, walk: Walk, hop: Hop) -> None:
        for question in walk.questions.get(hop.ttl, ()):
            # Asked first: an error that ends the socket is in its queue by then.
            answered = _is_answered(walk, hop, question)
            for error in drain(question.sock):
                if _is_ours(walk, hop, question, error) and hop.address is None:
                    hop.address = error.offender
                    if (error.origin, error.type) not in TIME_EXCEEDED:
                        # "Time exceeded" in the destination's name is of a router that translates.
                        hop.reached = error.offender == walk.target.address
                        hop.refusal = None if hop.reached else error.fact()
            if hop.address is None and answered:
                hop.address, hop.reached = walk.target.address, True
        if hop.ttl in walk.questions and hop.address is not None:
            self._courses.hear(walk.course, hop, self._loop.now())
        if hop.address is not None or hop.tries >= TRIES:
            self._close_questions(walk, hop.ttl)

    # Ending

    def _finish_walk(self, walk: Walk) -> None:
        self._close_walk(walk)
        del self._walks[walk.id]
        course = walk.course
        self._courses.finish(course)
        hops = [WalkHop(hop.ttl, hop.address) for hop in course.way()]
        end = course.end() or Hop(0)
        self._agent.send(Walked(walk.id, hops, end.reached, walk.failure, end.refusal))
        self._start_walks()

    def _close_walk(self, walk: Walk) -> None:
        if walk.timer is not None:
            walk.timer.cancel()
        for ttl in list(walk.questions):
            self._close_questions(walk, ttl)

    def _close_questions(self, walk: Walk, ttl: int) -> None:
        for question in walk.questions.pop(ttl, ()):
            self._loop.unwatch(question.sock.fileno())
            question.sock.close()


def _is_ours(walk: Walk, hop: Hop, question: HopQuestion, error: QueuedError) -> bool:
    if not error.is_icmp or error.to != walk.target.address:
        return False
    if question.echo is not None:
        sequence = quoted_sequence(error.data)
        return sequence is not None and sequence >> 8 == hop.ttl
    return error.port == walk.port


def _is_answered(walk: Walk, hop: Hop, question: HopQuestion) -> bool:
    """Tell whether the destination itself answered: a handshake, a reset, a datagram, an echo."""
    sock, echo = question.sock, question.echo
    if walk.proto == "tcp":
        code = sock.connect_ex(walk.target.sockaddr(walk.port))
        if code == 0 or code in ENDED_AFTER_OPEN or name_of(code) == REFUSED:
            return True
        if code not in IN_PROGRESS:
            # Failed without an ICMP error to read (before Linux 5.8): nobody to name.
            hop.tries = TRIES
        return False
    try:
        data, sender = sock.recvfrom(65535)
    except OSError:
        return False
    if sender[0].partition("%")[0] != walk.target.address:
        return False
    if echo is None:
        return bool(sender[1] == walk.port)
    reply = read_echo_reply(sock.family, echo.kind, data)
    return reply is not None and reply[1][:7] == _make_nonce(walk, hop)[:7]


def _find_gateway(order: WalkOrder) -> Optional[str]:
    try:
        return look_up_route(RouteOrder(0, order.dst, order.src)).gateway
    except OSError:
        return None  # the walk itself says why


def _make_nonce(walk: Walk, hop: Hop) -> bytes:
    return pack_nonce(walk.id & 0xFFFFFFFF, walk.port, _make_sequence(hop))


def _make_sequence(hop: Hop) -> int:
    return hop.ttl << 8 | hop.asked & 0xFF

"""What can be known of each case: derived from what is done where, not from netprobe's judge.

Every rule cites the section of the network facts that it follows. A rule says what has to be in
``where`` (``must``) and what may be (``may``): the place of the cause, and every place whose cause
would look the same. Where both are equal, only one answer is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.lab.accuracy.cases import REJECTS, RESET, ROUTES, Case
from tests.lab.accuracy.topology import ROUTER_1, ROUTER_2, SOURCE

Places = frozenset[str]

_REASONS = {
    "net-unreachable": {"net-unreach"},
    "no-route": {"net-unreach", "no-route"},
    "host-unreachable": {"host-unreach"},
    "addr-unreachable": {"host-unreach", "addr-unreach"},
    "prot-unreachable": {"proto-unreach"},
    "port-unreachable": {"port-unreach"},
}
_ROUTE_REASONS = {
    "none": {"net-unreach"},
    "unreachable": {"host-unreach", "addr-unreach"},
    "prohibit": {"admin-prohibited"},
}
_TRUE_PLACE = {
    "source-out": "source", "source-in": "source", "route-source": "source",
    "router-1": "path", "router-2": "path", "route-router-1": "path",
    "destination-in": "destination", "destination-out": "destination",
    "back-router-2": "return-path", "back-router-1": "return-path",
    "route-destination": "return-path", "route-back-router-2": "return-path",
    "down": "host",
}  # fmt: skip


def places(words: str) -> Places:
    """A set of places from words."""
    return frozenset(words.split())


EVERYWHERE = places("destination path return-path source")


@dataclass(frozen=True)
class Question:
    """One case under one protocol, and what the lab knows of it besides.

    ``captures``: the agents, at one end or both, have CAP_NET_RAW. ``answered``: the address
    answers this source on something in the same run, so it is known to be up.
    """

    case: Case
    protocol: str
    address: str
    captures: bool
    answered: bool

    @property
    def agent(self) -> bool:
        return self.case.listener == "agent"

    @property
    def own(self) -> str:
        """The source's address."""
        return SOURCE[self.case.family == 6]

    @property
    def truth(self) -> str | None:
        """Where the cause really is."""
        return _TRUE_PLACE.get(self.case.place)

    @property
    def router(self) -> frozenset[str]:
        """The addresses of the router that acts, or of the last one that a silent probe meets."""
        return ROUTER_1 if self.case.place in ("router-1", "route-router-1") else ROUTER_2


@dataclass(frozen=True)
class Expectation:
    """What can be known. ``rejecters`` and ``hops`` hold None where naming nobody is right.

    ``also`` are verdicts that are as good. ``words`` is the rule, with its section.
    """

    verdict: str
    must: Places = frozenset()
    may: Places = frozenset()
    states: frozenset[str] = frozenset(("filtered",))
    reasons: frozenset[str] = frozenset()
    proofs: frozenset[str] = frozenset(("none",))
    rejecters: frozenset[str | None] = frozenset((None,))
    hops: frozenset[str | None] | None = None
    also: frozenset[str] = frozenset()
    words: str = ""


@dataclass(frozen=True)
class Rule:
    """The first rule whose ``holds`` is true decides."""

    words: str
    holds: Callable[[Question], bool]
    expect: Callable[[Question], Expectation]


def expected(question: Question) -> Expectation:
    """The expectation of one question; every question has a rule."""
    for rule in RULES:
        if rule.holds(question):
            return replace(rule.expect(question), words=rule.words)
    raise LookupError(f"no rule for {question}")


def _passes(proofs: str, state: str, reasons: str) -> Expectation:
    return Expectation(
        "pass", states=frozenset((state,)), reasons=frozenset(reasons.split()),
        proofs=frozenset(proofs.split()),
    )  # fmt: skip


def _open(question: Question) -> Expectation:
    if question.protocol == "icmp":
        return _passes("service", "open", "echo-reply")
    if question.agent:
        return _passes("nonce witness", "open", "nonce-answer seen-at-destination")
    if question.case.listener == "live":
        if question.protocol == "tcp":
            # No agent is there, and nothing shows whose port it is.
            return Expectation(
                "inconclusive", places("service"), places("service"), frozenset(("open",)),
                frozenset(("unknown-holder",)), frozenset(("handshake",)),
            )  # fmt: skip
        return _passes("service", "open", "udp-response")
    return _refusal(question)


def _refusal(question: Question) -> Expectation:
    return _passes("refusal", "closed", "reset" if question.protocol == "tcp" else "port-unreach")


def _blocked(where: str, reasons: set[str], states: str = "filtered") -> Expectation:
    return Expectation(
        "blocked", places(where), places(where), frozenset(states.split()), frozenset(reasons)
    )


def _reasons(question: Question) -> set[str]:
    action = question.case.action
    if question.case.place in ROUTES:
        # A Linux router says "no route" of an unreachable route too, in IPv6 (ip6_pkt_discard).
        six = question.case.family == 6 and action == "unreachable"
        return _ROUTE_REASONS["none" if six else action]
    return _REASONS.get(action, {action.replace("tcp-reset", "reset")})


def _given_up(question: Question) -> Expectation:
    one = _blocked("host", {"host-down"}, "unreachable")
    return one if question.case.lan else replace(one, may=places("host path"))


def _by_source(question: Question) -> Expectation:
    one = _near_reset(question, _blocked("source", {"local-firewall", *_reasons(question)}))
    return replace(one, rejecters=frozenset((None, question.own)))


def _by_router(question: Question) -> Expectation:
    one = _blocked("path", _reasons(question), "filtered unreachable")
    return replace(one, rejecters=frozenset(question.router))


def _near_reset(question: Question, one: Expectation) -> Expectation:
    """The source's own resets and its first router's arrive with one TTL; captures see where."""
    if question.captures or question.case.action != RESET:
        return one
    return replace(one, may=places("path source"))


def _forged(question: Question) -> Expectation:
    one = _blocked("path", {"reset"})
    if question.case.place == "router-1":
        one = _near_reset(question, one)
    return replace(one, rejecters=frozenset((None, *question.router)))


def _by_destination(question: Question) -> Expectation:
    one = _blocked("destination", _reasons(question))
    if question.agent and _port_like(question) and not question.captures:
        # A translation may lead to a port where nobody listens.
        one = replace(one, may=places("destination path"))
    return replace(one, rejecters=frozenset((None, question.address)))


def _silent(question: Question, must: Places, may: Places) -> Expectation:
    return Expectation(
        "blocked", must, may, reasons=frozenset(("no-response",)), hops=_hops(question)
    )


def _hops(question: Question) -> frozenset[str | None]:
    """The last router that can answer a TTL walk (section 5)."""
    case = question.case
    if case.lan or case.place in ("source-out", "route-router-1"):
        return frozenset((None,))
    hops: frozenset[str | None] = frozenset(question.router)
    # Who knows that it arrived need not walk.
    return hops if not question.agent or question.truth == "path" else hops | {None}


def _nobody_there(question: Question) -> Expectation:
    if question.captures and question.truth == "source":
        return _answer_at_the_door(question)
    places_left = EVERYWHERE - {"source"} if question.captures else EVERYWHERE
    if question.case.place == "router-1":
        # Only router 1 answers the walk (section 5), so whoever knows the distance knows the place.
        must = places("path")
    elif question.case.lan:
        must = places_left - {"path", "return-path"}
    else:
        must = places_left
    if not question.captures and question.protocol == "tcp":
        # The source's counters tell whether it stops the answer, of a few flows of a host.
        must = places("source") if question.truth == "source" else must - {"source"}
    host = frozenset() if question.answered else places("host")
    one = _silent(question, must, places_left | host)
    if question.protocol != "udp":
        return one
    # A capture of datagrams does not see the ICMP error that a closed port may have answered.
    may = one.may | {"service", "source"}
    return replace(one, verdict="inconclusive", may=may, states=frozenset(("open|filtered",)))


def _answer_at_the_door(question: Question) -> Expectation:
    one = _silent(question, places("source"), places("source"))
    if question.protocol != "udp":
        return one
    if question.case.listener == "closed":
        # The answer is an ICMP error, which a capture of datagrams does not see.
        host = frozenset() if question.answered else places("host")
        states = frozenset(("filtered", "open|filtered"))
        one = replace(one, states=states, also=frozenset(("inconclusive",)))
        return replace(one, may=EVERYWHERE | {"service"} | host)
    return one


def _ends_half_open(case: Case) -> tuple[str, ...]:
    """Refusals of a SYN-ACK that the kernel takes as final (tcp_v4_err, tcp_v6_err): then no
    SYN_RECV entry is left that an agent without rights could see."""
    four = (RESET, "net-unreachable", "host-unreachable", "none", "unreachable")
    return four if case.family == 4 else (RESET, *REJECTS[6], "none", "unreachable", "prohibit")


def _unseen(question: Question) -> Places:
    """What stays possible where nothing reached a socket and nobody may capture."""
    return places("destination path") if question.protocol == "udp" else EVERYWHERE


def _stopped_on_the_way(question: Question) -> Expectation:
    if not question.captures:
        return _silent(question, places("path"), _unseen(question))
    # IPv6 echo that the source's own OUTPUT drops is silent (section 1), and a router that throws
    # away before it counts the TTL leaves no hop that would tell.
    blind = question.protocol == "icmp" and question.case.family == 6
    hidden = blind and question.case.place == "route-router-1"
    return _silent(question, places("path"), places("path source" if hidden else "path"))


def _dropped_by_destination(question: Question) -> Expectation:
    may = places("destination") if question.captures else _unseen(question)
    return _silent(question, places("destination"), may)


def _answer_lost(question: Question) -> Expectation:
    assert question.truth is not None
    must = places(question.truth)
    if question.captures or (question.protocol == "udp" and question.truth == "destination"):
        return _silent(question, must, must)
    if question.protocol == "udp":
        return _silent(question, must, places("return-path source"))
    if question.protocol == "icmp" or question.case.action in _ends_half_open(question.case):
        return _silent(question, must, EVERYWHERE)
    return _silent(question, must, places("destination return-path source"))


def _no_way_back(question: Question) -> Expectation:
    # Without a recorder nobody knows whether anything came.
    may = places("return-path" if question.captures else "path return-path")
    one = _silent(question, places("return-path"), may)
    return replace(one, reasons=frozenset(("no-response", "no-route")))


def _dropped_by_source(question: Question) -> Expectation:
    if question.protocol == "icmp" and question.case.family == 6:
        host = frozenset() if question.answered or question.agent else places("host")
        seen = places("path source") if question.agent and question.captures else EVERYWHERE | host
        one = _silent(question, places("source"), seen)
        return replace(one, reasons=frozenset(("no-response", "local-firewall")))
    return _blocked("source", {"local-firewall"})


def _is(question: Question, *names: str) -> bool:
    return question.case.place in names


def _rejects(question: Question) -> bool:
    return question.case.action not in ("accept", "drop", "blackhole", RESET)


def _port_like(question: Question) -> bool:
    """A refusal as a destination gives one where nothing listens."""
    action, protocol = question.case.action, question.protocol
    return (action == RESET and protocol == "tcp") or (
        action == "port-unreachable" and protocol == "udp"
    )


RULES: tuple[Rule, ...] = (
    Rule("1: nothing is done: it answers as what listens there answers",
         lambda q: _is(q, "open"), _open),
    Rule("1: a dead neighbour is given up after 3.06 s, by the last router or by the source's own "
         "kernel; nobody rejects; who is not on its network does not know which router is the last",
         lambda q: _is(q, "down"), _given_up),
    Rule("1: the source's own routing table fails at once",
         lambda q: _is(q, "route-source"),
         lambda q: _blocked("source", {"no-route"}, "unreachable")),
    Rule("1: the source's own OUTPUT drops: TCP_INFO, EPERM; silent for IPv6 echo",
         lambda q: _is(q, "source-out") and q.case.action == "drop", _dropped_by_source),
    Rule("1 and 2: the source's own OUTPUT rejects: the offender is its own address; its resets "
         "come without a packet leaving the interface",
         lambda q: _is(q, "source-out"), _by_source),
    Rule("1: a router rejects, or has no route: it is the offender",
         lambda q: _is(q, "router-1", "router-2", "route-router-1") and _rejects(q), _by_router),
    Rule("2: a reset forged by a router arrives with a higher TTL than the destination's packets",
         lambda q: _is(q, "router-1", "router-2") and q.case.action == RESET, _forged),
    Rule("3: nobody there, and the destination's INPUT refuses as a closed port would",
         lambda q: _is(q, "destination-in") and _port_like(q) and not q.agent, _refusal),
    Rule("1 and 6: the destination's INPUT rejects: the offender is the destination, where our "
         "listener waits, or in a way that no Linux stack answers by itself",
         lambda q: _is(q, "destination-in") and q.case.action != "drop", _by_destination),
    Rule("3 and 5: silence with nobody at the other end: all places stay, and the host unless its "
         "address answered something; silent UDP may be a silent service; a source that may "
         "capture sees the answers that its own INPUT drops (1)",
         lambda q: not q.agent, _nobody_there),
    Rule("6: nothing arrived; a capture tells the way there from the destination's INPUT, and "
         "without one a connection in SYN_RECV may have been ended before it was looked at",
         lambda q: q.truth == "path", _stopped_on_the_way),
    Rule("6: seen by the capture but by no socket, or by nobody without the right to capture",
         lambda q: _is(q, "destination-in"), _dropped_by_destination),
    Rule("6: the destination has no route back, which its own kernel says when asked",
         lambda q: _is(q, "route-destination"), _no_way_back),
    Rule("6: it arrived and the answer did not: EPERM from the listener's own answer names its "
         "OUTPUT for UDP; captures see where the answer ends, without them a way back and the "
         "source's INPUT look the same",
         lambda q: True, _answer_lost),
)  # fmt: skip

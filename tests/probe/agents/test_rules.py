"""What an agent may say: an answer to the order, of everything that was asked, once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.agent.wire.answers import (
    EchoOutcomes,
    Listening,
    ProbeOutcomes,
    Seen,
    StoryTold,
    Walked,
)
from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    HopsOrder,
    HopsTold,
    Resolved,
    ResolveOrder,
    ReturnPath,
    ReturnPathOrder,
    RouteOrder,
    Sockets,
    SocketsOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    HeldOrder,
    ListenOrder,
    ProbeOrder,
    SeenOrder,
    StoryOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import (
    AddressAnswer,
    DhcpServer,
    EchoRun,
    FailedPorts,
    HalfOpen,
    HeldPorts,
    HeldSocket,
    IcmpFact,
    ListenBlock,
    NextHop,
    OrderArrivals,
    OutcomeRun,
    ProbeBlock,
    ProbeDestination,
    SeenError,
    SeenRun,
    SocketOwner,
    Stranger,
    TranslatedRun,
    UnreachedPorts,
    WalkHop,
)
from netprobe.agent.wire.segment_messages import (
    DhcpHeard,
    DhcpOrder,
    SegmentAnswers,
    SegmentAskOrder,
)
from netprobe.model import ports as port_sets
from netprobe.probe.agents.outcome_rules import OutcomeRules
from netprobe.probe.agents.rules import check_answer
from tests.probe.fakes import icmp, kind, listening_block, routed

OPEN = kind(answer="unasked")
ECHO = kind(op="answer", answer="echo")


STORY = StoryOrder(7, "tcp", None, "10.0.0.1", "10.0.0.2", [(5, 9)], True, [], [])


def told(**facts: Any) -> StoryTold:
    usual = StoryTold(7, True, None, [], [], [], heard=True, awake=True, lost=0, full=False)
    return usual._replace(**facts)


def sockets(*held: HeldSocket) -> Sockets:
    return Sockets(7, list(held), [SocketOwner(1, "init", None, "")], True, (32768, 60999))


def seen_run(*ports: tuple[int, int]) -> SeenRun:
    return SeenRun(list(ports), None, None, None, [])


def seen_error(ports: tuple[int, int], sender: str = "10.0.9.1") -> SeenError:
    return SeenError([ports], sender, 3, 13, 63, False, False, 1, 1)


def probe(*ports: tuple[int, int], proto: str = "tcp") -> ProbeOrder:
    return ProbeOrder(
        7, proto, None, "10.0.0.2", None, [ProbeBlock(list(ports), "connect", 0)], None, 400, 1,
        pace=None, min_ttl=None, ttl=None, size=None, host=None, sport=None, more=[],
    )  # fmt: skip


def echo(count: int) -> EchoOrder:
    return EchoOrder(7, [f"10.0.0.{n}" for n in range(count)], None, None, 400, 1, None, [])


def run(first: int, last: int, of: int = 0) -> OutcomeRun:
    return OutcomeRun(first, last, of, [1000], 1)


def outcomes(*runs: OutcomeRun, what: Any = OPEN, own_port: int | None = None) -> ProbeOutcomes:
    return ProbeOutcomes(7, [(1, 1)], [what], list(runs), [own_port] if own_port else [])


def test_outcomes_come_in_any_order_and_in_many_messages() -> None:
    """Ports of neighbouring ranges may be one run; the end is right once all are told."""
    rules = OutcomeRules(probe((5, 9), (10, 12), (20, 20)))
    for one in (run(20, 20), run(8, 11), run(5, 6), run(12, 12), run(7, 7)):
        rules.take(outcomes(one))
    rules.finish()


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 5)), min_size=1), st.data())
def test_every_port_is_told_once(spans: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever was asked, in whatever order: the last port makes the end right."""
    asked = port_sets.normalise((first, first + more) for first, more in spans)
    rules = OutcomeRules(probe(*asked))
    ports = data.draw(st.permutations(list(port_sets.each(asked))))
    for told in ports:
        with pytest.raises(ValueError, match="before the outcome of port"):
            rules.finish()
        rules.take(outcomes(run(told, told)))
        with pytest.raises(ValueError, match="not asked or told before"):
            rules.take(outcomes(run(told, told)))
    rules.finish()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (outcomes(), "outcomes of nothing"),
        (outcomes(run(4, 5)), "port 4-5, not asked or told before"),
        (outcomes(run(9, 10)), "port 9-10"),
        (outcomes(run(6, 5)), "port 6-5"),
        (outcomes(run(0, 0)), "port 0-0"),
        (outcomes(run(8, 20)), "port 8-20"),
        (outcomes(run(5, 5), run(5, 5)), "port 5-5, not asked or told before"),
        (outcomes(run(2**60, 2**60)), "port 11529"),
        (outcomes(run(5, 9, of=1)), "kind 1 of 1"),
        (outcomes(run(5, 9, of=99)), "kind 99 of 1"),
        (outcomes(run(5, 9), what=kind(answer="new-word")), "an answer 'new-word'"),
        (outcomes(run(5, 9), what=ECHO), "an answer 'echo'"),
        (outcomes(run(5, 9), what=kind(failure="new")), "a failure 'new'"),
        (outcomes(run(5, 9), what=kind(failure="unknown-$(x)")), r"a failure 'unknown-\$\(x\)'"),
        (outcomes(run(5, 9), what=kind(icmp=icmp(3, 1, "fe80::1%;x"))), "an address 'fe80::1%;x'"),
        (outcomes(run(5, 9), what=kind(op="dance")), "an operation 'dance'"),
        (outcomes(run(5, 9), what=kind(icmp=icmp(3, 1, "not an address"))), "an address 'not an"),
        (outcomes(run(5, 9), own_port=65536), "a port 65536"),
    ],
)  # fmt: skip
def test_outcomes_that_break_a_rule(answer: ProbeOutcomes, words: str) -> None:
    """Each at once, not at the end of the order."""
    with pytest.raises(ValueError, match=words):
        OutcomeRules(probe((5, 9), (20, 25))).take(answer)


@pytest.mark.parametrize("failure", ["refused", "no-answer", "unknown-EXFULL", None])
def test_failures_that_the_wire_has(failure: str | None) -> None:
    """Those that an agent has no name for keep the errno's own."""
    OutcomeRules(probe((5, 9))).take(outcomes(run(5, 9), what=kind(failure=failure)))


def test_a_protocol_without_ports_has_one_outcome() -> None:
    """The wire says 0 to 0."""
    rules = OutcomeRules(probe(proto="ipproto"))
    with pytest.raises(ValueError, match="before the outcome of port 0"):
        rules.finish()
    rules.take(outcomes(run(0, 0)))
    rules.finish()


def test_every_destination_of_an_echo_order_is_told_once() -> None:
    """By their places from 1; each has its own round trip."""
    rules = OutcomeRules(echo(3))
    rules.take(EchoOutcomes(7, [ECHO], [EchoRun(2, 3, 0, [5, None], 1)]))
    with pytest.raises(ValueError, match=r"before the outcome of destination 1$"):
        rules.finish()
    rules.take(EchoOutcomes(7, [kind(failure="no-answer")], [EchoRun(1, 1, 0, [None], 1)]))
    rules.finish()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (EchoRun(0, 0, 0, [1], 1), "destination 0-0"),
        (EchoRun(1, 4, 0, [1] * 4, 1), "destination 1-4"),
        (EchoRun(1, 3, 0, [1], 1), "1 round trips of 3"),
        (EchoRun(1, 3, 2, [1] * 3, 1), "kind 2 of 1"),
    ],
)
def test_echo_outcomes_that_break_a_rule(found: EchoRun, words: str) -> None:
    """Places are those of the order."""
    with pytest.raises(ValueError, match=words):
        OutcomeRules(echo(3)).take(EchoOutcomes(7, [ECHO], [found]))


def test_only_echo_replies_answer_an_echo_request() -> None:
    """Nothing else is a pass."""
    answer = EchoOutcomes(7, [OPEN], [EchoRun(1, 1, 0, [1], 1)])
    with pytest.raises(ValueError, match="an answer 'unasked'"):
        OutcomeRules(echo(1)).take(answer)


BLOCK = ListenBlock("tcp", "10.0.0.2", [(5, 9), (20, 20)], None, 1)
RAW = ListenBlock("ipproto", "10.0.0.2", [], 4, 1)
LISTEN = ListenOrder(7, [BLOCK])
UP = listening_block(up=[(5, 9), (20, 20)])


def held(first: int, last: int) -> HeldPorts:
    return HeldPorts(first, last, "sshd", "sshd", 12, "0.0.0.0", loopback=False)


@pytest.mark.parametrize(
    ("order", "blocks"),
    [
        (LISTEN, [UP]),
        (LISTEN, [UP._replace(beside=[held(20, 20)], nat=True)]),
        (
            LISTEN,
            [
                listening_block(
                    up=[(5, 5)], held=[held(6, 7)], denied=[(8, 8)], skipped=[(20, 20)],
                    failed=[FailedPorts(9, 9, "address-not-available")],
                )
            ],
        ),
        (ListenOrder(7, [RAW]), [listening_block(up=[(0, 0)])]),
        (HeldOrder(7, [BLOCK]), [listening_block(held=[held(6, 7)])]),
        (HeldOrder(7, [BLOCK]), [listening_block()]),
        (HeldOrder(7, [RAW]), [listening_block(held=[held(4, 4)])]),
    ],
)  # fmt: skip
def test_rounds_that_keep_the_rules(order: ListenOrder | HeldOrder, blocks: Any) -> None:
    """Each port that should be bound has one fate; of those that are looked at some are held."""
    check_answer(order, Listening(7, blocks))


@pytest.mark.parametrize(
    ("order", "blocks", "words"),
    [
        (LISTEN, [], "0 blocks of 1"),
        (LISTEN, [UP, UP], "2 blocks of 1"),
        (LISTEN, [listening_block()], "nothing of ports 5-9, 20"),
        (LISTEN, [listening_block(up=[(5, 9)])], "nothing of ports 20"),
        (LISTEN, [UP._replace(up=[(5, 10), (20, 20)])], "not asked"),
        (LISTEN, [UP._replace(up=[(9, 5), (20, 20)])], "a range 9-5"),
        (LISTEN, [UP._replace(beside=[held(1, 1)])], "not asked"),
        (HeldOrder(7, [BLOCK]), [listening_block(held=[held(1, 1)])], "not asked"),
        (HeldOrder(7, [RAW]), [listening_block(held=[held(5, 5)])], "not asked"),
    ],
)
def test_rounds_that_break_a_rule(order: Any, blocks: Any, words: str) -> None:
    """A port of which nothing is said would count as closed, where a refusal is no harm."""
    with pytest.raises(ValueError, match=words):
        check_answer(order, Listening(7, blocks))


LONELY = UnreachedPorts("tcp", "10.0.0.2", None, [(5, 9)])
ASKED_ALL = SeenOrder(7, 1, [], rest=True)
SEEN = Seen(7, [OrderArrivals(3, [(5, 9)], ["10.0.0.1", "fe80::1%eth0"], None)], [], [], [])
HALF_OPEN = HalfOpen(5, "10.0.0.1", 40000, "10.0.0.2")
WALK = WalkOrder(7, "tcp", "10.0.0.2", 5, None, 3, 0)
EGRESS = EgressOrder(7, "10.0.0.2", None, 9)
HOPS_ORDER = HopsOrder(7, [("10.0.0.2", None), ("10.0.0.3", "10.0.0.1")])
HOLDERS = SegmentAskOrder(7, "eth0", ["10.0.0.2"] * 3, 150, "10.0.0.1")
DHCP = DhcpOrder(7, "eth0", 4)
SERVER = DhcpServer("10.0.0.9", "02:00:00:00:00:09", "10.0.0.50")
RETURN = ReturnPathOrder(7, "10.0.0.2", "10.0.0.1")
HOPS = [WalkHop(1, "10.0.9.1"), WalkHop(2, None), WalkHop(3, "10.0.0.2")]
REFUSAL = IcmpFact(3, 0, "10.0.0.2", 62)


def held_by(*links: str, dst: str = "10.0.0.2") -> SegmentAnswers:
    """Who answers for an address."""
    return SegmentAnswers(7, [AddressAnswer(dst, link) for link in links], None)


@pytest.mark.parametrize(
    ("order", "answer", "words"),
    [
        (SeenOrder(7, 1, [3, 4], rest=True), SEEN, None),
        (SeenOrder(7, 1, [4], rest=True), SEEN, "another order than was asked"),
        (SeenOrder(7, 1, [3], rest=True), SEEN._replace(orders=SEEN.orders * 2), "one order twice"),
        (
            SeenOrder(7, 1, [3], rest=True),
            SEEN._replace(orders=[OrderArrivals(3, [(9, 5)], [], None)]),
            "a range 9-5",
        ),
        (
            SeenOrder(7, 1, [3], rest=True),
            SEEN._replace(orders=[OrderArrivals(3, [(5, 9)], ["me"], None)]),
            "an address 'me'",
        ),
        (ASKED_ALL, Seen(7, [], [HALF_OPEN] * 4096, [Stranger(5, "x")] * 64, []), None),
        (ASKED_ALL, Seen(7, [], [HALF_OPEN] * 4097, [], []), "4097 items"),
        (ASKED_ALL, Seen(7, [], [], [Stranger(5, "x")] * 65, []), "65 items"),
        (ASKED_ALL, Seen(7, [], [HALF_OPEN._replace(remote="")], [], []), "address ''"),
        (ASKED_ALL, Seen(7, [], [], [], [LONELY, LONELY._replace(ports=[])]), None),
        (ASKED_ALL, Seen(7, [], [], [], [LONELY._replace(address="x")]), "address 'x'"),
        (ASKED_ALL, Seen(7, [], [], [], [LONELY._replace(ports=[(9, 5)])]), "range 9-5"),
        (WALK, Walked(7, HOPS, True, None, None), None),
        (WALK, Walked(7, [], False, "no-permission", None), None),
        (WALK, Walked(7, [], True, None, None), "arrived without a hop"),
        (WALK, Walked(7, HOPS[:2], True, None, None), "arrived without a hop"),
        (WALK, Walked(7, HOPS[::-1], True, None, None), "out of order"),
        (WALK, Walked(7, HOPS + HOPS, True, None, None), "out of order"),
        (WALK._replace(max_ttl=2), Walked(7, HOPS, True, None, None), "3 hops of 2"),
        (WALK, Walked(7, [WalkHop(1, "there")], False, None, None), "an address 'there'"),
        (WALK, Walked(7, HOPS, False, None, REFUSAL), None),
        (WALK, Walked(7, HOPS[:1], False, None, REFUSAL), "another hop refused"),
        (WALK, Walked(7, HOPS, True, None, REFUSAL), "arrived and was refused"),
        (ResolveOrder(7, "x"), Resolved(7, ["10.0.0.1", "fd00::1"], None, ""), None),
        (ResolveOrder(7, "x"), Resolved(7, ["10.0.0.1"] * 2, None, ""), "one address twice"),
        (ResolveOrder(7, "x"), Resolved(7, ["x"], None, ""), "an address 'x'"),
        (
            ResolveOrder(7, "x"),
            Resolved(7, [f"10.0.{n // 256}.{n % 256}" for n in range(1025)], None, ""),
            "1025 items",
        ),
        (RouteOrder(7, "10.0.0.2", None), routed()(RouteOrder(7, "", None)), None),
        (
            RouteOrder(7, "10.0.0.2", None),
            routed(gateway="eth0")(RouteOrder(7, "", None)),
            "an address 'eth0'",
        ),
        (EGRESS, Egress(7, "eth0", "fe80::1", "failed", None, True, None), None),
        (EGRESS, Egress(7, "eth0", "$(x)", None, None, True, None), r"an address '\$\(x\)'"),
        (HOPS_ORDER, HopsTold(7, [NextHop("10.0.0.9", "eth0"), NextHop(None, None)], [0, 1]), None),
        (HOPS_ORDER, HopsTold(7, [NextHop(None, "eth0")], [0]), "another number of next hops"),
        (HOPS_ORDER, HopsTold(7, [NextHop(None, "eth0")], [0, 1]), "a next hop that is not there"),
        (HOPS_ORDER, HopsTold(7, [NextHop("x", "eth0")], [0, 0]), "an address 'x'"),
        (HOPS_ORDER, HopsTold(7, [NextHop(None, "e\n")], [0, 0]), "a device"),
        (HOLDERS, held_by("02:00:00:00:00:01", "02:00:00:00:00:0a"), None),
        (HOLDERS, held_by(*["02:00:00:00:00:01"] * 2), "one answer twice"),
        (HOLDERS, held_by("x"), "a link-layer address 'x'"),
        (HOLDERS, held_by("02:00:00:00:00:01", dst="10.0.0.3"), "an address"),
        (HOLDERS, held_by(*(f"02:00:00:00:{n // 256:02x}:{n % 256:02x}" for n in range(257))),
         "257 items"),
        (DHCP, DhcpHeard(7, [SERVER, SERVER._replace(offer=None)], None), None),
        (DHCP, DhcpHeard(7, [SERVER] * 2, None), "one server twice"),
        (DHCP, DhcpHeard(7, [SERVER._replace(server="x")], None), "an address 'x'"),
        (DHCP, DhcpHeard(7, [SERVER._replace(offer="x")], None), "an address 'x'"),
        (DHCP, DhcpHeard(7, [SERVER._replace(link="x")], None), "a link-layer address 'x'"),
        (RETURN, ReturnPath(7, "eth0", None, None, None, [], None), None),
        (RETURN, ReturnPath(7, "eth0", ";x", None, None, [], None), "an address ';x'"),
        (STORY, told(), None),
        (STORY, told(runs=[seen_run((5, 6)), seen_run((8, 8))]), None),
        # Ports without a number have one run at most.
        (STORY._replace(proto="icmp", ports=[]), told(runs=[seen_run((0, 0))]), None),
        (STORY._replace(proto="icmp", ports=[]), told(runs=[seen_run((0, 0))] * 2), "two runs"),
        (STORY, told(runs=[seen_run((5, 6)), seen_run((6, 7))]), "two runs"),
        (STORY, told(runs=[seen_run((4, 5))]), "not asked"),
        (STORY, told(runs=[seen_run((6, 5))]), "6-5"),
        (STORY, told(errors=[seen_error((5, 9)), seen_error((7, 7))]), None),
        (STORY, told(errors=[seen_error((9, 10))]), "not asked"),
        (STORY, told(errors=[seen_error((5, 5), "?")]), r"an address '\?'"),
        (STORY, told(translated=[TranslatedRun("192.0.2.1", "10.0.0.9", [(9, 9)], 1)]), None),
        (STORY, told(translated=[TranslatedRun("?", "10.0.0.9", [], 1)]), r"an address '\?'"),
        (STORY, told(translated=[TranslatedRun("10.0.0.9", "", [], 1)]), "an address ''"),
        (STORY, told(translated=[TranslatedRun("10.0.0.8", "10.0.0.9", [], 1)] * 4096), None),
        (
            STORY,
            told(translated=[TranslatedRun("10.0.0.8", "10.0.0.9", [], 1)] * 4097),
            "4097 items",
        ),
        (SocketsOrder(7), sockets(HeldSocket("tcp", "::", 65535, [0])), None),
        (SocketsOrder(7), sockets(HeldSocket("udp", "10.0.0.1", 53, [])), None),
        (SocketsOrder(7), sockets(HeldSocket("sctp", "::", 5, [])), "a protocol 'sctp'"),
        (SocketsOrder(7), sockets(HeldSocket("tcp", "?", 5, [])), r"an address '\?'"),
        (SocketsOrder(7), sockets(HeldSocket("tcp", "::", 65536, [])), "a port 65536"),
        (SocketsOrder(7), sockets(HeldSocket("tcp", "::", 5, [1])), "another process"),
        (SocketsOrder(7), sockets(HeldSocket("tcp", "::", 5, [0, 0])), "one process twice"),
    ],
)  # fmt: skip
def test_answers_of_one_order(order: Any, answer: Any, words: str | None) -> None:
    """What keeps the rules passes; what does not says which."""
    if words is None:
        check_answer(order, answer)
        return
    with pytest.raises(ValueError, match=words):
        check_answer(order, answer)


def wide(count: int) -> ProbeOrder:
    """A probe order of so many destinations; the last one has a port more."""
    block = ProbeBlock([(5, 10)], "connect", 0)
    more = [
        ProbeDestination(7 + n, f"10.0.1.{n}", None, [block] if n == count - 1 else [])
        for n in range(1, count)
    ]
    return probe((5, 9))._replace(more=more)


def wide_outcomes(*places: tuple[int, int], ports: tuple[int, int] = (5, 9)) -> ProbeOutcomes:
    count = port_sets.count(places)
    return ProbeOutcomes(7, list(places), [OPEN], [OutcomeRun(*ports, 0, [1] * count, 1)], [])


def test_every_destination_of_a_probe_order_is_told_once() -> None:
    """In any order and together as they come; which are complete is told at once."""
    rules = OutcomeRules(wide(4))

    assert rules.take(wide_outcomes((2, 2), (4, 4))) == [2]
    assert rules.take(wide_outcomes((1, 1), (3, 3), ports=(5, 6))) == []
    assert rules.take(wide_outcomes((1, 1), ports=(7, 9))) == [1]
    assert rules.take(wide_outcomes((4, 4), ports=(10, 10))) == [4]
    with pytest.raises(ValueError, match="before the outcome of port 7 of destination 3 and 2 mor"):
        rules.finish()
    rules.take(wide_outcomes((3, 3), ports=(7, 9)))
    rules.finish()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (wide_outcomes(), "outcomes of no destination"),
        (wide_outcomes((1, 5)), "destination 1-5, not asked or told before"),
        (wide_outcomes((2, 1)), "destination 2-1"),
        (wide_outcomes((1, 1), (1, 1)), "destination 1-1"),
        (wide_outcomes((0, 0)), "destination 0-0"),
        (wide_outcomes((1, 2), ports=(5, 10)), "port 5-10, not asked"),
        (wide_outcomes((1, 2))._replace(own_ports=[40000]), "1 own ports"),
        (wide_outcomes((1, 2))._replace(runs=[run(5, 9)]), "1 round trips of 2"),
        (ProbeOutcomes(7, [(1, 2**60)], [OPEN], [run(5, 9)], []), "destination 1-11529"),
    ],
)
def test_wide_outcomes_that_break_a_rule(answer: ProbeOutcomes, words: str) -> None:
    """Whatever an agent says of destinations costs no more than what was asked."""
    with pytest.raises(ValueError, match=words):
        OutcomeRules(wide(4)).take(answer)

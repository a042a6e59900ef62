"""Orders out, observations back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    ProbeOrder,
)
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.errors import AgentError
from netprobe.model.evidence import Icmp, Listener, Outcome
from netprobe.model.inventory import Address
from netprobe.model.notes import LookNote
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import Heard, PortOutcome, ProbeReply
from netprobe.probe.flows.listeners import UNKNOWN, Listeners, Spot
from netprobe.probe.flows.prober import Observation, Prober, source_address
from netprobe.probe.flows.rationed import probe_tasks
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import (
    ONE_WAY_MS,
    PACED_LOOKS,
    UDP_SOURCES_AT_ONCE,
    ProbeSettings,
    Timing,
)
from netprobe.protocols import Reading, protocol_for
from netprobe.protocols.packets.plain import Plain
from tests.probe.builders import ROUTER, SOURCE, TARGET, make_observation, make_task
from tests.probe.fakes import HELLO, FakeAgent, FakeFleet, host, icmp, kind, reply, routed

OPEN = kind(answer="unasked")
OURS = Listener("ours")


class Bench:
    """A prober of one source, and what it knows."""

    def __init__(
        self,
        answer: OutcomeKind | Any = OPEN,
        settings: ProbeSettings | None = None,
        kernel: str = "6.1.0",
    ) -> None:
        self.source = FakeAgent(
            SOURCE,
            {
                ProbeOrder: lambda order: reply(order, answer),
                EchoOrder: lambda order: reply(order, answer),
                RouteOrder: routed(source="10.0.0.77"),
            },
            hello=HELLO._replace(kernel=kernel),
        )
        self.fleet = FakeFleet([self.source, FakeAgent(TARGET)])
        self.answered = Answered()
        self.prober = Prober(self.fleet, settings or ProbeSettings(), self.answered)

    async def probe(self, task: Task, *states: tuple[Ports, Listener]) -> list[Observation]:
        """Probe a task while this listens."""
        listeners = Listeners(UNKNOWN)
        for ports, listener in states:
            spot = Spot(task.protocol, task.address, protocol_for(task.probe), ports)
            listeners.add(spot, ports, listener)
        return await probe_tasks([task], listeners, self.prober)

    @property
    def order(self) -> ProbeOrder:
        """The last order."""
        return self.source.orders(ProbeOrder)[-1]


async def test_a_sighting_has_its_ports_its_listener_and_its_order() -> None:
    """One run of ports may have met several listeners."""
    bench = Bench(lambda port: OPEN if port < 5 else kind(failure="refused"))
    live, closed = Listener("live", "etcd"), Listener("closed")

    found = await bench.probe(make_task("tcp", ((4, 5),)), (((4, 4),), live), (((5, 5),), closed))

    assert [(one.ports, one.listener, one.order) for one in found] == [
        (((4, 4),), live, bench.order.id),
        (((5, 5),), closed, bench.order.id),
    ]
    assert [one.outcome and (one.outcome.answer, one.outcome.failure) for one in found] == [
        ("unasked", None),
        (None, "refused"),
    ]
    (entry,) = found[0].trail
    assert entry.name == "probe"
    assert entry.note == LookNote("tcp", found[0].part.mode, 0, OPEN, 1000, 1, None)


async def test_an_order_asks_for_the_destinations_own_answer() -> None:
    """An answer of any other host of ours is not the one that was asked for."""
    bench = Bench()

    await bench.probe(make_task())

    assert bench.order.host == bench.fleet.agent(TARGET).index == 1


async def test_the_port_that_datagrams_were_sent_from_is_kept() -> None:
    """The story tells by it whose an answer is."""
    bench = Bench()
    bench.source.scripts[ProbeOrder] = lambda order: ProbeReply(reply(order, OPEN).rows, 40000)

    (found,) = await bench.probe(make_task("udp"))

    assert found.sport == 40000


async def test_answers_are_known_to_the_whole_run() -> None:
    """Silence of other flows is held against them."""
    bench = Bench(lambda port: OPEN if port == 1 else kind(failure="no-answer"))

    await bench.probe(make_task("tcp", ((2, 2),)))
    assert not bench.answered.has("a", "10.0.0.2")
    await bench.probe(make_task("tcp", ((1, 2),)))
    assert bench.answered.has("a", "10.0.0.2")


@pytest.mark.parametrize("timeout_s", [None, 0.2, 3.0])
async def test_one_way_packets_get_one_short_look(timeout_s: float | None) -> None:
    """Nobody answers them, and the listener knows at once what came."""
    bench = Bench(kind(op="send"), ProbeSettings(timeout_s=timeout_s, looks=3))
    task = make_task("udp", ((8472, 8472),), probe="vxlan")

    (seen,) = await bench.probe(task, (((8472, 8472),), OURS))
    short_ms = 200 if timeout_s == 0.2 else ONE_WAY_MS
    assert bench.order[6:9] == (short_ms, short_ms, 1)

    await bench.prober.again(seen, Timing(500, 500, 2))
    assert bench.order[6:9] == (500, 500, 2)


@pytest.mark.parametrize(
    ("probe", "listener", "looks"),
    [
        (None, OURS, 1),
        # Rationed: silence is not asked again at once.
        ("vxlan", Listener("live"), PACED_LOOKS),
        (None, Listener("closed"), PACED_LOOKS),
    ],
)
async def test_other_packets_get_one_look_or_what_a_pace_allows(
    probe: str | None, listener: Listener, looks: int
) -> None:
    """Without --timeout the agent learns how long the first look must wait."""
    bench = Bench()

    await bench.probe(make_task("udp", ((5, 5),), probe=probe), (((5, 5),), listener))

    assert bench.order[6:9] == (None, 4000, looks)


async def test_asking_again_keeps_what_is_known() -> None:
    """The same packets to the same listener, in one look; the trail grows."""
    bench = Bench(kind(failure="no-answer"))
    task = make_task("tcp", ((1, 9),))
    (first, *_) = await bench.probe(task, (((1, 9),), OURS))
    part = replace(first, ports=((2, 3),)).noting("traceroute")

    found = await bench.prober.again(part)

    assert [one.ports for one in found] == [((2, 3),)]
    assert {one.listener for one in found} == {OURS}
    assert [entry.name for entry in found[0].trail] == ["probe", "traceroute", "probe"]
    (block,) = bench.order.blocks
    assert (block.ports, block.mode, bench.order.looks) == ([(2, 3)], "nonce", 1)
    assert block.template == first.part.template
    assert bench.order.id > first.order


async def test_a_lost_agent_makes_its_flows_untested() -> None:
    """No outcome, its reason, and the listener that it would have met."""
    bench = Bench()
    bench.source.lost = True

    (found,) = await bench.probe(make_task("tcp", ((1, 9),)), (((1, 9),), OURS))

    assert (found.outcome, found.ports, found.listener) == (None, ((1, 9),), OURS)
    assert found.untested == ("agent-lost", "the agent of a was lost")
    assert bench.prober.proven == []


async def test_answers_that_arrived_before_the_loss_of_the_agent_count() -> None:
    """They are proven; the rest of the order is not tested."""
    bench = Bench()
    nonce = kind(op="answer", answer="nonce", by=1, ttl=60)

    async def probe(order: ProbeOrder | EchoOrder, heard: Heard | None = None) -> ProbeReply:
        assert heard is not None
        heard(
            [PortOutcome(3, 4, nonce, 1000, 1), PortOutcome(5, 5, kind(failure="refused"), 1000, 1)]
        )
        assert [one.ports for one in bench.prober.proven] == [((3, 4),)]
        raise AgentError("agent-lost", "gone")

    bench.source.probe = probe  # type: ignore[method-assign]  # a script

    found = await bench.probe(make_task("tcp", ((1, 9),)), (((1, 9),), OURS))

    assert [(one.ports, one.untested) for one in found] == [
        (((3, 4),), None),
        (((1, 2), (5, 9)), ("agent-lost", "gone")),
    ]


@pytest.mark.parametrize("answer", [kind(answer="nonce", by=1), OPEN])
async def test_who_answered_is_known_though_nobody_waited_for_the_end(answer: OutcomeKind) -> None:
    """A look may end early, and a later silence is judged by what came until then."""
    bench = Bench()
    came = asyncio.Event()

    async def probe(order: ProbeOrder | EchoOrder, heard: Heard | None = None) -> ProbeReply:
        assert heard is not None
        heard([PortOutcome(3, 4, answer, 7000, 1)])
        came.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench.source.probe = probe  # type: ignore[method-assign]  # a script
    asking = asyncio.create_task(bench.probe(make_task("tcp", ((1, 9),)), (((1, 9),), OURS)))
    await came.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert asking.cancelled()
    assert bench.answered.has("a", "10.0.0.2")
    assert bench.answered.slowest_ms("a", "10.0.0.2") == 7.0


async def test_other_sources_are_probed_nevertheless() -> None:
    """An agent's loss is its own flows' only."""
    lost = FakeAgent(SOURCE, lost=True)
    other = FakeAgent(host("c", "10.0.0.3"), {ProbeOrder: lambda order: reply(order, OPEN)})
    fleet = FakeFleet([lost, other, FakeAgent(TARGET)])
    prober = Prober(fleet, ProbeSettings(), Answered())
    tasks = [make_task(), make_task(source=other.host)]

    found = await probe_tasks(tasks, Listeners(UNKNOWN), prober)

    assert [(one.task.source.name, one.untested is None) for one in found] == [
        ("a", False),
        ("c", True),
    ]


@pytest.mark.parametrize(
    ("kernel", "protocol", "answer", "blind"),
    [
        ("5.4.0-42", "tcp", kind(failure="refused"), True),
        ("4.18.0", "tcp", kind(failure="host-unreachable"), True),
        ("5.4.0", "tcp", kind(failure="refused", icmp=icmp(3, 3, "10.0.0.2")), False),
        ("5.4.0", "tcp", OPEN, False),
        ("5.4.0", "udp", kind(op="answer", failure="refused"), False),
        ("5.8.0", "tcp", kind(failure="refused"), False),
        ("6.1.0", "tcp", kind(failure="refused"), False),
        # Nobody knows: better not to say more than the errno does.
        ("", "tcp", kind(failure="refused"), True),
    ],
)
async def test_kernels_that_queue_no_errors_of_tcp_are_blind(
    kernel: str, protocol: str, answer: OutcomeKind, blind: bool
) -> None:
    """Before Linux 5.8 an errno of TCP may be a reset or an ICMP error."""
    bench = Bench(answer, kernel=kernel)

    (found,) = await bench.probe(make_task(protocol))

    assert found.outcome is not None
    assert found.outcome.blind is blind


@pytest.mark.parametrize(
    ("offender", "origin", "asked"),
    [
        ("10.0.0.1", "source", False),
        ("10.0.0.2", "destination", False),
        (ROUTER, "router", True),
        # An address of the source that the inventory does not list.
        ("10.0.0.77", "source", True),
    ],
)
async def test_who_sent_an_icmp_error(offender: str, origin: Any, asked: bool) -> None:
    """Of an address that nobody knows the source's kernel is asked whether it is its own."""
    bench = Bench(kind(failure="host-unreachable", icmp=icmp(3, 13, offender)))

    (found,) = await bench.probe(make_task())

    assert found.outcome is not None
    assert found.outcome.icmp == Icmp(3, 13, offender, origin, 64)
    assert bool(bench.source.orders(RouteOrder)) is asked


@pytest.mark.parametrize(
    ("protocol", "probe", "answer"),
    [("udp", None, "unasked"), ("udp", "dns", "other"), ("tcp", None, "other")],
)
async def test_an_answer_is_wrong_only_where_one_was_expected(
    protocol: str, probe: str | None, answer: str
) -> None:
    """Without ``probe:`` anything that a UDP port says will do."""
    bench = Bench(kind(op="answer", answer="bytes", data=b"220 ready"))

    (found,) = await bench.probe(make_task(protocol, probe=probe))

    assert found.outcome is not None
    assert found.outcome.answer == answer


@pytest.mark.parametrize(
    ("protocol", "ports", "transport"),
    [("tcp", ((5, 5),), "tcp"), ("udp", ((5, 5),), "udp"), ("ipproto/4", (), "ipproto")],
)
async def test_bytes_are_read_as_those_of_their_transport(
    protocol: str, ports: Ports, transport: str
) -> None:
    """DNS has a length before its messages over TCP, and none over UDP."""
    read: list[str] = []

    class Recording(Plain):
        def read(self, transport: str, data: bytes) -> Reading:
            read.append(transport)
            return super().read(transport, data)

    bench = Bench(kind(op="answer", answer="bytes", data=b"x"))
    seen = make_observation(None, make_task(protocol, ports))

    await bench.prober.part(replace(seen.part, protocol=Recording()))

    assert read == [transport]


async def test_asking_beside_the_plan() -> None:
    """One look, no trail, and nothing that an interrupt would keep."""
    bench = Bench(lambda port: kind(failure="refused"))

    found = await bench.prober.ask(make_task(), "tcp", ((5, 5),), look_ms=700, min_ttl=61, ttl=3)

    assert [(ports, one.failure) for ports, one in found] == [(((5, 5),), "refused")]
    order = bench.order
    assert (order.proto, order.dst, order.min_ttl, order.ttl) == ("tcp", "10.0.0.2", 61, 3)
    assert order[6:9] == (700, 700, 1)
    assert [(block.ports, block.mode, block.template) for block in order.blocks] == [
        ([(5, 5)], "connect", 0)
    ]
    assert bench.prober.proven == []


async def test_echo_and_udp_can_be_asked_for_beside_any_task() -> None:
    """A TCP flow's source asks its address by other protocols."""
    bench = Bench(kind(op="answer", answer="echo", ttl=60))

    ((ports, outcome),) = await bench.prober.ask(make_task(), "icmp", (), look_ms=700)
    await bench.prober.ask(make_task(), "udp", ((5, 5),), look_ms=700)

    assert (ports, outcome.answer, outcome.ttl) == ((), "echo", 60)
    assert bench.source.orders(EchoOrder)[0].dsts == ["10.0.0.2"]
    assert (bench.order.proto, bench.order.blocks[0].mode) == ("udp", "send")


async def test_a_question_to_a_lost_agent_raises() -> None:
    """Only orders of the plan become untested."""
    bench = Bench()
    bench.source.lost = True

    with pytest.raises(AgentError):
        await bench.prober.ask(make_task(), "icmp", (), look_ms=700)


async def test_closed_udp_is_asked_by_few_sources_at_once() -> None:
    """The destination's own bucket of ICMP answers is shared by all who ask."""
    sources = [FakeAgent(host(f"s{number}", f"10.0.1.{number}")) for number in range(20)]
    fleet = FakeFleet([*sources, FakeAgent(TARGET)])
    prober = Prober(fleet, ProbeSettings(), Answered())
    out, most = 0, 0

    class Slow(FakeAgent):
        async def probe(
            self, order: ProbeOrder | EchoOrder, heard: Heard | None = None
        ) -> ProbeReply:
            nonlocal out, most
            out += 1
            most = max(most, out)
            for _ in range(5):
                await asyncio.sleep(0)
            out -= 1
            return reply(order, kind(op="answer", failure="no-answer"))

    fleet.fakes |= {one.host.name: Slow(one.host) for one in sources}
    tasks = [make_task("udp", ((5, 5),), source=one.host) for one in sources]

    await probe_tasks(tasks, Listeners(UNKNOWN), prober)
    assert most == UDP_SOURCES_AT_ONCE
    most = 0
    await probe_tasks([replace(one, protocol="tcp") for one in tasks], Listeners(UNKNOWN), prober)
    assert most == len(sources)


@pytest.mark.parametrize(
    ("target", "expected"),
    [("10.0.0.2", "10.0.0.9"), ("fd00::2", "fd00::9"), ("fd01::2", "fd00::9")],
)
def test_the_source_address_is_that_of_the_family(target: str, expected: str) -> None:
    """The inventory may name one of each family."""
    chosen = (Address("fd00::9", 6), Address("10.0.0.9", 4))
    source = replace(SOURCE, source_addresses=chosen)

    assert source_address(make_task(source=source, target=host("b", target))) == expected
    assert source_address(make_task(target=host("b", target))) is None


def test_silence_and_notes() -> None:
    """Silence is an outcome; without one nobody looked."""
    assert make_observation(Outcome("connect", "no-answer")).silent
    assert not make_observation(Outcome("connect", "refused")).silent
    assert not make_observation(None).silent


@pytest.mark.parametrize(("packets", "sent"), [(True, 5), (False, 3)])
def test_looks_before_count_and_nothing_else_of_the_outcome_changes(
    packets: bool, sent: int
) -> None:
    """Who asks again counts what was asked before, packets where they are counted."""
    before = Outcome("connect", "no-answer", attempts=1, packets=2)
    reset = Outcome("connect", "refused", rtt_ms=1.5, attempts=2, packets=3)

    found = make_observation(reset).counting(before, packets=packets)

    assert found.outcome == replace(reset, attempts=3, packets=sent)


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        (None, None, None),
        # A short look does not reach the kernel's second SYN.
        (False, None, False),
        (True, None, True),
        (None, False, False),
        # Where one got out, the others met chance.
        (True, False, True),
        (False, True, True),
    ],
)
def test_what_one_silent_look_tells_of_leaving_counts(
    before: bool | None, now: bool | None, left: bool | None
) -> None:
    """And nothing of silence says whether what was answered had left."""
    earlier = Outcome("connect", "no-answer", left_host=before)
    silent = make_observation(Outcome("connect", "no-answer", left_host=now))
    reset = make_observation(Outcome("connect", "refused", left_host=now))

    found = silent.counting(earlier).outcome
    assert found is not None
    assert found.left_host is left
    assert reset.counting(earlier).outcome == Outcome(
        "connect", "refused", left_host=now, attempts=2
    )


@pytest.mark.parametrize(
    ("ports", "pieces"),
    [
        (((3, 4),), [(True, ((3, 4),)), (False, ((1, 2), (5, 9)))]),
        (((1, 20),), [(True, ((1, 9),))]),
        ((), [(False, ((1, 9),))]),
    ],
)
def test_a_cut_leaves_out_empty_pieces(ports: Ports, pieces: list[tuple[bool, Ports]]) -> None:
    """Every port is in exactly one piece."""
    seen = make_observation(Outcome("connect", None), make_task("tcp", ((1, 9),)))

    assert [(among, piece.ports) for among, piece in seen.cut(ports)] == pieces


async def test_ports_that_ended_alike_are_seen_together() -> None:
    """Whatever lies between them; their round trip is the median."""
    bench = Bench()
    refused = kind(failure="refused")
    rows = [
        PortOutcome(port, port, refused if port == 3 else OPEN, rtt_us, 1)
        for port, rtt_us in ((1, 1000), (3, 700), (5, 9000), (7, 2000))
    ]
    bench.source.scripts[ProbeOrder] = lambda order: ProbeReply(rows)

    found = await bench.probe(make_task("tcp", ((1, 7),)))

    assert [(one.ports, one.outcome and one.outcome.rtt_ms) for one in found] == [
        (((1, 1), (5, 5), (7, 7)), 2.0),
        (((3, 3),), 0.7),
    ]


async def test_what_answered_at_once_tells_of_loss() -> None:
    """Looks that were answered or refused count, silent ones may be no loss at all."""
    bench = Bench(lambda port: OPEN if port < 31 else kind(failure="no-answer"))

    await bench.probe(make_task("tcp", ((1, 90),)))
    bench.prober.chance.note_lost(30)

    assert bench.prober.chance.loss == 0.5


@pytest.mark.parametrize("op", ["connect", "send"])
async def test_what_was_repeated_before_an_answer_was_lost(op: str) -> None:
    """Connects by their looks, datagrams by their packets; of silence nobody knows. What met an
    ICMP error does not count at all: routers and hosts make one a second."""
    bench = Bench()
    rejected = kind(op=op, failure="refused", icmp=icmp(3, 3, "10.0.0.254"), packets=2)
    answered = OPEN._replace(packets=3)
    rows = [
        PortOutcome(1, 2, answered, 1000, 1),
        PortOutcome(3, 3, OPEN, 1000, 2),
        PortOutcome(4, 4, kind(failure="no-answer", packets=9), None, 3),
        PortOutcome(5, 5, rejected, 1200, 2),
    ]
    bench.source.scripts[ProbeOrder] = lambda order: ProbeReply(rows)

    await bench.probe(make_task("tcp", ((1, 5),)))

    assert bench.prober.chance.loss == pytest.approx(5 / 8)


async def test_the_slowest_answer_of_a_pair_is_known() -> None:
    """By it a look knows how long to wait."""
    bench = Bench()
    task = make_task("tcp", ((1, 2),))
    assert bench.prober.slowest_ms(task) is None

    await bench.probe(task)
    assert bench.prober.slowest_ms(task) == 1.0

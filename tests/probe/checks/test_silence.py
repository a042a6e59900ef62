"""How often silent flows are asked again, how long each look waits, and what is counted."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.agent.wire.questions import UNKNOWN_MS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Answer, Outcome
from netprobe.model.notes import SilenceNote
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.silence import LEAST_LOOK_MS, REPEATED_MS, SPREAD_MS, STEP_S, Silence
from netprobe.probe.flows.chance import LEAST_LOOKS, LEAST_LOSS
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ROUND_TRIPS, ProbeSettings
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, icmp, kind, reply

SILENT = Outcome("connect", "no-answer", left_host=True, attempts=1, packets=1)
NOTHING = kind(failure="no-answer", left=True, packets=1)
SPOILT = kind(failure="stood-still", left=True, packets=1)
OPEN = kind(op="answer", answer="nonce", by=1)


def silent(ports: Ports = ((443, 443),), **change: Any) -> Observation:
    """Flows to our listeners that one look found silent."""
    outcome = replace(SILENT, **change)
    return make_observation(outcome, make_task("tcp", ports), listener="ours", mode="nonce")


class World:
    """A source that answers from its n-th look on, by port; 0: never. It stands still while it
    carries out the orders of these numbers."""

    def __init__(
        self,
        answers: dict[int, int] | None = None,
        *,
        settings: ProbeSettings | None = None,
        spoilt: Collection[int] = (),
    ) -> None:
        self.answers = answers or {}
        self.spoilt = spoilt
        self._numbers = itertools.count()
        self.looks: dict[int, int] = {}
        self.source = FakeAgent(SOURCE, {ProbeOrder: self._probe})
        self.source.recorder = True
        self.scene: Scene = make_scene(self.source, FakeAgent(TARGET), settings=settings)

    def _probe(self, order: ProbeOrder) -> Any:
        def tell(port: int) -> OutcomeKind:
            self.looks[port] = self.looks.get(port, 1) + order.looks
            wanted = self.answers.get(port, 0)
            return OPEN if wanted and self.looks[port] >= wanted else nothing

        # A look of TCP is one packet, of anything else three.
        is_spoilt = next(self._numbers) in self.spoilt
        nothing = (SPOILT if is_spoilt else NOTHING)._replace(
            packets=order.looks * (1 if order.proto == "tcp" else 3)
        )
        return ProbeReply([row._replace(looks=order.looks) for row in reply(order, tell).rows])

    def heard(self, rtt_ms: float) -> None:
        """The destination answered something else after so long."""
        outcome = Outcome("connect", None, answer="unasked", rtt_ms=rtt_ms)
        self.scene.prober.answered.note_answer("a", "10.0.0.2", outcome)

    async def look(self, *seen: Observation) -> list[Observation]:
        return await look(Silence(), self.scene, *seen)

    @property
    def timings(self) -> list[tuple[int | None, int, int]]:
        """How long the first look and each other waits, and how many there are, by order."""
        return [(one.first_ms, one.look_ms, one.looks) for one in self.source.orders(ProbeOrder)]


async def test_silence_is_asked_as_often_as_the_chance_of_error_demands() -> None:
    """The look of before counts."""
    world = World()

    (found,) = await world.look(silent())

    assert [looks for _, _, looks in world.timings] == [1] * (LEAST_LOOKS - 1)
    assert found.outcome is not None
    assert found.silent
    assert (found.outcome.attempts, found.outcome.packets) == (LEAST_LOOKS, LEAST_LOOKS)
    assert found.trail[-1].note == SilenceNote(LEAST_LOOKS, LEAST_LOSS)
    assert [entry.name for entry in found.trail] == ["probe"] * (LEAST_LOOKS - 1) + ["silence"]


async def test_loss_makes_more_looks() -> None:
    """What the run has shown so far decides, and what the looks themselves show."""
    world = World()
    world.scene.prober.chance.note_answered(64)
    world.scene.prober.chance.note_lost(36)

    (found,) = await world.look(silent())

    wanted = world.scene.prober.chance.count_looks()
    assert wanted > LEAST_LOOKS
    assert sum(looks for _, _, looks in world.timings) == wanted - 1
    assert found.notes(SilenceNote)[-1].looks == wanted


async def test_what_answers_late_is_answered_and_tells_of_loss() -> None:
    """The others are asked on, until their number of looks is enough for the loss that showed."""
    world = World(dict.fromkeys(range(1, 41), 4))
    chance = world.scene.prober.chance

    found = await world.look(silent(((1, 50),)))

    answered = port_sets.union(one.ports for one in found if not one.silent)
    assert answered == ((1, 40),)
    assert port_sets.union(one.ports for one in found) == ((1, 50),)
    assert chance.loss > LEAST_LOSS
    assert all(world.looks[port] >= chance.count_looks() for port in range(41, 51))
    assert all(one.trail[-1].name == "silence" for one in found)


async def test_who_answered_is_not_asked_again() -> None:
    """Only what stayed silent is."""
    world = World({1: 2})
    # As many answers got lost that one round of looks is not enough.
    await world.look(silent(((1, 2),)))
    first, *others = world.source.orders(ProbeOrder)

    assert first.blocks[0].ports == [(1, 2)]
    assert all((1, 1) not in order.blocks[0].ports for order in others)


@pytest.mark.parametrize("spoilt", [0, 1])
async def test_a_look_that_a_pause_has_spoilt_says_nothing(spoilt: int) -> None:
    """Neither that the flow is silent, nor that a packet of it got lost: it is asked once more."""
    world, usual = World(spoilt=[spoilt]), World()
    for one in (world, usual):
        one.heard(0.2)
        (found,) = await one.look(silent())
        assert found.silent
        assert found.outcome is not None
        assert found.outcome.packets == LEAST_LOOKS

    assert world.looks[443] > usual.looks[443]
    assert world.scene.prober.chance.loss == LEAST_LOSS


async def test_where_pauses_have_spoilt_all_looks_nothing_is_known() -> None:
    """It is not asked for ever, and counts as no loss."""
    world = World(spoilt=range(100))
    world.heard(0.2)

    (found,) = await world.look(silent())

    assert len(world.timings) == 2
    assert found.outcome is not None
    assert found.outcome.failure == "stood-still"
    assert world.scene.prober.chance.loss == LEAST_LOSS


async def test_looks_and_packets_add_up() -> None:
    """The report counts what was sent in all."""
    world = World({443: 2})

    (found,) = await world.look(silent(attempts=2, packets=3))

    assert found.outcome is not None
    assert found.outcome.answer == "nonce"
    assert found.outcome.attempts == 3
    assert found.outcome.packets == 3


@pytest.mark.parametrize(
    ("protocol", "packets", "looks"),
    [("udp", 3, [1]), ("udp", 1, [2]), ("ipproto/4", 3, [1])],
)
async def test_a_look_at_datagrams_is_three_packets(
    protocol: str, packets: int, looks: list[int]
) -> None:
    """The chance of error is that of packets."""
    world = World()
    outcome = replace(SILENT, operation="answer", packets=packets)
    ports: Ports = () if "/" in protocol else ((53, 53),)
    task = make_task(protocol, ports)

    (found,) = await world.look(make_observation(outcome, task, listener="ours", mode="nonce"))

    assert [count for _, _, count in world.timings] == looks
    assert found.outcome is not None
    assert (found.outcome.packets or 0) >= LEAST_LOOKS


async def test_protocols_are_asked_by_themselves() -> None:
    """Their looks count differently."""
    world = World()
    datagram = make_observation(
        replace(SILENT, packets=3), make_task("udp", ((53, 53),)), listener="ours", mode="nonce"
    )

    await world.look(silent(), datagram)

    orders = Counter(order.proto for order in world.source.orders(ProbeOrder))
    assert orders == {"tcp": 4, "udp": 1}


async def test_many_packets_were_many_looks() -> None:
    """The kernel repeats SYNs by itself: a look of three seconds had two or three."""
    world = World()

    await world.look(silent(packets=3))
    assert [looks for _, _, looks in world.timings] == [1] * (LEAST_LOOKS - 3)
    again = World()
    seen = silent(packets=LEAST_LOOKS)
    (found,) = await again.look(seen)
    assert again.timings == []
    assert (found.ports, found.outcome) == (seen.ports, seen.outcome)


@pytest.mark.parametrize(("looks", "more"), [(1, []), (2, [1]), (9, [1] * 8)])
async def test_a_number_of_the_users_own_counts_as_it_is(looks: int, more: list[int]) -> None:
    """--retries."""
    world = World(settings=ProbeSettings(looks=looks))

    await world.look(silent())

    assert [count for _, _, count in world.timings] == more


async def test_a_time_of_the_users_own_counts_as_it_is() -> None:
    """--timeout."""
    world = World(settings=ProbeSettings(timeout_s=0.7))
    world.heard(2.0)

    await world.look(silent())

    assert {timing[:2] for timing in world.timings} == {(700, 700)}


async def test_a_host_that_never_answered_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be far away, and the kernel's second SYN tells whether packets leave this host.

    The looks are side by side: together they take little more time than one.
    """
    slept_s: list[float] = []

    async def sleep(delay_s: float) -> None:
        slept_s.append(delay_s)

    world = World()
    monkeypatch.setattr("netprobe.probe.checks.silence.asyncio.sleep", sleep)

    await world.look(silent())

    assert {timing[:2] for timing in world.timings} == {(UNKNOWN_MS, UNKNOWN_MS)}
    assert UNKNOWN_MS > 1000
    assert [one for one in slept_s if one] == pytest.approx([STEP_S, 2 * STEP_S, 3 * STEP_S])


@pytest.mark.parametrize(
    ("rtt_ms", "look_ms"),
    [(0.2, SPREAD_MS // 3), (30.0, SPREAD_MS // 3), (100.0, 400), (500.0, 2000)],
)
@pytest.mark.parametrize("recorded", [True, False])
async def test_a_look_waits_for_several_round_trips(
    rtt_ms: float, look_ms: int, recorded: bool
) -> None:
    """One waits for the second SYN, too: a firewall may drop the first one of each connection."""
    repeated_ms = REPEATED_MS + max(LEAST_LOOK_MS, round(ROUND_TRIPS * rtt_ms))
    for packets, expected in (
        (1, (repeated_ms, repeated_ms, 1)),
        (2, (look_ms, look_ms, LEAST_LOOKS - 2)),
    ):
        world = World()
        world.source.recorder = recorded
        world.heard(rtt_ms)

        await world.look(silent(packets=packets))

        assert world.timings[0] == expected


async def test_where_packets_get_lost_several_connects_wait_for_the_second_syn() -> None:
    """Side by side: one that is lost by chance must not hide that only first SYNs are dropped."""
    world = World()
    world.heard(0.2)
    world.scene.prober.chance.note_answered(64)
    world.scene.prober.chance.note_lost(36)

    await world.look(silent())

    repeats = world.scene.prober.chance.count_looks() // 2
    assert repeats > 1
    long_ms = REPEATED_MS + LEAST_LOOK_MS
    assert world.timings[:repeats] == [(long_ms, long_ms, 1)] * repeats


async def test_what_one_of_several_connects_answers_is_answered() -> None:
    """All of them count, and each port is found once."""
    world = World({1: 3})
    world.heard(0.2)
    world.scene.prober.chance.note_answered(64)
    world.scene.prober.chance.note_lost(36)

    found = await world.look(silent(((1, 2),)))

    told = {one.ports: one.outcome for one in found}
    assert set(told) == {((1, 1),), ((2, 2),)}
    opened, lost = told[(1, 1),], told[(2, 2),]
    assert opened is not None
    assert (opened.answer, opened.attempts) == ("nonce", 3)
    assert lost is not None
    assert lost.attempts == world.looks[2] == lost.packets


async def test_few_looks_are_spread_too() -> None:
    """One burst of loss is not taken for a rule: 0.6 s at least."""
    world = World()
    world.heard(0.2)

    await world.look(silent(packets=4))

    ((first_ms, look_ms, looks),) = world.timings
    assert looks == 1
    assert first_ms == look_ms >= SPREAD_MS


@pytest.mark.parametrize(
    ("seen", "concerned"),
    [
        (silent(), True),
        (silent(left_host=None), True),
        # Nothing left: the own firewall, or no room.
        (silent(left_host=False), False),
        (make_observation(Outcome("connect", "refused")), False),
        (make_observation(Outcome("send", None), make_task("udp"), mode="send"), False),
        (make_observation(None), False),
    ],
)
def test_silence_concerns_the_check(seen: Observation, concerned: bool) -> None:
    """Refusals are never asked again."""
    assert Silence().concerns(seen) is concerned


def test_rationed_and_proxied_flows_are_left_alone() -> None:
    """Their answers come at a pace of their own, or from the proxy."""
    seen = silent()

    assert not Silence().concerns(replace(seen, part=replace(seen.part, paced=True)))
    assert not Silence().concerns(replace(seen, task=replace(seen.task, via=object())))


async def test_where_the_source_is_lost_what_it_saw_stands() -> None:
    """An order that fails says nothing."""
    world = World()
    seen = silent()
    world.source.lost = True

    (found,) = await world.look(seen)

    assert (found.ports, found.outcome) == (seen.ports, seen.outcome)


@pytest.mark.parametrize(
    ("mode", "answer", "asked"),
    [
        ("nonce", "silent", True),
        ("nonce", "reset", True),
        ("nonce", "closed", True),
        ("nonce", "other", False),
        ("connect", "silent", False),
    ],
)
async def test_a_nonce_without_an_answer_is_silence_too(
    mode: str, answer: Answer, asked: bool
) -> None:
    """The connection opened, and our listener's answer did not come; loss may explain that.

    Where our listener has no room left, it ends connections.
    """
    opened = Outcome("answer", None, answer=answer, attempts=1)
    seen = make_observation(opened, make_task("tcp", ((443, 443),)), listener="ours", mode=mode)
    world = World({443: 3})

    (found,) = await world.look(seen)

    assert (found.outcome is not None and found.outcome.answer == "nonce") is asked
    assert bool(world.timings) is asked


async def test_silence_before_an_icmp_error_is_no_loss() -> None:
    """A router makes one a second: the looks before it asked in vain, and nothing got lost."""
    world = World()
    rejected = kind(failure="host-unreachable", icmp=icmp(3, 13, "10.0.0.254"), packets=1)
    world.source.scripts[ProbeOrder] = lambda order: reply(order, rejected)

    (found,) = await world.look(silent())

    assert found.outcome is not None
    assert found.outcome.icmp is not None
    assert world.scene.prober.chance.loss == LEAST_LOSS


async def test_an_answer_outweighs_what_a_router_said_at_another_look() -> None:
    """Port by port, in whatever order looks end; where a router alone speaks, its word counts."""
    world = World()
    unreachable = kind(failure="host-unreachable", packets=1)
    refused = kind(failure="refused", packets=1)
    answers = iter([(OPEN, refused), (unreachable, OPEN), (unreachable, NOTHING)])

    def probe(order: ProbeOrder) -> ProbeReply:
        told = dict(zip((1, 2), next(answers, (NOTHING, NOTHING)), strict=True)) | {3: unreachable}
        return reply(order, lambda port: told.get(port, NOTHING))

    world.source.scripts[ProbeOrder] = probe

    found = await world.look(silent(((1, 4),)))

    told = {one.ports: one.outcome for one in found if one.outcome is not None}
    assert set(told) == {((1, 1),), ((2, 2),), ((3, 3),), ((4, 4),)}
    assert told[(1, 1),].answer == told[(2, 2),].answer == "nonce"
    assert told[(3, 3),].failure == "host-unreachable"
    assert told[(4, 4),].failure == "no-answer"
    # The first look, and each one that was silent where another was answered.
    assert world.scene.prober.chance._lost == (1 + 1) + (1 + 2)


async def test_what_hosts_wrote_is_asked_by_one_order() -> None:
    """A merge of a bundle finds the looks of one order: others would stay open for ever."""
    world = World()
    world.scene.fleet.side_by_side = False

    await world.look(silent())

    assert [looks for _, _, looks in world.timings] == [LEAST_LOOKS - 1]


async def test_a_number_of_the_users_own_is_that_of_each_flow() -> None:
    """Also of one that was asked less often than the first."""
    world = World(settings=ProbeSettings(looks=4))

    found = await world.look(silent(((1, 1),), attempts=4), silent(((2, 2),), attempts=2))

    assert {one.ports: one.outcome.attempts for one in found if one.outcome is not None} == {
        ((1, 1),): 6,
        ((2, 2),): 4,
    }


async def test_openings_that_tell_no_packets_are_looks_all_the_same() -> None:
    """The source's agent is still there: it is asked until there are enough."""
    world = World()
    opened = kind(op="answer", answer="silent", packets=None)
    world.source.scripts[ProbeOrder] = lambda order: reply(order, lambda port: opened)
    seen = silent(packets=3, answer="silent", operation="answer", failure=None)

    (found,) = await world.look(seen)

    assert found.outcome is not None
    assert found.outcome.attempts >= LEAST_LOOKS

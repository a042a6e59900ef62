"""Which ports are asked slowly, in what order, and what becomes of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.agent.wire.segment_messages import SegmentAskOrder
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Icmp, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.checks import rate_limits
from netprobe.probe.checks.rate_limits import (
    BATCH_S,
    BUDGET_S,
    SHOWN,
    SMALL_BATCH,
    SMALL_BATCH_S,
    SPOKESMEN,
    TRIES,
    RateLimits,
    _may_be_limited,
    _next_size,
    _Pending,
)
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, answering, kind, reply, routed

SILENT = Outcome("connect", "no-answer", left_host=True, attempts=2, packets=6)
OPEN = Outcome("answer", None, answer="nonce")
LATE = Outcome("answer", None, answer="nonce", attempts=2)
REFUSED = Outcome("connect", "refused")
PROHIBITED = Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.0.254", "router"))


def observation(outcome: Outcome, *ports: tuple[int, int], state: str = "ours") -> Observation:
    return make_observation(outcome, make_task("tcp", ports), listener=state, mode="nonce", order=1)


def settle(group: list[Observation], answering: Ports, size: int) -> tuple[dict[str, Ports], int]:
    """What becomes of each port, and how many were asked in all."""
    pending = _Pending(group)
    asked = 0
    while pending.waits():
        batch = pending.take(size)
        asked += len(batch)
        answers = [
            observation(OPEN, (port, port))
            if port_sets.intersect(((port, port),), answering)
            else None
            for _, port in batch
        ]
        pending.note(batch, answers, fair=True)
    found: dict[str, Ports] = {}
    for one in pending.result():
        assert one.outcome is not None
        word = "limited" if one.limited else (one.outcome.failure or "open")
        found[word] = port_sets.normalise((*found.get(word, ()), *one.ports))
    return found, asked


def test_a_rules_range_is_asked_at_a_few_ports() -> None:
    """Nothing answers: the spokesmen are enough, however long the range."""
    group = [observation(OPEN, (1, 10)), observation(SILENT, (7000, 9999))]

    found, asked = settle(group, (), size=2)

    assert found == {"open": ((1, 10),), "no-answer": ((7000, 9999),)}
    assert asked == SPOKESMEN * TRIES


def test_what_answers_slowly_is_open_and_a_rule_beside_it_stays() -> None:
    """Each port of the limited run is asked; the rule's part is found in it."""
    group = [observation(OPEN, (1, 10)), observation(SILENT, (7000, 7199))]

    found, asked = settle(group, ((7000, 7099), (7150, 7199)), size=2)

    assert found == {"open": ((1, 10), (7000, 7099), (7150, 7199)), "no-answer": ((7100, 7149),)}
    assert asked < 2 * 200


@pytest.mark.parametrize(
    ("silent", "opens"),
    [
        ((7097, 7149), ((7097, 7099),)),
        ((7099, 7150), ((7099, 7099), (7150, 7150))),
        ((7000, 7199), ((7000, 7099), (7150, 7199))),
    ],
)
def test_open_ports_beside_a_rules_range_cost_little(silent: tuple[int, int], opens: Ports) -> None:
    """However few wait beside it: a run that is cut by answers gets new spokesmen."""
    pending = _Pending([observation(OPEN, (1, 10)), observation(SILENT, silent)])
    size, spent_s = SMALL_BATCH, 0.0
    while pending.waits():
        batch = pending.take(size)
        fair = len(batch) <= SMALL_BATCH
        answers = [
            observation(OPEN, (port, port)) if port_sets.intersect(((port, port),), opens) else None
            for _, port in batch
        ]
        pending.note(batch, answers, fair=fair)
        size = _next_size(size, answers)
        spent_s += SMALL_BATCH_S if fair else BATCH_S

    assert spent_s < BUDGET_S
    assert {one.ports for one in pending.result() if one.outcome == SILENT} == {
        port_sets.subtract((silent,), opens)
    }


def test_what_there_was_no_time_for_is_not_told() -> None:
    """Neither open nor stopped: the judge must know."""
    pending = _Pending([observation(SILENT, (7000, 7099))])
    assert pending.waits()
    batch = pending.take(2)
    pending.note(batch, [observation(OPEN, (port, port)) for _, port in batch], fair=True)

    words = [(one.limited, port_sets.count(one.ports)) for one in pending.result()]

    assert sorted(words) == [(False, 1), (False, 1), (True, 98)]


def test_silence_among_many_or_without_control_settles_nothing() -> None:
    """Only few at once, while a known port answers, are believed to be stopped."""
    pending = _Pending([observation(SILENT, (7000, 7003))])
    for _ in range(5):
        assert pending.waits()
        pending.note(pending.take(4), [None] * 4, fair=True)
        assert pending.waits()
        pending.note(pending.take(2), [None] * 2, fair=False)

    assert all(one.limited for one in pending.result())


def test_what_raises_suspicion() -> None:
    """Late answers beside silence, or refusals in numbers; never a single refused port."""
    wide = observation(OPEN, (1, 10))
    assert not _may_be_limited([wide, observation(SILENT, (20, 90))], late=False)
    assert _may_be_limited([observation(LATE, (1, 10)), observation(SILENT, (20, 90))], late=True)
    assert _may_be_limited([wide, observation(REFUSED, (20, 25))], late=False)
    assert _may_be_limited([wide, observation(PROHIBITED, (20, 25))], late=False)
    assert not _may_be_limited([wide, observation(REFUSED, (20, 21))], late=False)
    assert not _may_be_limited([wide, observation(REFUSED, (20, 90), state="closed")], late=False)


def limited_source(answering: Ports, refused: str = "refused") -> FakeAgent:
    """A source whose lone connects open at these ports and are refused at the others."""

    def connect(order: ProbeOrder) -> object:
        def tell(port: int) -> OutcomeKind:
            opens = port_sets.intersect(((port, port),), answering)
            return kind(answer="nonce") if opens else kind(failure=refused)

        return reply(order, tell)

    silence = kind(op="answer", failure="no-answer")
    return FakeAgent(SOURCE, {ProbeOrder: connect, EchoOrder: lambda order: reply(order, silence)})


async def test_what_was_refused_in_numbers_and_answers_alone_is_open() -> None:
    """Each such port has the later answer, with the looks of both, and says that it was slow."""
    agent = limited_source(((20, 25),))
    group = (observation(OPEN, (1, 10)), observation(REFUSED, (20, 25)))

    found = await look(RateLimits(), make_scene(agent), *group)

    assert [one.ports for one in found[1:]] == [((port, port),) for port in range(20, 26)]
    for one in found[1:]:
        assert one.outcome is not None
        assert (one.outcome.answer, one.outcome.attempts, one.warnings) == ("nonce", 2, (SHOWN,))
    assert {one.trail[-1].name for one in found} == {"rate-limit"}


async def test_late_answers_over_udp_tell_of_no_limit_of_tcp() -> None:
    """Silent UDP ports beside them are asked again, and silent TCP ports are not."""
    agent = limited_source(((20, 25), (40, 45)))
    udp = make_task("udp", ((1, 25),))
    late, silent = (make_observation(one, udp, listener="ours", mode="nonce", order=2)
                    for one in (LATE, SILENT))  # fmt: skip
    tcp = observation(OPEN, (1, 10)), observation(SILENT, (40, 45))

    found = await look(
        RateLimits(), make_scene(agent),
        replace(late, ports=((1, 19),)), replace(silent, ports=((20, 25),)), *tcp,
    )  # fmt: skip

    assert found[:2] == list(tcp)
    assert all(one.outcome is not None and one.outcome.answer == "nonce" for one in found[2:])


async def test_a_rule_that_refuses_is_asked_at_a_few_ports_only() -> None:
    """Nothing answers alone: then there is no limit, and nothing is asked slowly."""
    agent = limited_source(())
    group = (observation(OPEN, (1, 10)), observation(REFUSED, (20, 90)))

    assert await look(RateLimits(), make_scene(agent), *group) == list(group)
    assert len(agent.orders(ProbeOrder)) == SPOKESMEN - 1


async def test_two_machines_with_one_address_are_no_limit() -> None:
    """Now the one answers, which has the listener, and now the other, which refuses."""
    agent = limited_source(((20, 25),))
    links = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    agent.scripts |= {
        RouteOrder: routed(), SegmentAskOrder: answering(*links),
    }  # fmt: skip
    group = (observation(OPEN, (1, 10)), observation(REFUSED, (20, 25)))

    assert await look(RateLimits(), make_scene(agent), *group) == list(group)
    assert not agent.orders(ProbeOrder)


async def test_what_lets_nothing_through_is_no_limit() -> None:
    """No connection of this source came through to anybody: nothing is asked again."""
    agent = limited_source(((20, 90),))
    refused = observation(REFUSED, (20, 90))

    assert await look(RateLimits(), make_scene(agent), refused) == [refused]
    assert agent.asked == []

    scene = make_scene(agent)
    scene.prober.answered.note_through("a")
    found = await look(RateLimits(), scene, refused)
    assert all(one.outcome is not None and one.outcome.failure is None for one in found)


async def test_silence_after_a_refusal_is_no_answer() -> None:
    """A router that has spent its errors refuses nobody, which tells of no limit."""
    silent = kind(op="connect", failure="no-answer")
    agent = FakeAgent(SOURCE, {ProbeOrder: lambda order: reply(order, silent)})
    group = (observation(OPEN, (1, 10)), observation(REFUSED, (20, 90)))

    assert await look(RateLimits(), make_scene(agent), *group) == list(group)


@pytest.mark.parametrize(("ttl", "forged"), [(63, True), (60, False)])
async def test_a_reset_that_came_late_is_told_from_a_forged_one(ttl: int, forged: bool) -> None:
    """Where all connections of a range are reset on the way, a lost one must not pass."""

    def connect(order: ProbeOrder) -> ProbeReply:
        heard = order.min_ttl is None or order.min_ttl <= ttl
        silent = kind(op="connect", failure="no-answer")
        return reply(order, kind(failure="refused") if heard else silent)

    echo = kind(op="answer", answer="echo", ttl=60)
    agent = FakeAgent(SOURCE, {ProbeOrder: connect, EchoOrder: lambda order: reply(order, echo)})
    group = (
        observation(replace(LATE, answer="unasked"), (1, 10), state="unknown"),
        observation(SILENT, (20, 20), state="unknown"),
    )

    found = await look(RateLimits(), make_scene(agent), *group)

    (late,) = [one for one in found if one.ports == ((20, 20),)]
    assert late.outcome is not None
    assert late.outcome.failure == ("no-answer" if forged else "refused")


async def test_without_time_the_rest_is_called_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither open nor stopped: what there was no time to ask says so."""
    monkeypatch.setattr(rate_limits, "BUDGET_S", 0.0)
    agent = limited_source(((20, 90),))
    group = (observation(OPEN, (1, 10)), observation(REFUSED, (20, 90)))

    found = await look(RateLimits(), make_scene(agent), *group)

    assert [(one.ports, one.limited) for one in found] == [(((1, 10),), False), (((20, 90),), True)]


@pytest.mark.parametrize(
    ("seen", "concerned"),
    [
        (observation(OPEN, (1, 1)), True),
        (make_observation(OPEN, make_task("udp"), listener="ours"), True),
        (make_observation(OPEN, make_task("udp")), False),
        (make_observation(OPEN, make_task("icmp"), listener="ours"), False),
        (make_observation(None), False),
    ],
)
def test_what_was_probed_and_must_answer_is_asked(seen: Observation, concerned: bool) -> None:
    """Silence of a UDP port that nobody is known to hold tells of no limit."""
    assert RateLimits().concerns(seen) is concerned

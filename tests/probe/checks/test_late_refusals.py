"""Which silence is asked again after a pause, and what becomes of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    ProbeOrder,
)
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model.evidence import Icmp, Outcome, Witness
from netprobe.probe.checks import late_refusals
from netprobe.probe.checks.late_refusals import LateRefusals
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, icmp, kind, reply, routed

PROHIBITED = Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.9.1", "router", 64))
SILENT = make_observation(Outcome("answer", "no-answer"), make_task("tcp", ((53, 53),)))


REFUSAL = kind(failure="host-unreachable", icmp=icmp(3, 13, "10.0.9.1"))
SILENCE = kind(op="answer", failure="no-answer")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_refusals, "PAUSE_S", 0)


def with_outcome(outcome: Outcome) -> Observation:
    return replace(SILENT, outcome=outcome)


def source(later: OutcomeKind = REFUSAL, left: int = 6) -> FakeAgent:
    """An agent whose second look gives this, and how many flows it may still ask late."""
    agent = FakeAgent(SOURCE, {ProbeOrder: lambda order: reply(order, later), RouteOrder: routed()})
    agent.late_left = left
    return agent


async def check(agent: FakeAgent, *observations: Observation) -> list[Outcome | None]:
    return [one.outcome for one in await look(LateRefusals(), make_scene(agent), *observations)]


async def test_a_refusal_that_came_late_is_one() -> None:
    """The looks of both are counted."""
    refused, late = await check(source(), with_outcome(PROHIBITED), SILENT)

    assert refused == PROHIBITED
    assert late is not None
    assert (late.failure, late.icmp, late.attempts) == ("host-unreachable", PROHIBITED.icmp, 2)


async def test_what_stays_silent_stays_as_it_was() -> None:
    """A firewall may drop one port and reject another."""
    assert await check(source(SILENCE), with_outcome(PROHIBITED), SILENT) == [
        PROHIBITED,
        SILENT.outcome,
    ]


@pytest.mark.parametrize(
    "other",
    [
        SILENT.outcome,
        Outcome("connect", None, answer="nonce"),
        # A closed UDP port, a dead host, the own firewall: nobody on the way refuses the address.
        Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination")),
        Outcome("connect", "host-unreachable", Icmp(3, 1, "10.0.9.1", "router"), elapsed_ms=3100),
        Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.0.1", "source")),
    ],
)
async def test_without_a_refusal_nothing_is_asked(other: Outcome) -> None:
    """Most silence is a drop, and waiting for it would only take time."""
    agent = source()

    await check(agent, with_outcome(other), SILENT)

    assert agent.asked == []


async def test_what_a_router_says_at_once_of_a_dead_host_is_no_refusal() -> None:
    """It has looked for the host already, for another flow."""
    agent = source()
    at_once, late = (
        Outcome("connect", "host-unreachable", Icmp(3, 1, "10.0.9.1", "router"), elapsed_ms=ms)
        for ms in (100, 3100)
    )

    await check(agent, with_outcome(at_once), with_outcome(late), SILENT)
    assert agent.asked == []

    await check(agent, with_outcome(at_once), SILENT)
    assert agent.asked != []


async def test_ranges_arrivals_and_too_many_are_left_alone() -> None:
    """A range would empty the bucket again; what arrived was not refused on the way."""
    agent = source(left=0)
    many = replace(SILENT, ports=((53, 60),))
    arrived = replace(SILENT, witness=Witness(socket=True))

    await check(agent, with_outcome(PROHIBITED), many, arrived, SILENT)

    assert agent.asked == []


async def test_of_a_few_ports_those_that_stay_silent_are_kept() -> None:
    """Every port has its word."""
    agent = FakeAgent(SOURCE, {
        ProbeOrder: lambda order: reply(order, lambda port: REFUSAL if port == 53 else SILENCE),
        RouteOrder: routed(),
    })  # fmt: skip
    few = make_observation(Outcome("answer", "no-answer"), make_task("udp", ((53, 54),)))

    found = await look(LateRefusals(), make_scene(agent), with_outcome(PROHIBITED), few)

    later = {one.ports: one.outcome and one.outcome.icmp for one in found if one.task == few.task}
    assert later == {((53, 53),): PROHIBITED.icmp, ((54, 54),): None}


async def test_flows_of_a_source_share_turns() -> None:
    """Each turn is a pause, and waits for those before it: a row of ports needs no turn of each."""
    agent = source(left=3)
    tcp = [replace(SILENT, ports=((first, first + 29),)) for first in (100, 200, 300)]
    udp = make_observation(Outcome("answer", "no-answer"), make_task("udp", ((53, 54),)))

    found = await check(agent, with_outcome(PROHIBITED), *tcp, udp)

    # 64 ports of TCP in a turn: two turns, and one of UDP.
    assert agent.late_left == 0
    assert all(one is not None and one.icmp is not None for one in found)

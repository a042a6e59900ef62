"""A few flows go first to a host that nobody vouches for; where it is dead, they stand for all."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.model import ports as port_sets
from netprobe.probe.agents.templates import Templates
from netprobe.probe.flows.batches import parts
from netprobe.probe.flows.listeners import UNKNOWN, Listeners
from netprobe.probe.flows.prober import Prober
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.scouts import SCOUTS, Scouts
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import ROUTER, SOURCE, TARGET, make_task
from tests.probe.fakes import FakeAgent, FakeFleet, icmp, kind, reply, routed

OTHER_ROUTER = "10.0.9.2"


def gone(offender: str = ROUTER, elapsed_ms: int = 3100) -> Any:
    """What a router says that found nobody."""
    return kind(failure="host-unreachable", icmp=icmp(3, 1, offender), elapsed_ms=elapsed_ms)


class Case:
    """One source and a host with a range of TCP ports, a UDP port and an echo."""

    def __init__(self, tcp: Any, echo: Any = None) -> None:
        echo = gone() if echo is None else echo
        scripts = {
            ProbeOrder: lambda order: reply(order, tcp),
            EchoOrder: lambda order: reply(order, echo),
            RouteOrder: routed(),
        }
        self.source = FakeAgent(SOURCE, scripts)
        fleet = FakeFleet([self.source, FakeAgent(TARGET, hello=None)])
        prober = Prober(fleet, ProbeSettings(), Answered())
        tasks = [make_task("tcp", ((1000, 1999),)), make_task("udp", ((53, 53),))]
        wanted = [part for task in tasks for part in parts(task, Listeners(UNKNOWN), Templates())]
        self.scouts = Scouts(wanted, prober)

    def asked_ports(self) -> int:
        """How many ports were asked."""
        blocks = (block for order in self.source.orders(ProbeOrder) for block in order.blocks)
        return sum(port_sets.count(tuple(block.ports)) for block in blocks)


async def test_scouts_of_a_dead_host_stand_for_all() -> None:
    """Three ports and an echo were asked, and 1,001 flows have their answer."""
    case = Case(gone())

    assert await case.scouts.are_dead()
    assert case.asked_ports() == SCOUTS
    seen = case.scouts.conclude()
    assert [one.concluded for one in seen] == ["router-gives-up"] * len(seen)
    found = [*seen, *case.scouts.stand_for_rest(seen[0])]
    assert sum(port_sets.count(one.ports) for one in found) == 1001
    assert {one.task.protocol for one in found if one.stood_for} == {"tcp", "udp"}
    assert all(one.trail[-1].name == "dead-host" for one in found if one.stood_for)


async def test_one_word_of_the_host_sends_everything() -> None:
    """A port may be translated to a dead host; the echo is the host's own."""
    for case in (
        Case(gone(), kind(answer="echo")),
        Case(lambda port: kind(failure="refused") if port == 1999 else gone()),
        Case(gone(elapsed_ms=0)),
        Case(kind(failure="no-answer", left=True)),
        Case(lambda port: gone(OTHER_ROUTER if port == 1000 else ROUTER)),
    ):
        assert not await case.scouts.are_dead()
        seen = await case.scouts.wait()
        rest = sum(port_sets.count(part.ports) for part in case.scouts.rest)
        assert sum(port_sets.count(one.ports) for one in seen) + rest == 1001


@pytest.mark.parametrize(
    ("waited_ms", "dead", "echoes"), [([3100], True, 1), ([700, 3000], True, 2), ([0], False, 1),
                                      ([700, 900, 200], False, 3)],
)  # fmt: skip
async def test_a_word_that_comes_early_for_another_source_is_asked_for_again(
    waited_ms: list[int], dead: bool, echoes: int
) -> None:
    """The router looked for the host already; a scout's packets waited for the rest of that."""
    left = list(waited_ms)
    case = Case(gone(elapsed_ms=max(waited_ms[0], 100)), lambda _: gone(elapsed_ms=left.pop(0)))

    assert await case.scouts.are_dead() is dead
    assert len(case.source.orders(EchoOrder)) == echoes

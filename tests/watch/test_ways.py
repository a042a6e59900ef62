"""Ways of packets: what is a mark, and of which outage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import HopsOrder, HopsTold
from netprobe.agent.wire.parts import NextHop
from netprobe.history.marks import MOST_MARKS, find_marks
from netprobe.history.outages import replay
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.outage import RouteMark
from netprobe.model.plan import Flow, Plan
from netprobe.probe.agents.fleet import Fleet
from netprobe.report.page.marks import word_marks
from netprobe.watch.ways import Ways
from tests.batch.world import plan_of
from tests.history.test_outages import OTHER, TCP, bad, look
from tests.report.samples import PASSED

DROPPED = bad({TCP: ((5, 9),)})
CHANGE = RouteMark("next-hop", "a", ("b",), 100, 110, "10.0.0.1", "10.0.0.9")


class HopAgent:
    """An agent with one next hop to everything, or to all but the first address."""

    alive = True

    def __init__(self, name: str) -> None:
        self.host = SimpleNamespace(name=name)
        self.hop, self.first = NextHop("10.0.0.1", "eth0"), NextHop(None, "eth0")

    async def request(self, order: HopsOrder, answer: type[HopsTold]) -> HopsTold:
        return answer(0, [self.first, self.hop], [0] + [1] * (len(order.targets) - 1))


def fleet_of(*agents: HopAgent) -> Fleet:
    return cast(Fleet, SimpleNamespace(agents=lambda: agents))


def test_an_outage_has_the_last_marks_before_it() -> None:
    """A way that changes all the time hides no change that is nearer."""
    marks = [replace(CHANGE, last_before=at, first_now=at + 1) for at in range(300, 400)]
    outage = replay([look(0), look(390), look(410, DROPPED)]).outages[0]
    found = find_marks(marks, outage.times, outage.members)
    assert (len(found), found[-1].last_before) == (MOST_MARKS, 399)


async def test_next_hops_that_changed_alike_are_one_mark() -> None:
    """With all destinations, and the moments between which it was; what stays is none, and a host
    whose agent was away meanwhile is compared with what was seen of it last."""
    clock = iter(range(0, 1000, 10))
    ways = Ways(lambda: float(next(clock)))
    plan = plan_of(("web", "tcp", ((1, 4),)))
    source = plan.blocks[0].sources[0].name
    agent = HopAgent(source)
    ends = {flow.destination.name for flow in plan.flows() if flow.source.name == source}
    await ways.look_up(plan, fleet_of(agent))
    await ways.look_up(plan, fleet_of(agent))
    assert ways.take_marks() == ()
    agent.alive, agent.hop = False, NextHop("fe80::1", "eth1")
    agent.first = NextHop(None, None)
    await ways.look_up(plan, fleet_of(agent))
    agent.alive = True
    await ways.look_up(plan, fleet_of(agent))
    marks = ways.take_marks()
    assert {(one.before, one.now) for one in marks} <= {
        ("10.0.0.1", "fe80::1%eth1"), ("none by eth0", "no route"),
    }  # fmt: skip
    assert {name for one in marks for name in one.destinations} == ends
    assert {(one.source, one.last_before, one.first_now) for one in marks} == {(source, 20.0, 50.0)}
    assert ways.take_marks() == ()


def hear(ways: Ways, plan: Plan, *ttls: int) -> None:
    """One flow's answers came with these TTLs."""
    flow: Flow = next(iter(plan.flows()))
    for ttl in ttls:
        outcome = Outcome("answer", None, ttl=ttl)
        evidence: Any = SimpleNamespace(outcome=outcome, address=flow.address.text)
        ways.hear(flow, [cast(Evidence, evidence)])


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ((62,), (61,), [("2", "3")]),
        ((62,), (62, 62), []),
        # Two ways at once: which of them is new is not known.
        ((62,), (61, 62), []),
        ((62, 61), (60,), []),
        ((127,), (255,), [("1", "0")]),
        ((62,), (), []),
    ],
)
def test_answers_that_pass_more_routers_are_a_mark(
    before: tuple[int, ...], after: tuple[int, ...], found: list[tuple[str, str]]
) -> None:
    """One way then and another one now; what comes back after silence is held against what was
    heard before it."""
    ways, plan = Ways(lambda: 0.0), plan_of(("web", "udp", ((1, 4),)))
    for at, ttls in ((10, before), (20, ()), (30, after)):
        ways.begin_round()
        hear(ways, plan, *ttls)
        ways.end_round(at, at + 1)
    marks = ways.take_marks()
    assert [(one.before, one.now) for one in marks] == found
    assert {(one.kind, one.last_before, one.first_now) for one in marks} <= {("hops", 10, 31)}


def test_a_path_that_is_narrower_is_a_mark() -> None:
    """By what rounds measured; a round that measured nothing says nothing."""
    ways = Ways(lambda: 0.0)
    for at, width in ((10, 1500), (20, None), (30, 1400)):
        ways.begin_round()
        ways.add(replace(PASSED, path_mtu_bytes=width))
        ways.end_round(at, at + 1)
    assert ways.take_marks() == (
        RouteMark("path-mtu", PASSED.source, (PASSED.destination,), 10, 31, "1500", "1400"),
    )


@pytest.mark.parametrize(
    ("good", "bad_at", "words"),
    [
        (150, 151, "the way changed 40 to 52 s before it began: "),
        (105, 106, "the way changed within 7 s of its begin: "),
        (80, 95, None),
        (800, 801, None),
    ],
)
def test_an_outage_has_the_changes_of_its_hosts_shortly_before_it(
    good: float, bad_at: float, words: str | None
) -> None:
    """Not those that came after it, nor old ones, nor those of other hosts."""
    others = replace(CHANGE, source="c", destinations=("d",))
    marks = replace(look(bad_at, DROPPED), marks=(CHANGE, others))
    history = replay([look(good), marks])
    (outage,) = history.outages
    assert history.marks == (CHANGE, others)
    assert outage.marks == ((CHANGE,) if words else ())
    change = "next hop from a to b: 10.0.0.1 -> 10.0.0.9"
    assert word_marks(outage) == ([words + change] if words else [])


def test_a_change_of_the_way_back_belongs_to_an_outage() -> None:
    """Answers take it."""
    back = replace(CHANGE, source="b", destinations=("x", "a"))
    looks = [look(150), replace(look(151, bad({OTHER: ((1, 1),)}), DROPPED), marks=(back,))]
    found = {one.members[0].key: one.marks for one in replay(looks).outages}
    assert found == {OTHER: (), TCP: (back,)}

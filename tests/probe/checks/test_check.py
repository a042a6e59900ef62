"""The loop of the checks: which flows a check gets, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import pytest
from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome
from netprobe.model.notes import BundleNote
from netprobe.probe.checks.check import Check, Need, Scene, apply_check, run_checks
from netprobe.probe.flows.prober import Observation
from tests.patience import PATIENCE_S
from tests.probe.builders import SOURCE, TARGET, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, host

OPEN = Outcome("connect", None, answer="unasked")

Look = Callable[[list[Observation]], list[Observation]]


def note(group: list[Observation]) -> list[Observation]:
    """A look that concludes something of every flow."""
    return [replace(one, limited=True) for one in group]


class Scripted(Check):
    """A check of TCP flows whose look is a function; it notes the groups that it was given."""

    def __init__(
        self,
        conclude: Look = note,
        name: str = "scripted",
        needs: Need | None = None,
        vital: bool = False,
        probes_listeners: bool = False,
    ) -> None:
        self.name = name  # type: ignore[misc]  # several checks of one class
        self.needs = needs  # type: ignore[misc]  # the same
        self.vital = vital  # type: ignore[misc]  # the same
        self.probes_listeners = probes_listeners  # type: ignore[misc]  # the same
        self.groups: list[list[Observation]] = []
        self._conclude = conclude

    def concerns(self, seen: Observation) -> bool:
        return seen.task.protocol == "tcp"

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        self.groups.append(group)
        return self._conclude(group)


def lose(group: list[Observation]) -> list[Observation]:
    """A look whose agent is gone."""
    raise AgentError("agent-lost", "gone")


def flow(
    protocol: str = "tcp", port: int = 443, source: str = "a", target: str = "b"
) -> Observation:
    """A flow of which something was seen."""
    ends = {"source": host(source, "10.0.0.1"), "target": host(target, f"10.0.1.{len(target)}")}
    return make_observation(OPEN, make_task(protocol, ((port, port),), **ends))


def bare_scene(target: FakeAgent | None = None) -> Scene:
    return make_scene(FakeAgent(SOURCE), target)


async def test_flows_of_one_source_and_address_are_looked_at_together() -> None:
    """Every pair is a group of its own, unless the check says otherwise."""
    check = Scripted()
    first, second = flow(port=1), flow(port=2)
    other_source, other_target = flow(source="c"), flow(target="bb")

    await apply_check(check, [first, other_source, second, other_target], bare_scene())

    assert check.groups == [[first, second], [other_source], [other_target]]


async def test_what_does_not_concern_a_check_stays_as_it_was() -> None:
    """No look, no conclusion and no entry in its trail."""
    check = Scripted()
    udp, tcp = flow("udp"), flow()

    found = await apply_check(check, [udp, tcp], bare_scene())

    assert found[0] is udp
    assert check.groups == [[tcp]]
    assert found[1].limited


async def test_without_flows_nothing_is_looked_at() -> None:
    """A destination may have no flow that concerns a check."""
    check = Scripted()

    assert await apply_check(check, [flow("udp")], bare_scene()) != []
    assert check.groups == []


@pytest.mark.parametrize(
    ("needs", "with_agent", "runs"),
    [
        (None, True, True),
        (None, False, True),
        ("agent", True, True),
        ("agent", False, False),
        ("no-agent", True, False),
        ("no-agent", False, True),
    ],
)
async def test_a_check_runs_where_the_scene_has_what_it_needs(
    needs: Need | None, with_agent: bool, runs: bool
) -> None:
    """Listeners of ours are there, or nobody is: some looks make sense in one case only."""
    check = Scripted(needs=needs)
    scene = bare_scene(FakeAgent(TARGET) if with_agent else None)

    (found,) = await run_checks([check], [flow()], scene)

    assert (len(check.groups) == 1) is runs
    assert found.limited is runs


async def test_each_check_sees_what_the_earlier_ones_found() -> None:
    """Checks run one after the other, and the trail has their order."""
    first, second = Scripted(name="first"), Scripted(name="second")

    (found,) = await run_checks([first, second], [flow()], bare_scene())

    assert second.groups[0][0].limited
    assert [entry.name for entry in found.trail] == ["first", "second"]


@pytest.mark.parametrize("target", [None, FakeAgent(TARGET)])
async def test_where_the_source_is_gone_its_group_stays(target: FakeAgent | None) -> None:
    """What it saw stands as it is; other groups are looked at nevertheless."""
    mine, other = flow(), flow(source="c")
    check = Scripted(lambda group: lose(group) if group == [mine] else note(group))

    found = await apply_check(check, [mine, other], bare_scene(target))

    assert found[0] is mine
    assert (found[1].limited, found[1].trail[-1].name) == (True, "scripted")


@pytest.mark.parametrize(("vital", "lost"), [(False, True), (True, False), (True, True)])
async def test_the_loss_of_the_destinations_agent_ends_the_round(vital: bool, lost: bool) -> None:
    """A bug of an agent counts as its loss where the flows mean nothing without the check."""
    scene = bare_scene(FakeAgent(TARGET, lost=lost))

    with pytest.raises(AgentError):
        await run_checks([Scripted(lose, vital=vital, probes_listeners=True)], [flow()], scene)


async def test_what_our_listeners_proved_outlives_the_destinations_agent() -> None:
    """A check that does not probe them has nothing to do with that agent's loss."""
    scene, seen = bare_scene(FakeAgent(TARGET, lost=True)), flow()

    assert await run_checks([Scripted(lose)], [seen], scene) == [seen]


async def test_without_a_round_nothing_is_lost() -> None:
    """There is no agent at the destination whose loss could spoil the flows."""
    seen = flow()

    assert await run_checks([Scripted(lose, vital=True)], [seen], bare_scene()) == [seen]


@pytest.mark.asyncio(loop_factories=["real"])
async def test_every_flow_that_was_looked_at_has_one_entry_with_its_time() -> None:
    """A check may note what it saw itself; then that entry has the time."""

    class Slow(Scripted):
        async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
            await asyncio.sleep(0.004)
            noted = group[0].noting(self.name, BundleNote(1), "bad")
            return [noted, *note(group[1:])]

    found = await apply_check(Slow(), [flow(port=1), flow(port=2)], bare_scene())

    entries = [[(entry.name, entry.status, entry.note) for entry in one.trail] for one in found]
    assert entries == [[("scripted", "bad", BundleNote(1))], [("scripted", "ok", None)]]
    assert all(one.trail[0].elapsed_ms >= 3 for one in found)


async def test_what_a_look_leaves_as_it_was_has_no_entry() -> None:
    """A check that had nothing to ask did not look."""
    seen = flow()

    (found,) = await apply_check(Scripted(lambda group: group), [seen], bare_scene())

    assert found is seen


async def test_an_entry_of_an_earlier_check_stays_as_it_is() -> None:
    """Times are those of the check's own look."""
    seen = flow().noting("earlier", BundleNote(1))

    (found,) = await apply_check(Scripted(), [seen], bare_scene())

    assert found.trail[0] is seen.trail[0]
    assert [entry.name for entry in found.trail] == ["earlier", "scripted"]


async def test_groups_are_looked_at_side_by_side() -> None:
    """One source that waits for a router's bucket does not hold the others up."""
    together = asyncio.Barrier(2)

    class Meeting(Scripted):
        async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
            await together.wait()
            return note(group)

    async with asyncio.timeout(PATIENCE_S):
        found = await apply_check(Meeting(), [flow(), flow(source="c")], bare_scene())

    assert all(one.limited for one in found)


def break_at(source: str) -> Look:
    """A look that fails, as nobody foresaw, at what this source saw."""

    def conclude(group: list[Observation]) -> list[Observation]:
        if any(one.task.source.name == source for one in group):
            raise KeyError("odd")
        return note(group)

    return conclude


class OneGroup(Scripted):
    """A check that looks at all flows of a destination at once."""

    def group(self, seen: Observation) -> Hashable:
        return None


@pytest.mark.parametrize("vital", [False, True])
async def test_a_look_that_fails_takes_only_its_source_along(vital: bool) -> None:
    """What nobody foresaw is a flow that is not tested, and the words name check and exception."""
    check = OneGroup(break_at("c"), vital=vital)
    mine, other, odd = flow(port=1), flow(port=2), flow(source="c")

    found = await apply_check(check, [mine, odd, other], bare_scene(FakeAgent(TARGET)))

    assert sorted(one.task.source.name for one in found if one.limited) == ["a", "a"]
    (broken,) = (one for one in found if not one.limited)
    assert (broken.outcome, broken.ports) == (None, odd.ports)
    reason, words = broken.untested or ("", "")
    assert reason == "netprobe-fault"
    assert words.startswith("the check scripted failed (KeyError: 'odd'; a bug in netprobe")

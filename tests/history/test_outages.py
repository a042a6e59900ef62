"""Outages of looks, against a truth that the test makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.history.outages import replay
from netprobe.model.outage import Cause, FlowPorts, Outage, RunLook, SeenFinding
from netprobe.model.ports import Ports, intersect
from netprobe.model.required import RequiredBlock, RequiredFlows
from netprobe.model.result import PORTLESS, ResultKey

TCP: ResultKey = ("m", "etcd", "a", "b", "10.0.0.2", "tcp")
ECHO: ResultKey = ("m", "icmp", "a", "b", "10.0.0.2", "icmp")
OTHER: ResultKey = ("m", "etcd", "c", "b", "10.0.0.2", "tcp")
ASKED: FlowPorts = {TCP: ((1, 20),), ECHO: PORTLESS, OTHER: ((1, 20),)}
DROP = Cause("blocked", "no-response", ("path",), None)
REJECT = Cause("blocked", "admin-prohibited", ("path",), "10.0.0.1")


def bad(flows: FlowPorts, cause: Cause = DROP, title: str = "dropped") -> SeenFinding:
    return SeenFinding(title, cause, "none", flows)


def look(
    at: float, *findings: SeenFinding, asked: FlowPorts = ASKED, blind: FlowPorts | None = None
) -> RunLook:
    """A look that took a second."""
    return RunLook(at, at + 1, asked, findings, {("a", "no-agent"): blind} if blind else {})


def times(outage: Outage) -> tuple[float | None, float, float, float | None]:
    found = outage.times
    return (found.last_good, found.first_bad, found.last_bad, found.first_good)


def test_an_outage_has_four_times() -> None:
    """Its start lies after the last look that saw it good, its end before the next such one."""
    drop = bad({TCP: ((5, 9),)})
    (found,) = replay([look(10), look(20, drop), look(30, drop), look(40), look(50)]).outages

    assert times(found) == (10, 21, 30, 41)
    assert found.looks == 2
    assert [(one.key, one.ports) for one in found.members] == [(TCP, ((5, 9),))]


def test_what_was_never_seen_good_or_goes_on() -> None:
    """The first look that is bad has no good one before it, the last none after it."""
    (found,) = replay([look(10, bad({ECHO: PORTLESS}))]).outages

    assert times(found) == (None, 11, 10, None)
    assert found.is_open


def require(*sources: str) -> RequiredFlows:
    """What a plan with these sources requires."""
    rows = (("etcd", "tcp"), ("icmp", "icmp"))
    ends = {"b": frozenset({"10.0.0.2"})}
    return RequiredFlows(tuple(RequiredBlock("m", *row, frozenset(sources), ends) for row in rows))


def test_what_is_required_no_more_ends() -> None:
    """A plan without its host, where the one before had it; what no plan of a watch had stays."""
    two = bad({TCP: ((5, 9),)}), bad({OTHER: ((5, 9),)}, REJECT)
    both, one = require("a", "c"), require("a")
    looks = [replace(look(10), required=both), replace(look(20, *two), required=both)]
    blind = replace(look(30, two[0], blind={OTHER: ((1, 1),)}), required=one)
    found = replay([*looks, blind, replace(look(40, two[0]), required=one)]).outages
    left, stays = sorted(found, key=lambda one: one.is_open)

    assert (left.times.first_good, left.times.not_required_since, left.is_open) == (None, 30, False)
    assert stays.is_open
    # A run that somebody adds requires nothing, and what it found is not the watch's to end.
    rest = replace(look(30, asked={TCP: ((1, 20),)}), required=RequiredFlows(one.blocks[:1]))
    (added,) = replay([replace(look(10), required=one), look(20, two[1]), rest]).outages
    assert added.is_open
    # Who returns and is bad still begins anew.
    again = replay([*looks, blind, replace(look(40, *two), required=both)]).outages
    assert sorted(one.is_open for one in again) == [False, True, True]


def test_an_outage_of_which_a_part_is_required_no_more_ends_with_the_rest() -> None:
    """Its end is that of the flows that stayed."""
    drop = bad({TCP: ((5, 9),), OTHER: ((5, 9),)})
    looks = [replace(look(20, drop), required=require("a", "c")), look(40)]
    (going_on,) = replay(
        [looks[0], replace(look(30, bad({TCP: ((5, 9),)})), required=require("a"))]
    ).outages
    (ended,) = replay([looks[0], replace(looks[1], required=require("a"))]).outages

    assert going_on.is_open
    assert (ended.times.first_good, ended.times.not_required_since) == (41, None)
    assert {one.key: one.times.end for one in ended.members} == {TCP: 41, OTHER: 40}


def test_nobody_is_blind_for_what_is_required_no_more() -> None:
    """The host is gone, and so nothing of it can be seen again."""
    blind = replace(look(10, blind={TCP: ((1, 20),)}), required=require("a", "c"))
    (found,) = replay([blind, replace(look(20), required=require("c"))]).blind

    assert (found.host, found.until) == ("a", 20)


def test_each_flow_has_its_own_times() -> None:
    """Flows that join later, and a part of a range that is mended first."""
    looks = [
        look(10),
        look(20, bad({TCP: ((5, 9),)})),
        look(30, bad({TCP: ((5, 9),), OTHER: ((1, 1),)})),
        look(40, bad({TCP: ((8, 9),), OTHER: ((1, 1),)})),
        look(50),
    ]
    (found,) = replay(looks).outages
    own = {(one.key, one.ports): one.times for one in found.members}

    assert times(found) == (10, 21, 40, 51)
    assert {key: (one.last_good, one.last_bad, one.first_good) for key, one in own.items()} == {
        (TCP, ((5, 7),)): (10, 30, 41),
        (TCP, ((8, 9),)): (10, 40, 51),
        (OTHER, ((1, 1),)): (20, 40, 51),
    }


def test_blindness_and_other_plans_change_nothing() -> None:
    """A look that did not ask a flow, or saw nothing of it, does not end or date its outage."""
    drop = bad({TCP: ((5, 9),)})
    looks = [
        look(10),
        look(12, blind={TCP: ((1, 20),)}),
        look(20, drop),
        look(30, asked={OTHER: ((1, 20),)}),
        look(40, blind={TCP: ((5, 9),)}),
        look(50),
    ]
    history = replay(looks)
    (found,) = history.outages

    assert times(found) == (10, 21, 20, 51)
    assert [(one.host, one.since, one.until) for one in history.blind] == [
        ("a", 12, 20), ("a", 40, 50),
    ]  # fmt: skip


def test_two_causes_are_two_outages() -> None:
    """Whoever refuses new flows beside a drop is an outage of its own; the drop goes on."""
    looks = [
        look(10),
        look(20, bad({TCP: ((5, 9),)})),
        look(30, bad({TCP: ((5, 9),)}), bad({OTHER: ((1, 20),)}, REJECT, "rejected")),
    ]
    found = replay(looks).outages

    assert [(one.title, times(one)) for one in found] == [
        ("dropped", (10, 21, 30, None)),
        ("rejected", (20, 31, 30, None)),
    ]
    assert len({one.id for one in found}) == 2


def test_an_outage_that_comes_again_is_another_one() -> None:
    """Between two outages of one flow the flow was good."""
    drop = bad({TCP: ((5, 9),)})
    found = replay([look(10, drop), look(20), look(30, drop), look(40)]).outages

    assert [times(one) for one in found] == [(None, 11, 10, 21), (20, 31, 30, 41)]
    assert found[0].id != found[1].id


def test_the_title_counts_flows_that_joined() -> None:
    """It is that of the finding with which the last flows joined; the name stays."""
    few, more = (
        bad({TCP: ((5, 9),)}, title="one"),
        bad({TCP: ((5, 9),), OTHER: ((1, 1),)}, title="two"),
    )
    (before,) = replay([look(10, few)]).outages
    (found,) = replay([look(10, few), look(20, more), look(30, few)]).outages

    assert (found.title, found.id) == ("two", before.id)


def test_blindness_lasts_while_other_flows_are_asked() -> None:
    """A look of another plan, between two that were blind, does not end it."""
    blind: FlowPorts = {TCP: ((1, 20),)}
    looks = [
        look(10, blind=blind),
        look(20, asked={OTHER: ((1, 20),)}),
        look(30, blind=blind),
        look(40),
    ]
    history = replay(looks)

    assert [(one.since, one.until) for one in history.blind] == [(10, 40)]


def test_looks_at_the_same_time_say_nothing_of_each_other() -> None:
    """What a long run saw bad may have begun after a short one inside of it saw it good."""
    drop = bad({TCP: ((5, 9),)})
    long = RunLook(20, 60, ASKED, (drop,), {})
    inside = look(30)
    (found,) = replay([look(10), long, inside, look(70)]).outages

    assert times(found) == (10, 60, 20, 71)
    good = RunLook(20, 60, ASKED, (), {})
    (found,) = replay([look(10), good, look(30, drop)]).outages
    assert times(found) == (10, 31, 30, None)


def test_a_retry_ends_what_it_asked_again() -> None:
    """What it kept of the run before it, it did not see: that ends and dates nothing."""
    drop, hole = bad({TCP: ((5, 9),)}), bad({OTHER: ((1, 20),)}, DROP, "hole")
    retry = RunLook(30, 31, ASKED, (), {}, retried=10)
    looks = [look(10, drop), look(20, hole, asked={OTHER: ((1, 20),)}), retry]
    found = replay([*looks, look(40, bad({ECHO: PORTLESS}))]).outages

    assert [times(one) for one in found] == [
        (None, 11, 10, 31), (10, 21, 20, 41), (10, 41, 40, None),
    ]  # fmt: skip


def test_findings_of_one_look_have_different_names() -> None:
    """Two that differ in their ports only, with the same cause and the same first flow."""
    found = replay([look(10, bad({TCP: ((1, 2),)}), bad({TCP: ((8, 9),)}))]).outages

    assert len({one.id for one in found}) == 2


def test_findings_that_split_and_merge_are_one_outage() -> None:
    """Its flows go on, whichever findings fold them, and each look counts once."""
    both = bad({TCP: ((5, 9),), OTHER: ((1, 1),)})
    looks = [
        look(10, both),
        look(20, bad({TCP: ((5, 9),)}), bad({OTHER: ((1, 1),)})),
        look(30, both),
    ]
    (found,) = replay([*looks, look(40)]).outages

    assert times(found) == (None, 11, 30, 41)
    assert found.looks == 3


FLOWS = [(TCP, port) for port in range(1, 6)] + [(OTHER, port) for port in range(1, 4)]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from(FLOWS), st.integers(0, 60), st.integers(1, 25)), max_size=8
    ),
    st.lists(st.tuples(st.integers(1, 90), st.sets(st.sampled_from(FLOWS))), min_size=1,
             max_size=12, unique_by=lambda one: one[0]),
)  # fmt: skip
def test_every_interval_holds_what_was_true(
    faults: list[tuple[tuple[ResultKey, int], int, int]],
    moments: list[tuple[int, set[tuple[ResultKey, int]]]],
) -> None:
    """For random faults and looks, some of them blind: a flow is in an outage at each look that
    saw it bad, in none at a look that saw it good, and the true start and end are between the
    times that are told, where no second fault hides them."""
    true = {flow: sorted((b, b + n) for f, b, n in faults if f == flow) for flow in FLOWS}

    def is_bad(flow: tuple[ResultKey, int], at: int) -> bool:
        return any(begin <= at < end for begin, end in true[flow])

    # As a ledger gives them: a finding that does not change is the same object.
    findings = {flow: bad(join({flow})) for flow in FLOWS}
    looks = []
    for at, unseen in sorted(moments, key=lambda one: one[0]):
        failing = {flow for flow in FLOWS if is_bad(flow, at)} - unseen
        asked = {key: ((1, 5),) if key == TCP else ((1, 3),) for key in (TCP, OTHER)}
        looks.append(
            RunLook(at, at, asked, tuple(findings[flow] for flow in sorted(failing)),
                 {("a", "no-agent"): join(unseen)} if unseen else {})
        )  # fmt: skip
    outages = replay(looks).outages

    for flow in FLOWS:
        spans = [
            one.times
            for outage in outages
            for one in outage.members
            if one.key == flow[0] and intersect(one.ports, ((flow[1], flow[1]),))
        ]
        for at, unseen in moments:
            if flow not in unseen:
                inside = [s for s in spans if s.first_bad <= at <= s.last_bad]
                assert bool(inside) == is_bad(flow, at)
        for span in spans:
            begins = [begin for begin, _ in true[flow]]
            ends = [end for _, end in true[flow]]
            low = -1 if span.last_good is None else span.last_good
            assert any(low < begin <= span.first_bad for begin in begins)
            high = 1000 if span.first_good is None else span.first_good
            assert any(span.last_bad < end <= high for end in ends)


def join(flows: set[tuple[ResultKey, int]]) -> FlowPorts:
    found: dict[ResultKey, Ports] = {}
    for key, port in sorted(flows):
        found[key] = (*found.get(key, ()), (port, port))
    return found

"""Accepted flows: exactly those of the entry, no day longer, and what became of every entry."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.judge.accepted import Acceptances
from netprobe.model.accepted import Acceptance, CheckedAcceptance
from netprobe.model.ports import each, normalise
from netprobe.model.result import Result
from tests.report.samples import BLOCKED, INFO, PASSED, port

TODAY = date(2026, 11, 22)
ENTRY = Acceptance(
    id="a1",
    matrix="deckhouse-nodes",
    requirement="etcd",
    from_=("master-0",),
    to=("master-1",),
    protocol="tcp",
    ports=((2379, 2380),),
    verdict="blocked",
    reason="new firewall",
    owner="team",
    ticket="CHG-1",
    since="2026-11-01",
    until="2027-01-31",
)


def mark(result: Result, *entries: Acceptance, today: date = TODAY) -> list[Result]:
    """What becomes of a result."""
    return list(Acceptances(entries or (ENTRY,), today).mark(result))


def check(entry: Acceptance, *results: Result, **changes: Any) -> CheckedAcceptance:
    """What a run says of an entry."""
    (found,) = Acceptances((entry,), TODAY).check(results, replace(INFO, **changes))
    return found


def test_a_failure_is_accepted() -> None:
    """It keeps its verdict, says who accepted it until when, and decides nothing."""
    (found,) = mark(BLOCKED)

    assert found.accepted == ENTRY.signature
    assert (found.verdict, found.decides) == ("blocked", False)
    assert replace(found, accepted=None) == BLOCKED


@pytest.mark.parametrize(
    "change",
    [
        {"matrix": "other"},
        {"requirement": "kubelet"},
        {"source": "master-2"},
        {"destination": "master-2"},
        {"protocol": "udp"},
        {"port": 2381, "end_port": 2381},
        {"verdict": "inconclusive"},
        {"verdict": "not-tested"},
        {"verdict": "exposed"},
        {"verdict": "pass"},
    ],
)
def test_nothing_else_is(change: dict[str, Any]) -> None:
    """Another flow decides, and so does the same flow with another verdict."""
    other = replace(BLOCKED, **change)

    assert mark(other) == [other]
    assert other.decides


@pytest.mark.parametrize(("days", "holds"), [(-1, True), (0, True), (1, False)])
def test_last_day(days: int, holds: bool) -> None:
    """The last day is inside; on the next the failure counts again."""
    day = date(2027, 1, 31) + timedelta(days)
    (found,) = mark(BLOCKED, today=day)

    assert (found.accepted is not None) == holds
    assert found.decides != holds


@pytest.mark.parametrize(("since", "holds"), [("2026-11-22", True), ("2026-11-23", False)])
def test_first_day(since: str, holds: bool) -> None:
    """The first day is inside; until then the failure counts, and the entry is not in force."""
    entry = replace(ENTRY, since=since)
    (found,) = mark(BLOCKED, entry)
    checked = check(entry, found)

    assert (found.accepted is not None, found.decides) == (holds, not holds)
    assert (checked.state, checked.is_in_force) == ("active" if holds else "not-yet", holds)
    assert (checked.flows, checked.counting) == (1, 0 if holds else 1)


@pytest.mark.parametrize(
    ("until", "state"), [("2027-01-31", "elsewhere"), ("2026-11-01", "expired")]
)
def test_elsewhere(until: str, state: str) -> None:
    """A flow that fails at another place, or perhaps there, is no reason to call it gone."""
    entry = replace(ENTRY, where=("path",), until=until)
    doubtful = replace(BLOCKED, where=("destination", "path"))
    found = check(entry, doubtful, port(PASSED, 2380))

    assert (found.state, found.flows, found.elsewhere) == (state, 0, 1)
    assert check(entry, replace(doubtful, where=("path",))).elsewhere == 0


def test_extended() -> None:
    """What a second entry accepts does not count again when the first one ends."""
    old = replace(ENTRY, id="old", until="2026-11-21")
    for entries, counting in (((old,), 1), ((old, ENTRY), 0)):
        accepted = Acceptances(entries, TODAY)
        first, *_ = accepted.check(list(accepted.mark(BLOCKED)), INFO)
        assert (first.state, first.flows, first.counting) == ("expired", 1, counting)


def test_never_ends() -> None:
    """Who writes never means it."""
    (found,) = mark(BLOCKED, replace(ENTRY, until="never"), today=date(2999, 1, 1))

    assert found.accepted is not None


def test_ports_are_cut() -> None:
    """Of a range only the accepted ports are accepted, and no port is lost."""
    found = mark(port(BLOCKED, 2370, 2390))

    assert sorted((one.port, one.end_port, one.decides) for one in found) == [
        (2370, 2378, True),
        (2379, 2380, False),
        (2381, 2390, True),
    ]


def test_what_was_accepted_before_is_forgotten() -> None:
    """A result of an earlier run is held against today's entries alone."""
    (before,) = mark(BLOCKED)

    assert mark(before, today=date(2027, 2, 1)) == [BLOCKED]


@pytest.mark.parametrize(
    ("where", "places", "fits"),
    [
        (("path",), ("path",), True),
        (("path",), ("destination", "path"), False),
        (("destination", "path"), ("path",), True),
        (("path",), (), False),
        ((), ("service",), True),
    ],
)
def test_where(where: Any, places: Any, fits: bool) -> None:
    """With places an entry holds only while no other place is possible."""
    (found,) = mark(replace(BLOCKED, where=places), replace(ENTRY, where=where))

    assert (found.accepted is not None) == fits


def test_addresses() -> None:
    """With addresses an entry is about these only."""
    entry = replace(ENTRY, addresses=("fd00::11",))
    (old,), (new,) = mark(BLOCKED, entry), mark(replace(BLOCKED, address="fd00::11"), entry)

    assert (old.accepted is None, new.accepted is None) == (True, False)


def test_a_host_to_itself() -> None:
    """All to all does not mean a host to itself; that needs an entry of its own."""
    itself = replace(BLOCKED, destination="master-0", address="10.0.0.10")
    both = replace(ENTRY, from_=("master-0", "master-1"), to=("master-0", "master-1"))
    alone = replace(ENTRY, to=("master-0",))

    assert mark(itself, both) == [itself]
    assert mark(itself, alone)[0].accepted is not None


@pytest.mark.parametrize(
    ("until", "results", "state", "flows", "passing"),
    [
        ("2026-12-07", [BLOCKED], "active", 1, 0),
        ("2026-12-06", [BLOCKED], "expiring", 1, 0),
        ("2026-11-22", [BLOCKED], "expiring", 1, 0),
        ("2026-11-21", [BLOCKED], "expired", 1, 0),
        ("2026-11-21", [PASSED], "expired", 0, 1),
        ("never", [BLOCKED], "active", 1, 0),
        ("2027-01-31", [PASSED, port(PASSED, 2380)], "stale", 0, 2),
        ("2027-01-31", [], "unmatched", 0, 0),
        ("2027-01-31", [replace(BLOCKED, destination="master-9")], "unmatched", 0, 0),
        ("2027-01-31", [replace(BLOCKED, verdict="exposed")], "stale", 0, 0),
        ("2027-01-31", [BLOCKED, port(PASSED, 2380)], "too-wide", 1, 1),
        ("2027-01-31", [replace(BLOCKED, verdict="not-tested")], "unseen", 0, 0),
        ("2027-01-31", [PASSED, port(BLOCKED, 2380, verdict="inconclusive")], "unseen", 0, 1),
    ],
)
def test_states(until: str, results: list[Result], state: str, flows: int, passing: int) -> None:
    """Every entry has one state: in force, about to end, over, needless, too wide, or not seen."""
    found = check(replace(ENTRY, until=until), *results)

    assert (found.state, found.flows, found.passing) == (state, flows, passing)
    assert found.is_in_force == (state != "expired")


@pytest.mark.parametrize(
    "change",
    [{"selection": "--to master-2"}, {"sample": "1 of 9"}, {"complete": False}, {"matrices": ()}],
)
def test_a_part_of_a_plan_makes_nothing_stale(change: dict[str, Any]) -> None:
    """What a run did not look at may fail as before; only if it saw all of it, it knows."""
    assert check(ENTRY, **change).state == "unseen"
    assert check(ENTRY, PASSED, **change).state == "unseen"
    assert check(ENTRY, PASSED, port(PASSED, 2380), **change).state == "stale"


def test_all_of_an_entry_between_the_same_hosts() -> None:
    """A host to itself is no flow of it, so that two flows are all there are."""
    both = ("master-0", "master-1")
    entry = replace(ENTRY, from_=both, to=both, ports=((2379, 2379),))
    back = replace(PASSED, source="master-1", destination="master-0")

    assert check(entry, PASSED, selection="a part").state == "unseen"
    assert check(entry, PASSED, back, selection="a part").state == "stale"


PORTS = st.tuples(st.integers(1, 12), st.integers(0, 5)).map(lambda two: (two[0], sum(two)))
HOSTS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    st.lists(st.tuples(HOSTS, HOSTS, st.lists(PORTS, min_size=1, max_size=2)), max_size=3),
    st.sampled_from("abc"),
    st.sampled_from("abc"),
    PORTS,
)
def test_port_by_port(
    wishes: list[Any], source: str, destination: str, ports: tuple[int, int]
) -> None:
    """A port of a failing range is accepted if an entry has its hosts and it; none is lost."""
    entries = [
        replace(ENTRY, id=f"e{index}", from_=froms, to=tos, ports=normalise(ranges))
        for index, (froms, tos, ranges) in enumerate(wishes)
    ]
    expected = {
        number: any(
            source in froms
            and destination in tos
            and (source != destination or froms == tos == (source,))
            and any(first <= number <= last for first, last in ranges)
            for froms, tos, ranges in wishes
        )
        for number in each((ports,))
    }
    result = port(replace(BLOCKED, source=source, destination=destination), *ports)
    found = [
        (number, one.accepted is not None)
        for one in Acceptances(entries, TODAY).mark(result)
        for number in each(one.ports)
    ]

    assert sorted(found) == sorted(expected.items())

"""From a finding to entries and back: they accept its flows, and no other flow of any run."""

from __future__ import annotations

import io
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.judge.accepted import Acceptances
from netprobe.load.accepted import load_accepted
from netprobe.model.accepted import Acceptance
from netprobe.model.ports import each
from netprobe.model.result import Result
from netprobe.request.accepting import Consent, accept, addresses_of_run, write_accepted
from tests.report.samples import BLOCKED, PASSED, port
from tests.request.samples import HOSTILE

TODAY = date(2026, 11, 22)
CONSENT = Consent("new firewall", "team", "CHG-1", "2026-11-22", "2027-01-31")
# Of each host the addresses that a run probed; c's belong to it alone.
ADDRESSES = {"a": ("10.0.0.1", "fd00::1"), "b": ("10.0.0.2", "fd00::2"), "c": ("10.0.0.3",)}
SINGLE = [
    (source, destination, address, number)
    for source, destination in product("abc", repeat=2)
    for address in ADDRESSES[destination]
    for number in (1, 2, 3, 7)
]


def result_of(single: tuple[str, str, str, int], base: Result = BLOCKED) -> Result:
    """The result of one flow."""
    source, destination, address, number = single
    ends = {"source": source, "destination": destination, "address": address}
    return port(replace(base, **ends), number)  # all are texts


def written(*entries: Acceptance, comment: str = "finding 1") -> str:
    """The text of a new file."""
    stream = io.StringIO()
    write_accepted([(comment, entries)], stream, is_new=True)
    return stream.getvalue()


@pytest.mark.slow
@given(st.sets(st.sampled_from(SINGLE), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_exactly_these_flows(tmp_path: Path, failed: set[tuple[str, str, str, int]]) -> None:
    """Whatever failed, written and read back, the file accepts that and nothing else."""
    results = [result_of(one, BLOCKED if one in failed else PASSED) for one in SINGLE]
    members = [one for one in results if one.verdict == "blocked"]
    path = tmp_path / "a.yaml"
    path.write_text(written(*accept(members, addresses_of_run(results), CONSENT)))
    accepted = Acceptances(load_accepted([str(path)]), TODAY)
    marked = [
        (one.source, one.destination, one.address, number)
        for single in SINGLE
        for one in accepted.mark(result_of(single))
        if one.accepted is not None
        for number in each(one.ports)
    ]

    assert sorted(marked) == sorted(failed)


def test_few_entries() -> None:
    """All to all of 20 hosts is one entry; addresses stand there only where some are not meant."""
    names = [f"h{number}" for number in range(20)]
    members = [
        result_of((one, two, f"10.0.0.{two[1:]}", number))
        for one, two in product(names, repeat=2)
        if one != two
        for number in (1, 2, 3)
    ]
    (entry,) = accept(members, addresses_of_run(members), CONSENT)
    six = replace(members[0], address="fd00::1", verdict="pass")
    more = accept(members, addresses_of_run([*members, six]), CONSENT)

    assert (len(entry.from_), len(entry.to), entry.ports) == (20, 20, ((1, 3),))
    assert entry.addresses == ()
    assert sorted(one.addresses for one in more) == [(), ("10.0.0.1",)]


def test_a_host_to_itself_and_icmp() -> None:
    """Each has an entry of its own; a protocol without ports has none."""
    itself = replace(BLOCKED, destination="master-0")
    echo = replace(BLOCKED, protocol="icmp", port=None, end_port=None)
    members = [BLOCKED, itself, echo]
    entries = accept(members, addresses_of_run(members), CONSENT)

    assert [(one.to, one.protocol, one.ports) for one in entries] == [
        (("master-1",), "tcp", ((2379, 2379),)),
        (("master-0",), "tcp", ((2379, 2379),)),
        (("master-1",), "icmp", ()),
    ]
    assert len({one.id for one in entries}) == 3


def test_the_same_place() -> None:
    """Where it is wished, the places that are possible now are written down."""
    (entry,) = accept([BLOCKED], {}, replace(CONSENT, same_place=True))

    assert entry.where == ("destination", "path")
    assert "where: [destination, path]" in written(entry)


@pytest.mark.parametrize("until", ["2027-01-31", "never"])
def test_the_file(until: str, tmp_path: Path) -> None:
    """The file is for people, too, and read back it is the entry."""
    (entry,) = accept([BLOCKED], {}, replace(CONSENT, until=until))
    path = tmp_path / "a.yaml"
    path.write_text(written(entry, comment="finding 2 of run.jsonl: tcp 2379 is dropped (1 flow)"))

    assert load_accepted([str(path)]) == (entry,)
    assert path.read_text().splitlines()[:4] == [
        "schema: netprobe.accepted/1",
        "accepted:",
        "  # finding 2 of run.jsonl: tcp 2379 is dropped (1 flow)",
        f'  - id: "{entry.id}"' if entry.id[0].isdigit() else f"  - id: {entry.id}",
    ]


def test_hostile_texts(tmp_path: Path) -> None:
    """What people and runs say stays text: no second entry, no other key."""
    words: dict[str, Any] = {"reason": HOSTILE, "owner": "- a: b", "ticket": "'#1"}
    strange = replace(BLOCKED, source="a: - id: 'b", destination="x: [y")
    (entry,) = accept([strange], {}, replace(CONSENT, **words))
    path = tmp_path / "a.yaml"
    path.write_text(written(entry, comment=f"finding\n  - id: evil {HOSTILE}"))
    (read,) = load_accepted([str(path)])

    assert (read.from_, read.to) == (("a: - id: 'b",), ("x: [y",))
    assert (read.reason, read.owner, read.ticket) == (HOSTILE.strip(), "- a: b", "'#1")

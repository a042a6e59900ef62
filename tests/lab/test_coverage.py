"""``--cover zones`` in zones of real machines: what it finds, completes, and says of the rest."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from tests.lab.cli import netprobe
from tests.lab.covering import WIRES, build_zones, read_found, run_covering, stop_on_router
from tests.lab.netlab import Lab
from tests.plan.covering import Fault, check_against_truth, draw_faults

pytestmark = pytest.mark.lab

ZONES, SIZE = 3, 4


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Twelve hosts in three zones."""
    with Lab() as lab:
        build_zones(lab, ZONES, SIZE)
        yield lab


@pytest.mark.full
def test_random_faults_are_found_and_none_is_invented(lab: Lab) -> None:
    """Zone to zone, host to zone and zone to host; and then what was found is kept and retried."""
    faults = draw_faults(random.Random(1), ZONES, SIZE, WIRES)
    stop_on_router(lab, faults)
    done = run_covering(lab, "--cover", "zones", "--seed", "1")

    required, found = read_found(done)
    check_against_truth(required, found, faults)
    assert done.status == 1
    counts = done.document["summary"]
    assert counts["covered"] == sum(
        one.flows for one in found.coverage.unprobed if one.verdict == "covered"
    )
    earlier = lab.write("earlier.json", done.stdout)
    stop_on_router(lab, ())
    again = run_covering(lab, "--retry", str(earlier))
    assert (again.status, again.document["summary"]["blocked"]) == (0, 0)
    assert again.document["coverage"]["seed"] == 1


@pytest.mark.full
def test_a_run_that_was_cut_off_goes_on_as_it_was(lab: Lab) -> None:
    """A record without its end says nothing of the rest; resumed, it is the whole run."""
    faults = draw_faults(random.Random(2), ZONES, SIZE, WIRES)
    stop_on_router(lab, faults)
    record = lab.folder / "run.jsonl"
    run_covering(lab, "--cover", "zones", "--seed", "2", "--record", str(record))
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(lines[: len(lines) // 2]))
    cut = netprobe("report", str(record))
    assert cut.status in {1, 3}
    assert "nothing is said of what was not probed" in cut.stdout
    again = run_covering(lab, "--resume", str(record))
    check_against_truth(*read_found(again), faults)
    assert again.document["earlier"].startswith("RESUMED: ")


def test_where_all_pass_the_first_line_says_what_is_certain_and_what_is_not(lab: Lab) -> None:
    """Status 0 with that sentence, 3 with --strict; no covered flow counts as a pass."""
    stop_on_router(lab, ())
    to_file = ("-o", f"json={lab.folder}/run.json")
    done = run_covering(lab, "--cover", "zones", output=("-o", "text", *to_file))
    lines = done.stdout.splitlines()

    assert done.status == 0
    assert lines[0].startswith("COVERAGE: ")
    for words in (
        "each of 12 hosts to and from each of 3 zones, each port between each two zones",
        "for zones that treat their hosts alike no rule between zones",
        "inside two zones only chance finds a rule",
    ):
        assert words in lines[0]
    assert lines[1].startswith("COVERED: all ")
    document = json.loads((lab.folder / "run.json").read_text())
    counts = document["summary"]
    assert counts["pass"] + counts["covered"] == 12 * 11 * 103
    assert counts["covered"] > counts["pass"]
    again = netprobe("report", str(lab.folder / "run.json"))
    assert (again.status, again.stdout.splitlines()[:2]) == (0, lines[:2])


@pytest.mark.full
def test_with_strict_what_is_covered_is_not_enough(lab: Lab) -> None:
    """Nothing is blocked, and the status is 3."""
    stop_on_router(lab, ())
    done = run_covering(lab, "--cover", "zones", "--strict", "--only", "api")
    assert (done.status, done.document["summary"]["blocked"]) == (3, 0)


@pytest.mark.full
def test_a_host_that_is_down_stands_for_nobody(lab: Lab) -> None:
    """What was not probed from or to it is not-tested; all others are covered."""
    stop_on_router(lab, [
        Fault("down", frozenset({"z0-0"}), frozenset(lab.namespaces) - {"router"}, protocol, a, b)
        for protocol, a, b in WIRES
    ] + [
        Fault("down", frozenset(lab.namespaces) - {"router"}, frozenset({"z0-0"}), protocol, a, b)
        for protocol, a, b in WIRES
    ])  # fmt: skip
    required, found = read_found(run_covering(lab, "--cover", "zones", "--only", "api"))
    rest = dict(found.rest())
    assert len(rest) + found.flows == required
    for flow, group in rest.items():
        assert group.verdict == ("not-tested" if "z0-0" in flow[:2] else "covered")
    assert found.coverage.completed < required / 4

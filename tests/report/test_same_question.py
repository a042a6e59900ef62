"""What an earlier run found out is kept only where this one asks the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.plan import Plan, PlannedRequirement
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.earlier import TakeOver
from netprobe.report.record.record import Earlier, RecordWriter, header_of, read_record
from tests.report.plans import MASTERS, PLAN
from tests.report.samples import BLOCKED, PASSED, REFUSED

ROW = PlannedRequirement(
    matrix="deckhouse-nodes", id="etcd", from_=(), to=(), protocol="tcp", question="q"
)
HOSTS = tuple(
    HostReport(name=one.name, state="agent", addresses=one.probing_addresses) for one in MASTERS
)
# What a file of an older netprobe says, and one of today.
OLD = RunInfo(matrices=PLAN.matrices, hosts=HOSTS, requirements=(replace(ROW, question=""),))
NEW = replace(OLD, live=False, requirements=(ROW,))
TODAY = replace(PLAN, requirements=(ROW,))

SERVED = replace(PASSED, reason="syn-ack", proof="service")
OPENED = replace(SERVED, proof="handshake")
WITNESSED = replace(PASSED, reason="seen-at-destination", proof="witness")
PATH = replace(BLOCKED, where=("path",))
TAKEN = replace(BLOCKED, state="open", reason="port-taken", where=("service",))
DENIED = replace(REFUSED, expect="denied")
LIVE, STRICT = {"live": True}, {"strict": True}


def change_row(**keys: Any) -> Plan:
    """The plan with another row of etcd."""
    etcd, *rest = PLAN.blocks
    existing = keys.pop("existing", False)
    other = replace(etcd, requirement=replace(etcd.requirement, **keys), existing=existing)
    return replace(TODAY, blocks=(other, *rest))


def is_kept(
    result: Result, info: RunInfo, plan: Plan = TODAY, option: str = "--retry", **rules: bool
) -> bool:
    """Whether a run of the plan keeps this result of the run that the info is of."""
    earlier = Earlier("r", True, info, {}, lambda: iter([result]))
    return bool([*TakeOver(option, earlier, **rules).kept(plan)])


@pytest.mark.parametrize("result", [PASSED, WITNESSED, REFUSED, SERVED, OPENED])
@pytest.mark.parametrize("option", ["--retry", "--resume"])
def test_the_same_question_is_not_asked_again(result: Result, option: str) -> None:
    """Whatever proves it: run and row are those of before."""
    assert is_kept(result, NEW, option=option)


@pytest.mark.parametrize("result", [PASSED, WITNESSED, REFUSED, SERVED, OPENED, PATH])
@pytest.mark.parametrize("option", ["--retry", "--resume"])
def test_another_question_is_asked(result: Result, option: str) -> None:
    """Of a row that asks otherwise, and where now, or then, everything was supposed to run."""
    other = replace(TODAY, requirements=(replace(ROW, question="p"),))
    assert not is_kept(result, NEW, other, option)
    assert not is_kept(result, NEW, option=option, live=True)
    assert not is_kept(result, replace(NEW, live=True), option=option)


def test_a_live_run_goes_on_with_a_live_run() -> None:
    """Services that answered are not asked again."""
    live = replace(NEW, live=True)
    assert is_kept(SERVED, live, live=True)
    assert is_kept(OPENED, live, live=True)


@pytest.mark.parametrize(
    ("result", "is_enough"), [(REFUSED, False), (OPENED, False), (PASSED, True), (SERVED, True)]
)
def test_strict_takes_no_weak_proof_of_before(result: Result, is_enough: bool) -> None:
    """What --strict does not take for a proof is asked again; of what is denied it is one."""
    assert is_kept(result, NEW, strict=True) is is_enough
    assert is_kept(result, NEW)
    assert is_kept(replace(result, expect="denied"), NEW, change_row(expect="denied"), strict=True)


@pytest.mark.parametrize("result", [PASSED, WITNESSED, REFUSED])
def test_an_older_file_shows_that_nothing_had_to_run(result: Result) -> None:
    """Our listener answered, or a refusal passed: no question where something has to run."""
    assert is_kept(result, OLD)
    assert not is_kept(result, OLD, live=True)
    assert not is_kept(result, OLD, change_row(existing=True))
    assert not is_kept(result, OLD, change_row(existing=True), "--resume")


@pytest.mark.parametrize("result", [SERVED, OPENED])
def test_an_older_file_does_not_say_what_a_service_was_asked(result: Result) -> None:
    """Nor whether it was supposed to run: it is asked again."""
    assert not is_kept(result, OLD)
    assert not is_kept(result, OLD, live=True)


def test_an_older_file_says_what_stops_a_way() -> None:
    """A failure on the way is none of a service; what is denied may have been asked otherwise."""
    assert is_kept(PATH, OLD, option="--resume")
    assert not is_kept(TAKEN, OLD, option="--resume")
    assert is_kept(TAKEN, NEW, option="--resume")
    assert not is_kept(DENIED, OLD, change_row(expect="denied"))
    assert is_kept(DENIED, NEW, change_row(expect="denied"))


def test_a_source_that_has_moved_is_asked_again() -> None:
    """Another address of the family that was asked; the other family is none of it."""
    first, *rest = HOSTS
    assert is_kept(PASSED, replace(NEW, hosts=(replace(first, addresses=("10.0.0.10", "fd00::1")),
                                               *rest)))  # fmt: skip
    for addresses in (("10.9.0.10",), ("10.0.0.10", "10.9.0.10"), ()):
        moved = replace(NEW, hosts=(replace(first, addresses=addresses), *rest))
        assert not is_kept(PASSED, moved)
        assert not is_kept(PATH, moved, option="--resume")


def test_what_is_asked_otherwise_is_told() -> None:
    """Its flows are counted beside what is kept."""
    some = [replace(OPENED, end_port=2380), replace(PASSED, destination="gone")]
    retry = TakeOver("--retry", Earlier("r", True, NEW, {}, lambda: iter(some)), strict=True)

    again = retry.count_again(TODAY)
    assert again.otherwise == 2
    assert retry.word_kept({}, again).endswith(
        "asked again although they passed: 2 that this run may ask otherwise (addresses, rows, "
        "--live, --strict)"
    )


@pytest.mark.parametrize("live", [True, False])
def test_a_record_says_it_before_any_result(live: bool, tmp_path: Path) -> None:
    """Also that of a run that crashed."""
    path = tmp_path / "r"
    RecordWriter(str(path), header_of(TODAY, "now", live=live)).close(None)
    info = read_record(str(path)).info

    assert (info.live, [one.question for one in info.requirements]) == (live, ["q"])

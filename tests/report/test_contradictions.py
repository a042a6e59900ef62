"""A record or report that contradicts itself is refused, with the line; all else is read."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.cli.asked import ReportOptions
from netprobe.cli.report import report_verb
from netprobe.errors import FileErrors
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.plan import PATH_MTU, PlannedRequirement
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.story import Story
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.contradictions import FlowsSeen
from netprobe.report.record.record import RecordWriter, header_of
from netprobe.report.run.json import write_json
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, REFUSED, port

Write = Callable[[Path, RunInfo, Sequence[Result]], None]


def write_record(path: Path, info: RunInfo, results: Sequence[Result]) -> None:
    """A record: header, one line a result, end."""
    writer = RecordWriter(str(path), header_of(PLAN, "now"))
    for result in results:
        writer.add(result)
    writer.close(info)


def write_report(path: Path, info: RunInfo, results: Sequence[Result]) -> None:
    """A JSON report; its results begin some lines further down."""
    with path.open("w") as stream:
        write_json(Report(info, collect(results)), stream)


def find_line(path: Path, number: int) -> int:
    """The line of the file in which this result stands, from 1."""
    lines = path.read_text().splitlines()
    return [at for at, line in enumerate(lines, 1) if '"proof"' in line][number]


def status_of(path: Path) -> int:
    """The exit status of ``netprobe report FILE``; raises where the file is refused."""
    options = ReportOptions(
        file=str(path),
        accepted=(),
        max_acceptance="365d",
        redact=False,
        title="",
        outputs=("text",),
    )
    with contextlib.redirect_stdout(io.StringIO()):
        return report_verb(options)


def plan_of(*results: Result, **changes: Any) -> RunInfo:
    """A run whose requirements are those of these results, changed."""
    planned = (
        PlannedRequirement(
            matrix=one.matrix, id=one.requirement, from_=(), to=(), protocol=one.protocol,
            purpose=one.purpose, **{"optional": one.optional, "expect": one.expect, **changes},
        )
        for one in results
    )  # fmt: skip
    flows = sum(one.port_count for one in results)
    return replace(INFO, requirements=tuple(planned), planned_flows=flows)


WRITERS = pytest.mark.parametrize("write", [write_record, write_report])
EXPOSED = replace(
    PASSED, expect="denied", verdict="exposed", reason="syn-ack", proof="none",
    where=("destination",),
)  # fmt: skip


@WRITERS
@pytest.mark.parametrize(
    "wrong",
    [
        replace(BLOCKED, verdict="pass"),
        replace(BLOCKED, verdict="pass", where=()),
        replace(BLOCKED, verdict="pass", where=(), state="open", proof="nonce"),
        replace(PASSED, where=("path",)),
        replace(PASSED, proof="none"),
        replace(PASSED, proof="handshake"),
        replace(PASSED, reason="port-taken"),
        replace(PASSED, rejected_by="10.0.0.1"),
        replace(PASSED, story=Story()),
        replace(PASSED, expect="denied"),
        replace(EXPOSED, verdict="pass", where=()),
        replace(EXPOSED, expect="allowed"),
        replace(REFUSED, state="filtered"),
        replace(BLOCKED, where=()),
        replace(BLOCKED, where=("path", "destination")),
        replace(BLOCKED, proof="nonce"),
        replace(BLOCKED, verdict="covered"),
        replace(BLOCKED, reason="no-such-reason"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(
    wrong: Result, write: Write, tmp_path: Path
) -> None:
    """Verdict, state, reason, proof and places must be what one run can find together."""
    path = tmp_path / "f"
    write(path, plan_of(PASSED, PASSED), [port(PASSED, 2370), wrong])

    with pytest.raises(FileErrors) as caught:
        status_of(path)
    assert str(caught.value).startswith(f"{path}:{find_line(path, 1)}:1: ")


@WRITERS
@pytest.mark.parametrize(
    "again",
    [PASSED, replace(PASSED, rtt_ms=7.0, because="other words"), BLOCKED, port(PASSED, 2370, 2380)],
)
def test_a_flow_that_stands_twice_is_refused(again: Result, write: Write, tmp_path: Path) -> None:
    """Whatever its verdict is: it would count for a flow that nobody probed."""
    path = tmp_path / "f"
    write(path, plan_of(PASSED, again), [PASSED, replace(again, order=(9, 0, 0))])

    with pytest.raises(FileErrors, match="the same flow stands in an earlier result"):
        status_of(path)


@WRITERS
@pytest.mark.parametrize(
    "other",
    [
        port(PASSED, 2380),
        replace(PASSED, requirement="etcd-too"),
        replace(PASSED, matrix="site"),
        replace(PASSED, source="master-2"),
        replace(PASSED, address="10.9.0.11"),
        replace(PASSED, protocol="udp", reason="udp-response", proof="service"),
    ],
)
def test_another_flow_with_the_same_packets_is_read(
    other: Result, write: Write, tmp_path: Path
) -> None:
    """Two requirements, matrices, sources, addresses or ports are two flows."""
    write(tmp_path / "f", plan_of(PASSED, other), [PASSED, replace(other, order=(9, 0, 0))])

    assert status_of(tmp_path / "f") == 0


@WRITERS
@pytest.mark.parametrize("host", [
    HostReport(name="master-1", state="none", addresses=("10.0.0.11",), named=True),
    # Files of 0.1.0 do not say that it has names.
    HostReport(name="master-1", state="none"),
])  # fmt: skip
def test_two_names_of_one_address_are_read(host: HostReport, write: Write, tmp_path: Path) -> None:
    """The plan has a flow for each name of a host, and sources may find one address for both."""
    info = replace(plan_of(PASSED, PASSED), hosts=(INFO.hosts[0], host))
    write(tmp_path / "f", info, [PASSED, replace(PASSED, order=(9, 0, 0))])

    assert status_of(tmp_path / "f") == 0


def mtu_of(overlay: str, **changes: Any) -> Result:
    """The path MTU of a pair between which an overlay runs."""
    purpose = f"full-size packets of the overlay ({overlay}: 8472): pods"
    return replace(
        PASSED, requirement=PATH_MTU, purpose=purpose, protocol="icmp", port=None, end_port=None,
        reason="full-size", proof="service", **changes,
    )  # fmt: skip


@WRITERS
def test_each_overlay_has_its_path_mtu(write: Write, tmp_path: Path) -> None:
    """Two overlays between the same hosts are two flows, one twice is refused."""
    path, vxlan = tmp_path / "f", mtu_of("vxlan")
    write(path, plan_of(vxlan, vxlan), [vxlan, mtu_of("geneve", order=(9, 0, 0))])
    assert status_of(path) == 0

    path.unlink()
    write(path, plan_of(vxlan, vxlan), [vxlan, replace(vxlan, order=(9, 0, 0))])
    with pytest.raises(FileErrors, match="the same flow stands in an earlier result"):
        status_of(path)


@WRITERS
@pytest.mark.parametrize(
    ("result", "planned"),
    [
        (replace(BLOCKED, optional=True), {"optional": False}),
        (replace(BLOCKED, waived="on Monday"), {}),
        (replace(BLOCKED, waived="on Monday"), {"waive": "on Mondays"}),
        (replace(BLOCKED, waived=None), {"waive": "on Monday"}),
        (EXPOSED, {"expect": "allowed"}),
        (REFUSED, {"expect": "denied"}),
    ],
)
def test_a_result_that_its_requirement_contradicts_is_refused(
    result: Result, planned: dict[str, Any], write: Write, tmp_path: Path
) -> None:
    """What a flow counts for is what the plan in the same file says."""
    write(tmp_path / "f", plan_of(result, **planned), [result])

    with pytest.raises(FileErrors, match="requirement"):
        status_of(tmp_path / "f")


@WRITERS
@pytest.mark.parametrize("waive", ["on Monday", "on Monday, until 2999-01-31"])
def test_a_waiver_is_that_of_its_requirement(waive: str, write: Write, tmp_path: Path) -> None:
    """With or without its last day."""
    result = replace(BLOCKED, waived="on Monday")
    write(tmp_path / "f", plan_of(result, waive=waive), [result])

    assert status_of(tmp_path / "f") == 0


def test_the_path_mtu_counts_as_its_overlay(tmp_path: Path) -> None:
    """Its own requirement may be that of several overlays, some of them optional."""
    overlay = replace(PASSED, requirement="vxlan", protocol="udp", reason="udp-response",
                      proof="service", order=(1, 0, 0))  # fmt: skip
    for optional in (False, True):
        path = tmp_path / f"f{optional}"
        write_record(path, plan_of(overlay, mtu_of("x")), [overlay, mtu_of("vxlan", optional=True)])
        if optional:
            write_record(path, plan_of(replace(overlay, optional=True), mtu_of("x")),
                         [mtu_of("vxlan", optional=True)])  # fmt: skip
            assert status_of(path) == 3  # a flow lacks
        else:
            with pytest.raises(FileErrors, match="requirement"):
                status_of(path)


@WRITERS
@pytest.mark.parametrize(
    "changes", [{"optional": True}, {"waived": "x"}, {"by": ()}, {"verdict": "not-tested"}]
)
def test_flows_that_others_stand_for_count_as_planned(
    changes: dict[str, Any], write: Write, tmp_path: Path
) -> None:
    """What is covered counts as its requirement says, and somebody stands for it."""
    group = Unprobed(
        matrix=PASSED.matrix, requirement=PASSED.requirement, protocol="tcp", ports=((2380, 2380),),
        flows=5, by=(("master-0", "master-1", 2379, 2379),), by_verdict="pass",
    )  # fmt: skip
    for some, status in ((group, 0), (replace(group, **changes), None)):
        info = replace(plan_of(PASSED), coverage=Coverage(host_sets=(("a",),), unprobed=(some,)))
        (tmp_path / "f").unlink(missing_ok=True)
        write(tmp_path / "f", info, [PASSED])
        if status is None:
            with pytest.raises(FileErrors):
                status_of(tmp_path / "f")
        else:
            assert status_of(tmp_path / "f") == status


@WRITERS
def test_a_file_without_flows_says_that_nothing_was_tested(write: Write, tmp_path: Path) -> None:
    """It is no contradiction: status 3, as ever."""
    write(tmp_path / "f", replace(INFO, planned_flows=0), [])

    assert status_of(tmp_path / "f") == 3


def test_ports_are_compared_range_by_range() -> None:
    """However the ranges of a flow are cut and ordered, the first port that is there is found."""
    chance = random.Random(20261123)
    for _ in range(300):
        seen: set[int] = set()
        flows = FlowsSeen()
        for _ in range(12):
            first = chance.randint(1, 60)
            last = first + chance.choice((0, 0, 1, 7))
            ports = set(range(first, last + 1))
            new = flows.add(port(PASSED, first, last))
            assert new == ports.isdisjoint(seen)
            seen |= ports if new else set()

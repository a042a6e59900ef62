"""A flow that several matrices demand: every report has all purposes, and any name finds it."""

from __future__ import annotations

import json
from datetime import date
from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.judge.accepted import Acceptances
from netprobe.judge.findings import fold
from netprobe.model.accepted import Acceptance
from netprobe.model.codec import result_from_json, result_to_json
from netprobe.model.plan import PlannedMatrix, PlannedRequirement
from netprobe.model.result import Also, HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.struct_json import WrongValue
from netprobe.report.record.changes import compare, fates_of
from netprobe.report.record.collector import Report
from netprobe.report.record.contradictions import Contradictions
from netprobe.report.record.earlier import TakeOver
from netprobe.report.record.merge import merge_neighbours
from netprobe.report.record.open_passes import RetriedPorts
from netprobe.report.record.record import read_earlier
from netprobe.report.run import REPORTS
from netprobe.report.run.json import write_json
from netprobe.request.build import request_of_run
from netprobe.request.rules import RequestWishes
from tests.plan.test_merge import KUBELET, layer, plan
from tests.report.samples import BLOCKED, INFO, PASSED, report_of

ALSO = Also("cni-calico", "peers", "routes of pods")
OURS = ("deckhouse-nodes", "etcd")
SHARED = replace(BLOCKED, also=(ALSO,))
THEIRS = replace(BLOCKED, matrix="cni-calico", requirement="peers", purpose="routes of pods")


def test_every_format_has_all_purposes() -> None:
    """Text, JSON, pages, tables and test cases name the rows of all matrices."""
    report = report_of([SHARED, replace(PASSED, port=2380, end_port=2380, order=(0, 0, 1))])
    for name, write in REPORTS.items():
        stream = StringIO()
        write(report, stream)
        text = " ".join(stream.getvalue().split())
        if "etcd replication" not in text:
            assert name in ("github", "map", "brief"), name  # they tell no purpose at all
            continue
        assert "routes of pods" in text, name
        assert "peers" in text, name


def test_neighbours_of_other_rows_stay_two_results() -> None:
    """Ports of one range are merged where all that is said of them is equal."""
    ranges = {(*OURS, "tcp"): ((2379, 2380),)}
    next_port = replace(BLOCKED, port=2380, end_port=2380, any_of="health")
    first = replace(BLOCKED, any_of="health")
    assert len(list(merge_neighbours([first, next_port], ranges))) == 1
    for other in (replace(next_port, also=(ALSO,)), replace(next_port, spared="ping")):
        assert list(merge_neighbours([first, other], ranges)) == [first, other]


def test_json_reads_it_again() -> None:
    """The key is there only where there is another row."""
    data = json.loads(json.dumps(result_to_json(SHARED)))
    assert data["also"] == [
        {"matrix": "cni-calico", "requirement": "peers", "purpose": "routes of pods"}
    ]
    assert result_from_json(data, (0, 0, 0)) == SHARED
    assert "also" not in result_to_json(BLOCKED)


def test_a_run_of_one_matrix_is_compared_by_any_name() -> None:
    """Before or after a layer was added, and where an old run has the flow twice."""
    passed = replace(SHARED, verdict="pass")
    for old in ([THEIRS], [BLOCKED], [THEIRS, BLOCKED]):
        changes = compare(fates_of(old), [passed])
        assert [one.names for one in changes.fixed] == [passed.names]
        assert (changes.only_later.flows, changes.only_earlier.flows) == (0, 0)
        back = compare(fates_of([passed]), old)
        assert len(back.worse) == len(old)
        assert (back.only_later.flows, back.only_earlier.flows) == (0, 0)


def test_a_fault_of_a_host_is_the_same_in_any_matrix() -> None:
    """Which matrix makes a run look for it changes when a layer is added."""
    fault = replace(BLOCKED, requirement="clock", destination="master-0", address="10.0.0.10")
    changes = compare(fates_of([fault]), [replace(fault, matrix="cni-calico")])

    assert len(changes.still) == 1
    assert (changes.only_later.flows, changes.only_earlier.flows) == (0, 0)


def test_a_name_of_some_ports_is_none_of_others() -> None:
    """Port 10250 is of both rows, 10251 of one: each is found where it was."""
    both = replace(SHARED, port=10250, end_port=10250)
    theirs = replace(THEIRS, port=10251, end_port=10251, verdict="pass")
    alone = replace(THEIRS, port=10250, end_port=10251, verdict="pass")
    changes = compare(fates_of([both, theirs]), [alone])

    assert [(one.port, one.end_port) for one in changes.fixed] == [(10250, 10250)]
    assert (changes.unchanged, changes.only_later.flows, changes.only_earlier.flows) == (1, 0, 0)


def test_who_accepts_by_any_name_accepts_the_flow() -> None:
    """Entries that were written for either matrix hold."""
    for matrix, requirement in (OURS, ("cni-calico", "peers")):
        entry = Acceptance(
            id="e1", matrix=matrix, requirement=requirement, from_=("master-0",),
            to=("master-1",), protocol="tcp", ports=((2379, 2379),), verdict="blocked",
            reason="later", owner="team", ticket="", since="2026-01-01", until="never",
        )  # fmt: skip
        accepted = Acceptances([entry], date(2026, 11, 20))
        (marked,) = accepted.mark(SHARED)
        assert marked.accepted is not None
        info = RunInfo(matrices=(PlannedMatrix(matrix),))
        assert [one.flows for one in accepted.check([marked], info)] == [1]


def test_a_result_counts_as_its_rows_do() -> None:
    """Optional only where all rows are; a file that says otherwise is refused."""
    plain = PlannedRequirement(matrix=OURS[0], id=OURS[1], from_=(), to=(), protocol="tcp")
    rows = (replace(plain, optional=True), replace(plain, matrix=ALSO.matrix, id=ALSO.requirement))
    info = RunInfo(requirements=rows)
    Contradictions(info).check(SHARED)
    Contradictions(info).check(replace(BLOCKED, optional=True))
    for wrong in (BLOCKED, replace(SHARED, optional=True)):
        with pytest.raises(WrongValue, match="optional or expect"):
            Contradictions(info).check(wrong)


def test_a_rule_is_needed_by_all_rows() -> None:
    """The request of a run names each, with the document that it is from."""
    info = replace(INFO, matrices=(*INFO.matrices, PlannedMatrix("cni-calico", {}, {"title": "T"})))
    request = request_of_run(info, fold([SHARED]), (), "run.json", RequestWishes())
    (rule,) = request.rules
    assert [need.words for need in rule.needs][1] == (
        "routes of pods (cni-calico, peers; document: T)"
    )


def earlier_run(path: Path, *results: Result) -> TakeOver:
    """A retry of a run with these results of two matrices."""
    names = ("base", "cni")
    info = replace(
        INFO, requirements=(), matrices=tuple(PlannedMatrix(name) for name in names), findings=None,
        hosts=(HostReport(name="c1", state="agent", addresses=("10.0.0.1",)),),
    )  # fmt: skip
    base = report_of([*results])
    with path.open("w") as stream:
        write_json(Report(info, base.collector), stream)
    return TakeOver("--retry", read_earlier(str(path)))


def test_a_retry_keeps_passes_by_any_name_once(tmp_path: Path) -> None:
    """Also of an old run that has the flow twice; what is kept has the names of the plan."""
    agents = replace(KUBELET, id="agents")
    merged = plan(layer("base", KUBELET), layer("cni", agents))
    old = replace(
        PASSED, matrix="cni", requirement="agents", source="c1", destination="w1",
        address="10.0.1.1", port=10250, end_port=10250,
    )  # fmt: skip
    twice = replace(old, matrix="base", requirement="kubelet", order=(1, 0, 0))
    for given in ([old], [twice], [old, twice]):
        (kept,) = earlier_run(tmp_path / "run.json", *given).kept(merged)
        assert kept.names == (("base", "kubelet"), ("cni", "agents"))
        assert kept.purpose == "kubelet purpose"


def test_a_retry_asks_open_passes_again_by_any_name() -> None:
    """A failure of one row concerns the pass of the same row under another name."""
    ports = RetriedPorts([THEIRS])
    kept = replace(SHARED, verdict="pass", proof="handshake", source="master-2")
    assert ports.concern(kept)
    assert not ports.concern(replace(kept, also=()))
    assert list(ports.drop_of_other_rows(kept)) == [kept]
    assert list(ports.drop_of_other_rows(replace(kept, also=()))) == []


def test_who_is_spared_has_a_row_that_is_enough() -> None:
    """A file that spares any failure is refused: it would turn the exit status."""
    (row,) = INFO.requirements
    info = RunInfo(requirements=(replace(row, any_of="health"),))
    fine = replace(BLOCKED, any_of="health", spared="ping")
    Contradictions(info).check(fine)
    for wrong, words in (
        (replace(fine, any_of=None), "spared"),
        (replace(PASSED, any_of="health", spared="ping"), "spared"),
        (replace(fine, any_of="other"), "any_of"),
    ):
        with pytest.raises(WrongValue, match=words):
            Contradictions(info).check(wrong)
    with pytest.raises(WrongValue, match="any_of"):
        Contradictions(INFO).check(fine)


def test_no_rule_is_asked_for_what_is_spared() -> None:
    """Another row is enough for the pair: the request says so."""
    spared = replace(BLOCKED, any_of="health", spared="ping")
    request = request_of_run(INFO, fold([spared]), (), "run.json", RequestWishes())

    assert request.rules == ()
    assert request.why_none == "1 flow is spared (another row is enough)"

"""What the contrast of a cluster's nodes means, and how it is written."""

from __future__ import annotations

import io
import json

from msgspec.structs import replace

from netprobe.konnectivity.contrast import judge_contrast
from netprobe.model.contrast import ContrastFinding, ContrastReport, NodeContrast
from netprobe.report.verbs.contrast import CONTRAST_WRITERS

FINE = NodeContrast("a", "", "opens", logs="work")
MUTE = NodeContrast("m", "", "opens", logs="fail", logs_words="No agent available")
CUT = NodeContrast("c", "", "fails", "TCP_FILTERED", "9 SYNs, no answer")
GONE = NodeContrast("g", "g is not ready: use ssh", "unknown")


def judge(*nodes: NodeContrast) -> ContrastFinding:
    """The finding of some nodes."""
    return judge_contrast("192.0.2.9", 8132, nodes)


def test_who_cannot_dial_is_the_cause() -> None:
    """By the words of the diagnosis; and whether logs fail there, or elsewhere too."""
    found = judge(FINE, replace(CUT, logs="fail"))
    assert (found.is_fault, found.nodes) == (True, ("c",))
    assert found.title == "1 node: connections to 192.0.2.9:8132 are dropped (TCP_FILTERED)"
    assert found.because == (
        "2 of 2 nodes reported through the kubelet; `logs` reaches 1 of 2 that were asked; 1 "
        "cannot open tcp 8132 to 192.0.2.9; all that `logs` does not reach (1) are among them; "
        "c: 9 SYNs, no answer"
    )
    assert "1 of the 2 that `logs` does not reach" in judge(replace(CUT, logs="fail"), MUTE).because
    assert "other nodes' agents carry" in judge(FINE, replace(CUT, logs="work")).because
    refused = [replace(CUT, node=str(at), dial_code="TCP_REFUSED") for at in range(3)]
    assert judge(CUT, *refused).title.startswith("3 nodes: 192.0.2.9:8132 refuses connections")
    assert (
        "(ICMP_REJECT)" in judge(replace(CUT, dial_code="ICMP_REJECT", dial_by="192.0.2.1")).title
    )
    assert judge(replace(CUT, dial_code="")).title == "1 node: they cannot open 192.0.2.9:8132"


def test_where_all_can_dial_the_cause_is_elsewhere() -> None:
    """The server's side; or the nodes themselves, where nothing has come of them either."""
    found = judge(FINE, MUTE)
    assert (found.is_fault, found.nodes) == (True, ("m",))
    assert "not because nodes cannot open tcp 8132" in found.title
    assert "m: No agent available" in found.because
    assert "server's side" in found.remedy
    found = judge(FINE, replace(GONE, logs="fail", logs_words="i/o timeout"))
    assert (found.is_fault, found.nodes) == (True, ("g",))
    assert "do not tell whether they can dial" in found.title


def test_what_nobody_saw_is_no_finding() -> None:
    """Nothing is claimed of nodes whose logs nobody asked for, nor where none has reported."""
    assert judge(FINE, replace(FINE, logs="not-asked")).is_fault is False
    assert judge(FINE, GONE).is_fault is False
    silent = replace(FINE, node="s", dial="unknown", dial_words="nobody has asked again")
    assert "1 of them do not tell whether they can dial" in judge(FINE, silent).because
    found = judge(GONE)
    assert (found.is_fault, found.title) == (
        None, "no node tells whether it can open tcp 8132 to 192.0.2.9"
    )  # fmt: skip
    assert "g is not ready" in found.because
    found = judge(replace(FINE, logs="unknown", logs_words="pods is forbidden"))
    assert found.is_fault is None
    assert "pods is forbidden" in found.because


def write(report: ContrastReport, form: str) -> str:
    """The report in a format."""
    stream = io.StringIO()
    CONTRAST_WRITERS[form](report, stream)
    return stream.getvalue()


def test_the_page_shows_faults_and_counts_the_others() -> None:
    """A thousand nodes: the one with a fault, some others, and of how many logs were asked."""
    nodes = (CUT, *(replace(FINE, node=f"n{at}", logs="not-asked") for at in range(999)))
    report = ContrastReport("192.0.2.9", 8132, ("192.0.2.9",), 20, judge(*nodes), nodes)
    page = write(report, "text")
    assert page.splitlines()[2].startswith("FAULT: 1 node: connections to 192.0.2.9:8132")
    assert "... and 989 more without a fault (-o json)" in page
    assert page.splitlines()[-1] == "logs: asked of 20 of 1,000"
    assert len(page.splitlines()) < 30
    document = json.loads(write(report, "json"))
    assert (document["schema"], len(document["nodes"])) == ("netprobe.contrast/1", 1000)
    assert "asked of 20 of 1,000" in write(report, "markdown")

"""JUnit XML as CI servers read it: valid, few cases, stable names."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from msgspec.structs import replace

from netprobe.model.plan import PlannedRequirement
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Report
from netprobe.report.run.junit import write_junit
from tests.report import test_accepted
from tests.report.samples import BLOCKED, INFO, PASSED, everything, finding, flow, report_of
from tests.report.strategies import results

# Jenkins' own (xunit-plugin; MIT), as pytest's source archive has it.
SCHEMA = Path(__file__).parent / "junit-10.xsd"


def text_of(report: Report) -> str:
    stream = io.StringIO()
    write_junit(report, stream)
    return stream.getvalue()


def cases(report: Report) -> dict[tuple[str, str], str | None]:
    """What became of each test case, by class and name; a name that occurs twice is an error."""
    found = ElementTree.fromstring(text_of(report)).findall("*/testcase")
    fates = {
        (case.attrib["classname"], case.attrib["name"]): case[0].tag if len(case) else None
        for case in found
    }
    assert len(fates) == len(found), "GitLab reads only the first of two cases with one name"
    return fates


def make_info(hosts: int, requirements: int = 1) -> RunInfo:
    """A run over hosts of one role."""
    return replace(
        INFO,
        hosts=tuple(
            HostReport(name=f"node-{n}", state="agent", roles=("node",)) for n in range(hosts)
        ),
        requirements=tuple(
            PlannedRequirement(matrix="deckhouse-nodes", id=f"r{n}", from_=("node",),
                               to=("node",), protocol="tcp", ports=((6443, 6443),))
            for n in range(requirements)
        ),
    )  # fmt: skip


def pair(source: int, destination: int, base: Result = PASSED, requirement: int = 0) -> Result:
    return replace(
        base, requirement=f"r{requirement}", source=f"node-{source}",
        destination=f"node-{destination}", port=6443, end_port=6443,
        order=(requirement, source, destination),
    )  # fmt: skip


@pytest.mark.needs("xmllint")
def test_jenkins_schema_holds(tmp_path: Path) -> None:
    """Of a run with one of everything, of one that has nothing, and of accepted failures."""
    for number, report in enumerate((everything(), report_of([]), test_accepted.report_of())):
        file = tmp_path / f"{number}.xml"
        file.write_text(text_of(report))
        words = ("xmllint", "--noout", "--nonet", "--schema", str(SCHEMA), str(file))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_another_reader_counts_the_same() -> None:
    """The attributes of the suites say what the cases are."""
    read = JUnitXml.fromstring(text_of(everything()).encode())
    told = (read.tests, read.failures, read.errors)
    read.update_statistics()  # type: ignore[no-untyped-call]

    assert told == (read.tests, read.failures, read.errors)
    assert read.failures
    assert read.errors
    assert read.skipped


def test_a_case_says_what_became_of_its_flows() -> None:
    """Blocked fails, unknown is an error, waived is skipped; the text has the evidence."""
    fates = cases(everything())

    key = ("deckhouse-nodes.etcd", "master -> master-1 tcp 2379, 2380")
    assert fates[key] == "failure"
    ntp = next(fate for (name, _), fate in fates.items() if name == "deckhouse-nodes.ntp")
    ldap = next(fate for (name, _), fate in fates.items() if name == "deckhouse-nodes.ldap")
    assert (ntp, ldap) == ("error", "skipped")
    assert fates["deckhouse-nodes.vcd-webhook", "not tested on purpose"] == "skipped"
    assert fates["netprobe run", "the run came to its end"] is None
    text = text_of(everything())
    assert BLOCKED.because.replace("'", "&apos;") in text or BLOCKED.because in text
    assert "opened on Monday, until 2027-01-31" in text


@pytest.mark.parametrize(("hosts", "names"), [
    (3, {f"node -> node-{n} tcp 6443" for n in range(3)}),
    (9, {"node -> node tcp 6443"}),
])  # fmt: skip
def test_a_role_of_many_hosts_is_one_case(hosts: int, names: set[str]) -> None:
    """One blocked pair is enough for it to fail."""
    info = make_info(hosts)
    pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
    found = [pair(a, b, BLOCKED if (a, b) == (0, 1) else PASSED) for a, b in pairs]

    fates = cases(report_of(found, info=info))

    ours = {name: fate for (class_name, name), fate in fates.items() if "r0" in class_name}
    assert set(ours) == names
    assert list(ours.values()).count("failure") == 1


def test_names_do_not_depend_on_what_failed() -> None:
    """CI compares a case with that of the run before."""
    info = make_info(3)
    good = [pair(0, 1), pair(1, 0), pair(2, 0)]
    bad = [replace(one, verdict="blocked", reason="no-response") for one in good]

    assert set(cases(report_of(good, info=info))) == set(cases(report_of(bad, info=info)))


@pytest.mark.slow
def test_a_large_run_stays_small() -> None:
    """Everything is blocked between 40 hosts: 15,600 flows."""
    info = make_info(40, requirements=10)
    found = [
        pair(a, b, BLOCKED, requirement)
        for requirement in range(10)
        for a in range(40)
        for b in range(40)
        if a != b
    ]
    text = text_of(report_of(found, info=info))

    assert len(text) < 50_000
    assert "1,560 of 1,560 flows" in text
    assert "and 1,540 more flows" in text


def test_a_run_that_was_stopped_is_an_error() -> None:
    """Whatever its flows say."""
    info = replace(INFO, complete=False, interrupted=True)

    fates = cases(report_of([PASSED], info=info))

    assert fates["netprobe run", "the run came to its end"] == "error"


@pytest.mark.parametrize(
    ("result", "fate"),
    [(replace(PASSED, verdict="not-tested"), "error"), (BLOCKED, "error"), (PASSED, "skipped")],
)
def test_agents_that_failed(result: Result, fate: str) -> None:
    """They are named; the case is an error unless all that is required is as it should be."""
    hosts = tuple(
        HostReport(name=f"h{n}", state="failed", words=f"h{n}: no route") for n in range(30)
    )
    lost = HostReport(name="l", state="lost", words="it went silent")
    report = report_of([result], info=replace(INFO, hosts=(lost, *hosts, *INFO.hosts)))
    key = ("netprobe run", "every agent worked")

    assert cases(report)[key] == fate
    message = 'message="l: agent lost: it went silent; h0: no agent: no route; h1: no agent: '
    assert message in text_of(report)
    assert "; h18: no agent: no route; and 11 more" in text_of(report)
    assert cases(report_of([result]))[key] is None


def test_titles_of_findings_are_the_message() -> None:
    """Several in one case are counted."""
    first, second = flow(BLOCKED, 1), flow(BLOCKED, 2, source="master-2", port=2380, end_port=2380)
    one = finding("the first", "open it", first)
    other = finding("the second", "open it", second)

    text = text_of(report_of([first, second], one, other))

    assert 'message="BLOCKED: the first' in text


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(results(), max_size=12))
def test_any_run_gives_unique_cases_of_ascii(found: list[Result]) -> None:
    """Control characters, quotes and markup of others do no harm."""
    report = report_of(found)
    assert text_of(report).isascii()

    cases(report)

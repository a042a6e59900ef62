"""The report for people, held to golden files and to what a reader must see first."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import UNDIALLED
from netprobe.model.host_key import HostKey
from netprobe.model.names import names_text
from netprobe.model.plan import Skipped
from netprobe.model.result import HostReport
from netprobe.report.page.terminal import write_terminal
from netprobe.report.record.collector import Report
from netprobe.report.run import REPORTS
from netprobe.report.run.text import text_parts, write_text
from tests.report.golden import check_golden
from tests.report.samples import BLOCKED, INFO, PASSED, everything, finding, flow, port, report_of
from tests.report.test_json_run import document


def plain(report: Report) -> str:
    """The report as a pipe gets it."""
    stream = io.StringIO()
    write_text(report, stream)
    return stream.getvalue()


def on_terminal(report: Report, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The report as a terminal of this width gets it, without colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    write_terminal(text_parts(report), stream, width)
    return stream.getvalue()


def first_line(report: Report) -> str:
    """The line that a reader cannot miss."""
    return plain(report).splitlines()[0]


def test_one_of_everything() -> None:
    """A run with every kind of section reads as it did when somebody last looked."""
    check_golden("everything.txt", plain(everything()))


@pytest.mark.parametrize("width", [80, 100])
def test_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal nothing is wider than the terminal, and no line ends in spaces."""
    text = on_terminal(everything(), width, monkeypatch)

    check_golden(f"everything-{width}.txt", text)
    assert max(map(len, text.splitlines())) <= width
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_two_ways_of_refusing_are_two_lines() -> None:
    """TCP refuses by a reset, UDP by an error message: neither speaks for the other."""
    tcp = replace(
        BLOCKED, state="closed", reason="nothing-listens", protocol="tcp", because="by a reset"
    )
    udp = flow(tcp, 1, protocol="udp", because="port-unreachable")
    text = plain(report_of([tcp, udp, flow(udp, 2)], finding("nothing listens", "", tcp, udp, udp)))

    assert "by a reset (closed, nothing-listens: 1 flow)" in text
    assert "port-unreachable (closed, nothing-listens: 2 flows)" in text


def test_everything_passes() -> None:
    """A clean run says so first, and tells how many passes rest on a refusal."""
    report = report_of([PASSED, flow(PASSED, 1, proof="refusal", requirement="dns")])

    check_golden("pass.txt", plain(report))


def test_nothing_was_tested() -> None:
    """A run in which nobody could look says so in its first line."""
    unseen = replace(BLOCKED, verdict="not-tested", state="unknown", reason="no-python")

    assert first_line(report_of([unseen])) == ("NOTHING WAS TESTED: none of 1 flow could be probed")


def test_nothing_was_planned() -> None:
    """A run without any flow says so in its first line, with what was skipped."""
    info = replace(INFO, planned_flows=0, skipped=(Skipped("m", "r", "no host has the role x"),))

    assert first_line(report_of([], info=info)) == (
        "NOTHING WAS TESTED: there was no flow to probe (1 requirement skipped)"
    )


def test_partial_run() -> None:
    """An interrupted run says first how much of it there is, then what it found."""
    report = report_of([PASSED, port(BLOCKED, 2380)])
    info = replace(report.info, complete=False, interrupted=True, planned_flows=40)
    lines = plain(Report(info, report.collector)).splitlines()

    assert lines[0] == "PARTIAL RUN: it was interrupted; 2 of 40 flows were probed"
    assert lines[1].startswith("BLOCKED: 1 blocked of 2 required flows")


def test_sample_is_called_one() -> None:
    """A sample is named before its result."""
    report = report_of([PASSED])
    info = replace(report.info, sample="3 peers of each host, 412 of 9,900 flows")

    assert first_line(Report(info, report.collector)) == (
        "SAMPLE: 3 peers of each host, 412 of 9,900 flows"
    )


def test_selection_is_called_one() -> None:
    """What the filters left is no whole matrix: the report says so before its result."""
    report = report_of([PASSED])
    info = replace(report.info, selection="--only etcd: 1 of 262 flows")
    lines = plain(Report(info, report.collector)).splitlines()

    assert lines[0] == "SELECTION: --only etcd: 1 of 262 flows"
    assert lines[1].startswith("PASS: ")


def many_findings(count: int) -> Report:
    """A report with so many findings; the last one is about what could not be judged."""
    failed = [flow(BLOCKED, place, source=f"worker-{place}") for place in range(count - 1)]
    odd = flow(BLOCKED, count, verdict="inconclusive", reason="tls-not-expected")
    found = [finding(f"worker-{place} is blocked", "", one) for place, one in enumerate(failed)]
    return report_of([*failed, odd], *found, finding("TLS where there is none", "", odd))


def test_numbers_run_through_the_whole_report() -> None:
    """A finding has one number in all sections and in JSON, where tickets refer to it."""
    lines = plain(many_findings(3)).splitlines()
    heads = [line for line in lines if line[:1].isdigit() and ". " in line]

    assert heads == [
        "1. BLOCKED: worker-0 is blocked",
        "2. BLOCKED: worker-1 is blocked",
        "3. INCONCLUSIVE: TLS where there is none",
    ]
    assert [one["number"] for one in document(many_findings(3))["findings"]] == [1, 2, 3]


def test_the_index_comes_before_the_findings() -> None:
    """Each is a line of the summary first, in the order of the report."""
    lines = plain(many_findings(11)).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("    1  blocked"))

    assert lines[first].endswith("  worker-0 is blocked")
    assert lines[first + 10].startswith("   11  inconclusive  ")
    assert lines[first + 10].endswith("  TLS where there is none")
    assert lines[first + 11] == ""
    assert first < lines.index("1. BLOCKED: worker-0 is blocked")


def test_waived_failures_do_not_lead() -> None:
    """Waived and optional failures have their own section and do not spoil the headline."""
    waived = port(BLOCKED, 2380, waived="until Monday")
    report = report_of([PASSED, waived], finding("the waived one", "nothing", waived))
    lines = plain(report).splitlines()

    assert lines[0] == (
        "PASS: the required flow is as it should be; 1 optional or waived did not pass"
    )
    assert "OPTIONAL OR WAIVED (not counted against the result)" in lines
    assert "the waived one" not in "\n".join(lines)


def test_unreachable_hosts_share_a_block() -> None:
    """Sources that nobody could get onto for the same reason are one block of lines."""
    results = [
        flow(
            BLOCKED,
            index,
            source=f"worker-{index}",
            verdict="not-tested",
            reason="no-python",
            because=f"worker-{index} has no Python 3.6 or newer; install python3",
        )
        for index in range(40)
    ]
    text = plain(report_of([PASSED, *results]))

    assert text.count("has no Python") == 1
    assert "worker-[0-39] → master-1 (10.0.0.11)  tcp 2379 (40 flows)" in text


def test_untrusted_host_keys_are_one_line() -> None:
    """Whatever ssh says of each host, the report says it once, with what mends it for all."""
    names = [f"worker-{index}" for index in range(40)]
    results = [
        flow(
            BLOCKED, index, source=name, verdict="not-tested", reason="no-vantage",
            because=f"{name}: ssh 10.0.0.{index} ended with status 255: Host key verification ...",
        )
        for index, name in enumerate(names)
    ]  # fmt: skip
    hosts = tuple(
        HostReport(
            name=name, state="failed", words="...", host_key=HostKey(state="unknown", target=name)
        )
        for name in names
    )
    text = plain(report_of([PASSED, *results], info=replace(INFO, hosts=hosts)))
    (part,) = [some for some in text.split("\n\n") if some.startswith("NOT TESTED")]

    seen = f"   seen      the host keys of 40 hosts ({names_text(names, 8)}) are not known yet"
    assert part.count("\n   seen ") == 1
    assert f"{seen} (no-vantage)\n   to do     Compare each fingerprint" in part
    assert f"for host in {' '.join(names)}; do ssh " in part
    assert text.count("for host in") == 1


def test_a_finding_says_nothing_twice() -> None:
    """No line of flows that its headline has, none of a fault that no flow has."""
    title = "tcp 2379 from master-0 to 10.0.0.11 is dropped on the path (1 flow)"
    named = replace(BLOCKED, destination="10.0.0.11")
    clock = replace(BLOCKED, requirement="clock", destination="master-0", reason="clock-apart")
    for given, failure, is_told in (
        (title, named, False),
        (title, replace(named, port=2380, end_port=2380), True),
        (title, replace(named, source="master-10"), True),
        (title, BLOCKED, True),
        ("the clock of master-0 is minutes from the others' (1 flow)", clock, False),
    ):
        told = finding(given, "Mend it.", failure)
        text = plain(report_of([failure], told, info=replace(INFO, hosts=())))
        assert ("\n   flows " in text) is is_told, failure
        assert ("\n   purpose " in text) is (failure is not clock)


def test_each_host_with_a_dead_name_server_is_told_with_its_own() -> None:
    """One finding may join them; hosts of one server share a line."""
    hosts = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.1"}
    failures = [
        flow(
            BLOCKED, place, requirement="resolver", source=name, destination=name, address=name,
            protocol="udp", reason="no-resolver", state="unknown",
            because=f"no name server that {name} is configured with resolves ({server} is silent)",
        )
        for place, (name, server) in enumerate(hosts.items())
    ]  # fmt: skip
    text = plain(report_of(failures, finding("no name server resolves", "Mend it.", *failures)))

    shown = "no name server that {} is configured with resolves ({} is silent) (unknown, {})"
    first = shown.format("a", "10.0.0.1", "no-resolver")
    second = shown.format("b", "10.0.0.2", "no-resolver")
    assert f"   seen      {first}; so c\n             {second}\n" in text


def test_warnings_repeat_no_finding() -> None:
    """What the sentence of a flow that fails says already is no warning beside it."""
    said = "its source address is translated"
    failed = replace(BLOCKED, because=f"7 SYNs, no answer; {said}", warnings=(said, "held"))
    text = plain(report_of([failed], finding("cause", "Mend it.", failed)))

    assert "\n\nWARNINGS\n   master-0 → master-1 tcp 2379: held\n\n" in text
    assert text.count(said) == 1


def test_what_a_firewall_of_the_destination_stops_is_no_warning_of_old_records() -> None:
    """Version 0.1.0 warned of it beside the finding; elsewhere the warning stands."""
    stopped = replace(BLOCKED, warnings=(f"master-1: {UNDIALLED}",), where=("destination",))

    for failed in (stopped, replace(stopped, where=("destination", "path"))):
        text = plain(report_of([failed], finding("c", "d", failed)))
        assert (UNDIALLED in text) is (failed is not stopped)


def test_remote_words_cannot_control_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape sequences and line breaks in what a host said never reach the reader's terminal."""
    evil = replace(BLOCKED, because="SSH-2.0\x1b]0;owned\x07\x1b[2J\r\nPASS: all \u202ewell\x9b1m")
    report = report_of([evil], finding("a \x1b[31mtitle", "do\nthis", evil))

    for text in (plain(report), on_terminal(report, 80, monkeypatch)):
        assert not set(text) & set("\x1b\x07\r\x9b\u202e")
        assert "SSH-2.0 PASS: all well1m" in text


def test_brackets_survive_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An IPv6 address in brackets is text, not rich's markup."""
    result = replace(BLOCKED, because="[fd00::10]:443 [bold]said[/bold] nothing :smile:")
    text = on_terminal(report_of([result]), 100, monkeypatch)

    assert "[fd00::10]:443 [bold]said[/bold] nothing :smile:" in text


def test_ascii_streams_get_an_ascii_arrow() -> None:
    """Under LANG=C the arrow becomes two characters instead of an error."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    write_text(everything(), stream)
    stream.seek(0)

    assert "worker-[1-12] -> db-0 (10.0.2.10), db-1 (10.0.2.11)  udp 4299" in stream.read()


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_same_input_same_report(name: str) -> None:
    """Every format gives the same bytes for the same run, however the results came in."""
    texts = set()
    for turn in (1, -1):
        report = everything()
        results = list(report.collector.results())[::turn]
        shuffled = report_of(results, *report.findings, info=report.info)
        stream = io.StringIO()
        REPORTS[name](shuffled, stream)
        texts.add(stream.getvalue())

    assert len(texts) == 1


def test_flows_without_a_result_are_no_pass() -> None:
    """Whatever lost them: the first line counts them, and so does the last."""
    report = report_of([PASSED])
    info = replace(report.info, complete=False, planned_flows=40)
    lines = plain(Report(info, report.collector)).splitlines()

    assert (
        lines[1] == "UNKNOWN: nothing is blocked, but 39 of 40 required flows could not be judged"
    )
    assert "39 more without a result" in lines[-1]
    whole = plain(Report(replace(info, complete=True, planned_flows=1), report.collector))
    assert whole.startswith("PASS: the required flow is as it should be")

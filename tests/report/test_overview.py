"""The summary: can the installation start, how many causes, who must act, and the index."""

from __future__ import annotations

import io
import json
import os
import pty
import struct
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any, BinaryIO

import pytest
from msgspec.structs import replace

from netprobe.cli.main import status_of
from netprobe.judge.findings import fold
from netprobe.model.coverage import Coverage
from netprobe.model.exit import exit_status
from netprobe.model.firewall import Enforcer, FirewallRule
from netprobe.model.matrix import Weight
from netprobe.model.plan import Skipped
from netprobe.model.reasons import owner_of
from netprobe.model.result import AcceptedBy, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.record import RecordWriter, header_of
from netprobe.report.run import REPORTS
from netprobe.report.run.overview import Overview, index_lines, make_overview, word_actor
from netprobe.report.run.text import write_text
from tests.patience import PATIENCE_S
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, flow, port
from tests.report.test_coverage import GROUP

ACCEPTED = AcceptedBy("e1", "later", "team-a", "2027-01-31")
UNSEEN: dict[str, Any] = {"verdict": "not-tested", "state": "unknown", "reason": "no-agent",
                          "where": ("source",)}  # fmt: skip


def report(*results: Result, info: RunInfo = INFO, rules: Any = None, **changes: Any) -> Report:
    """A whole run with these results, folded."""
    flows = sum(one.port_count for one in results)
    whole = replace(info, **{"planned_flows": flows, **changes})
    return Report(whole, collect(results), fold(results), rules=rules)


def failing(place: int, stops: Weight | None, **changes: Any) -> Result:
    """A flow to a host of its own that fails, of a row that stops this."""
    end = f"end-{place}"
    known: dict[str, Any] = {"stops": stops, "destination": end, "address": end, "where": ("path",)}
    row = {"requirement": f"r{place}", "port": place + 1, "end_port": place + 1}
    return flow(BLOCKED, place + 1, **{**known, **row, **changes})


def overview(*results: Result, **changes: Any) -> Overview:
    return make_overview(report(*results, **changes))


def test_yes_where_all_passes() -> None:
    """What is accepted, waived, optional or covered does not matter."""
    excused = [failing(0, "nodes", accepted=ACCEPTED), failing(1, None, waived="later"),
               failing(2, "installation", optional=True)]  # fmt: skip

    assert overview(PASSED) == Overview("yes", ("all required flows pass",), (), 0, ())
    told = overview(PASSED, *excused)
    assert (told.can_start, told.reasons) == ("yes", ("all required flows pass or are accepted",))
    covered = Coverage(unprobed=(replace(GROUP, flows=7),), host_sets=(("a",), ("b",)))
    told = overview(PASSED, coverage=covered, planned_flows=8)
    assert (told.can_start, told.reasons) == ("yes", ("all required flows pass or are covered",))


def test_yes_where_what_fails_is_no_matter_of_the_installation() -> None:
    """Pods, features and monitoring are counted beside it."""
    told = overview(PASSED, failing(0, "monitoring"), failing(1, "pods"), failing(2, "feature"))

    assert (told.can_start, told.reasons) == ("yes", ("all other required flows pass",))
    assert told.beside == (
        "1 flow that fails stops pods", "1 flow that fails stops a feature",
        "1 flow that fails stops monitoring",
    )  # fmt: skip
    assert told.causes == 3


@pytest.mark.parametrize("weight", ["installation", "nodes"])
def test_no_where_the_installation_or_nodes_need_it(weight: Weight) -> None:
    """Whatever else is not known, and also where a baseline has the failure."""
    bad = failing(0, weight)
    for told in (
        overview(PASSED, bad),
        overview(PASSED, replace(bad, verdict="exposed", expect="denied")),
        overview(PASSED, bad, flow(BLOCKED, 9, **UNSEEN), selection="--only etcd"),
        overview(PASSED, replace(bad, known="base.json")),
        overview(bad, failing(1, None)),
    ):
        assert told.can_start == "no"
        words = {"installation": "the installation", "nodes": "nodes"}[weight]
        assert told.reasons == (f"1 flow that fails stops {words}",)
    assert told.beside == (
        "1 flow fails in a row of which the matrix does not say what it stops",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("results", "changes", "reason"),
    [
        ([PASSED], {"selection": "--only etcd: 1 of 9 flows"},
         "only a part of the plan was asked: --only etcd: 1 of 9 flows"),
        ([PASSED], {"sample": "1 of 9 pairs"}, "only a part of the plan was asked: 1 of 9 pairs"),
        ([PASSED], {"interrupted": True, "complete": False}, "the run did not come to its end"),
        ([PASSED], {"complete": False}, "the run did not come to its end"),
        ([PASSED], {"planned_flows": 3}, "2 required flows could not be judged"),
        ([PASSED, failing(0, None), failing(1, "pods")], {},
         "1 flow fails in a row of which the matrix does not say what it stops"),
        ([PASSED, flow(BLOCKED, 9, **UNSEEN)], {}, "1 required flow could not be judged"),
        ([PASSED, flow(BLOCKED, 9, verdict="inconclusive", state="open|filtered")], {},
         "1 required flow could not be judged"),
        ([], {}, "nothing was tested"),
    ],
)  # fmt: skip
def test_nobody_can_tell(results: list[Result], changes: dict[str, Any], reason: str) -> None:
    """A part of the plan, a run without its end, a row without ``stops``, what nobody judged."""
    told = overview(*results, **changes)

    assert (told.can_start, told.reasons) == ("cannot be told", (reason,))


def test_what_is_covered_by_an_accepted_failure_is_open() -> None:
    """Who accepts a failure accepts no flow that it stands for."""
    group = replace(GROUP, flows=7, by_verdict="blocked")
    covered = Coverage(unprobed=(group,), host_sets=(("a",), ("b",)))
    bad = failing(0, "pods", accepted=ACCEPTED)
    told = overview(PASSED, bad, coverage=covered, planned_flows=9)

    assert told.reasons == ("7 required flows could not be judged",)


UNABLE = Skipped("m", "r", "the source is declared vantage: none", source="mirror", flows=12)
ROLELESS = Skipped("m", "s", "no host has the role ntp", roles="ntp")


def test_what_is_required_and_not_asked_is_seen() -> None:
    """Flows from where nothing can run are no part of a yes; rows without a host stand beside."""
    unable = "12 required flows from mirror were not asked: it can run nothing (vantage: none)"
    roleless = "1 required row was not asked: no host has the role ntp"
    told = overview(PASSED, skipped=(UNABLE, ROLELESS))
    assert (told.can_start, told.reasons, told.beside) == ("cannot be told", (unable,), (roleless,))

    failed = overview(PASSED, failing(0, "nodes"), skipped=(UNABLE, ROLELESS))
    assert (failed.can_start, failed.beside) == ("no", (unable, roleless))

    others = [replace(UNABLE, source="bmc", flows=1), replace(UNABLE, flows=0),
              replace(ROLELESS, requirement="t", roles="lb or proxy")]  # fmt: skip
    told = overview(PASSED, skipped=(UNABLE, ROLELESS, *others))
    assert told.reasons == (
        "13 required flows from mirror, bmc were not asked: they can run nothing (vantage: none)",
    )
    assert told.beside == ("2 required rows were not asked: no host has the role ntp, lb or proxy",)

    told = overview(PASSED, skipped=(ROLELESS, *others[1:2], replace(UNABLE, flows=None)))
    assert (told.can_start, told.reasons) == ("yes", ("all required flows pass",))


def test_every_format_says_what_was_not_asked() -> None:
    """Text, page, Markdown, JSON, and brief, which has it in one line."""
    told = report(PASSED, skipped=(UNABLE, ROLELESS))
    for name in ("text", "markdown", "html", "json", "brief"):
        stream = io.StringIO()
        REPORTS[name](told, stream)
        text = " ".join(stream.getvalue().split())
        assert "12 required flows from mirror were not asked" in text, name
        assert "1 required row was not asked: no host has the role ntp" in text, name


def test_who_must_act() -> None:
    """The places that are left say it; where they are several people's, it is unclear."""
    places: Iterable[tuple[Any, str]] = (
        (("path",), "network"), (("return-path",), "network"), (("path", "return-path"), "network"),
        (("source",), "hosts"), (("destination",), "hosts"), (("host",), "hosts"),
        (("service",), "hosts"), (("destination", "path"), "unclear"), ((), "unclear"),
    )  # fmt: skip
    for where, owner in places:
        (finding,) = fold([replace(BLOCKED, where=where)])
        assert owner_of(finding) == owner, where
    for reason, owner in (("other-run", "ourselves"), ("other-machine", "unclear")):
        (finding,) = fold([replace(BLOCKED, where=("path",), reason=reason)])
        assert owner_of(finding) == owner


def test_how_many_rules_and_what_nobody_saw() -> None:
    """Rules count for who has to act; flows that were not tested are our own matter."""
    rule = FirewallRule(id="R1", family=4, protocol="tcp", sources=(), destinations=(),
                        enforcers=(Enforcer("path"),), findings=(1, 2))  # fmt: skip
    bare = failing(2, "pods", verdict="exposed", expect="denied", where=("destination",))
    unseen = flow(BLOCKED, 9, **UNSEEN)
    results = [PASSED, failing(0, "nodes"), failing(1, "nodes"), bare, unseen]
    told = overview(*results, rules=(rule, replace(rule, id="R2", findings=(2,))))

    assert list(map(word_actor, told.who)) == [
        "network team: 2 causes (findings 1, 2), 2 firewall rules",
        "host owners: 1 cause (finding 3), no firewall rule",
        "ourselves: 1 flow that nobody could look at",
    ]
    uncounted = overview(*results)
    assert word_actor(uncounted.who[0]) == "network team: 2 causes (findings 1, 2)"


def test_the_index_has_owner_and_weight() -> None:
    """A line a finding; rows that do not say what they stop are said to."""
    both = report(failing(0, None), replace(failing(1, "nodes"), where=("destination",)))

    cells = [line.text.split("  ") for line in index_lines(both.findings)]
    cells = [[cell.strip() for cell in line if cell] for line in cells]
    assert [line[:4] for line in cells] == [
        ["1", "blocked", "host owners", "nodes"],
        ["2", "blocked", "network team", "not said by the matrix"],
    ]
    assert cells[0][4].startswith("tcp 2 from master-0 to end-1")


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json", "brief"])
def test_the_summary_stands_before_the_findings(name: str) -> None:
    """In every format that people or programs read a run in."""
    stream = io.StringIO()
    both = report(failing(0, None), failing(1, "nodes"), PASSED)
    REPORTS[name](both, stream)
    text = stream.getvalue().casefold()
    if name == "json":
        told = json.loads(stream.getvalue())
        assert told["overview"] == {
            "can_start": "no", "reasons": ["1 flow that fails stops nodes"],
            "beside": ["1 flow fails in a row of which the matrix does not say what it stops"],
            "causes": 2,
            "who": [{"owner": "network", "findings": [1, 2], "rules": None, "untested": 0}],
        }  # fmt: skip
        assert [(one["owner"], one.get("stops")) for one in told["findings"]] == [
            ("network", "nodes"), ("network", None),
        ]  # fmt: skip
        return
    places = [text.index("can the installation start? no"), text.index("1 flow that fails stops"),
              text.index("network team"), text.rindex("not said by the matrix")]  # fmt: skip
    assert places == sorted(places)
    if name != "brief":
        assert places[-1] < text.rindex("to do")


UNJUDGED = flow(BLOCKED, 9, **UNSEEN)
# Each answer, a part of its reason, and the exit status beside it.
ANSWERS: tuple[tuple[list[Result], dict[str, Any], str, str, int], ...] = (
    ([], {}, "yes", "all required flows pass", 0),
    ([failing(0, "pods")], {}, "yes", "all other required flows pass", 1),
    ([failing(0, "nodes"), UNJUDGED], {}, "no", "1 flow that fails stops nodes", 1),
    ([], {"selection": "--only a"}, "cannot be told", "only a part of the plan was asked", 0),
    ([], {"sample": "1 pair"}, "cannot be told", "only a part of the plan was asked", 0),
    ([failing(0, None)], {}, "cannot be told", "the matrix does not say what it stops", 1),
    ([UNJUDGED], {}, "cannot be told", "1 required flow could not be judged", 3),
    ([replace(UNJUDGED, verdict="inconclusive")], {}, "cannot be told",
     "1 required flow could not be judged", 3),
)  # fmt: skip


def test_every_format_gives_the_same_answer_and_the_exit_status_follows_the_verdicts() -> None:
    """Yes, no, and each reason why that cannot be told: in text, page, Markdown, JSON and brief."""
    for results, changes, answer, reason, status in ANSWERS:
        given = report(PASSED, *results, **changes)
        for name in ("text", "markdown", "html", "brief"):
            stream = io.StringIO()
            REPORTS[name](given, stream)
            text = stream.getvalue().casefold()
            assert f"can the installation start? {answer}" in text, (name, reason)
            assert text.index("can the installation start?") < text.index(reason), name
        stream = io.StringIO()
        REPORTS["json"](given, stream)
        told = json.loads(stream.getvalue())["overview"]
        assert told["can_start"] == answer
        assert reason in told["reasons"][0]
        assert exit_status(given.summary, interrupted=False) == status, reason


def test_brief_is_a_line_a_finding() -> None:
    """The headline, the answer, the findings, and the totals."""
    stream = io.StringIO()
    REPORTS["brief"](report(failing(0, None), failing(1, "nodes"), PASSED), stream)
    lines = stream.getvalue().splitlines()

    assert [line.split(":")[0].split("  ")[0] for line in lines] == [
        "BLOCKED", "CAN THE INSTALLATION START? NO", "1", "2", "3 flows",
    ]  # fmt: skip
    assert lines[1].endswith(
        "NO: 1 flow that fails stops nodes; "
        "beside it: 1 flow fails in a row of which the matrix does not say what it stops"
    )
    stream = io.StringIO()
    REPORTS["brief"](report(PASSED), stream)
    assert len(stream.getvalue().splitlines()) == 3


def write_on_terminal(some: Report, height: int) -> list[str]:
    """What a terminal of so many lines gets."""
    parent, child = pty.openpty()
    ioctl(child, TIOCSWINSZ, struct.pack("HHHH", height, 80, 0, 0))
    with os.fdopen(parent, "rb") as seen, ThreadPoolExecutor(1) as reader:
        found = reader.submit(list, read_blocks(seen))
        with os.fdopen(child, "w") as stream:
            write_text(some, stream)
        return b"".join(found.result(PATIENCE_S)).decode().splitlines()


def make_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let terminals be as large as they are, without colour."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")


def read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """What a terminal shows until nobody writes to it any more."""
    with suppress(OSError):
        while block := os.read(stream.fileno(), 4096):
            yield block


def test_a_long_report_ends_with_its_summary_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what the screen shows; a short report, and one for a file, has it once."""
    make_plain(monkeypatch)
    several = report(*(failing(place, "nodes") for place in range(6)))

    whole = "\n".join(write_on_terminal(several, 200))
    assert whole.count("CAN THE INSTALLATION START? NO") == 1
    long = write_on_terminal(several, 20)
    end = long[-20:]
    assert "\n".join(long).count("CAN THE INSTALLATION START? NO") == 2
    assert [line for line in end if line.startswith("BLOCKED: ")]
    assert [line for line in end if "CAN THE INSTALLATION START? NO" in line]
    assert end[-1].startswith("   6  blocked  network team  nodes  tcp 6 from ")
    assert max(map(len, end)) < 80
    assert write_on_terminal(several, 12)[-1].strip().startswith("and ")


def test_a_report_is_as_long_as_its_wrapped_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few long lines fill a screen, too: its summary comes again, and all of it is in sight."""
    make_plain(monkeypatch)
    words = f"only {' '.join(f'worker-{place}' for place in range(40))}"
    long = report(failing(0, "nodes", because=words), failing(1, "pods"), selection=words)
    plain = io.StringIO()
    write_text(long, plain)
    height = plain.getvalue().count("\n") + 1

    lines = write_on_terminal(long, height)
    verdicts = [place for place, line in enumerate(lines) if line.startswith("BLOCKED: ")]
    assert len(verdicts) == 2
    assert len(lines) - verdicts[-1] < height


def test_rules_are_those_that_a_request_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where names are taken out, with which no rule could be written."""
    writer = RecordWriter(str(tmp_path / "r"), header_of(PLAN, "2026-11-20T10:00:00Z"))
    results = [PASSED, port(BLOCKED, 2380, where=("path",), order=(0, 0, 1))]
    for one in results:
        writer.add(one)
    writer.close(replace(INFO, planned_flows=2))

    for more in ([], ["--redact"]):
        assert status_of(["report", str(tmp_path / "r"), *more]) == 1
        assert "network team: 1 cause (finding 1), 1 firewall rule" in capsys.readouterr().out

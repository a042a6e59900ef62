"""The page of a run as a value: which sections it has, in which order, and who prints them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.printable import escape_markdown
from netprobe.model.reasons import REASONS
from netprobe.model.result import Result
from netprobe.report.page.page import Field, PageSection
from netprobe.report.page.terminal import write_terminal
from netprobe.report.record.changes import Changes, Fate, Unshared, key_of
from netprobe.report.record.collector import Report
from netprobe.report.run import REPORTS
from netprobe.report.run.run_page import make_page
from netprobe.report.run.text import text_parts
from tests.estate.run import make_run
from tests.report.samples import BLOCKED, PASSED, flow, report_of
from tests.report.test_coverage import GROUP
from tests.report.test_html import Reader

NEWS = [
    "worse", "decided", "unknown", "fixed", "moved", "otherwise", "only-later", "only-earlier",
    "warnings",
]  # fmt: skip
REST = [
    "inconclusive", "not-tested", "mixed", "not-covered", "covered-failing", "covered", "quality",
    "refusals", "accepted", "excused", "limits", "skipped", "notes",
]  # fmt: skip
THEN = Fate("bad", "filtered", "no-response", ("path",))
# The section that a format prints in another place, and otherwise.
TABLES = (("quality", "html"), ("skipped", "html"))


def make_full_run() -> Report:
    """The run that has one of everything, after another run, over zones that are not alike."""
    report = make_run()
    one, *_ = report.collector.failures()
    alone = Unshared()
    alone.add(key_of(one), "bad", ((443, 443),))
    changes = Changes(
        worse=[one], decided=[one], fixed=[one], still=[one], otherwise={THEN: [one]},
        moved={THEN: [one]}, unknown=[one], only_later=alone, only_earlier=alone,
    )  # fmt: skip
    coverage = report.info.coverage
    assert coverage is not None
    unprobed = (*coverage.unprobed, replace(GROUP, by_verdict="blocked"))
    coverage = replace(coverage, mixed=("a to b",), unprobed=unprobed)
    return replace(report, info=replace(report.info, coverage=coverage), changes=changes)


def print_run(report: Report, name: str) -> str:
    """The report in a format, as its reader gets it; without case, since headings differ in it."""
    stream = io.StringIO()
    if name == "terminal":
        write_terminal(text_parts(report), stream, 10_000)
    else:
        REPORTS[name](report, stream)
    text = stream.getvalue()
    return (Reader(text).text if name == "html" else text).casefold()


def list_texts(section: PageSection) -> Iterator[str]:
    """What a section says below its heading, of long lines the beginning: a page folds the rest."""
    for part in (part for group in section.groups for part in group):
        lines = part.lines if isinstance(part, Field) else [part.text]
        yield from (str(line)[:300] for line in lines)
    if section.more:
        yield section.more.text


def test_sections_have_one_order() -> None:
    """News come first, then what is open, covered, excused and limited; findings tell the rest."""
    page = make_page(make_full_run())

    assert [section.name for section in page.news] == NEWS
    assert [section.name for section in page.rest] == REST


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "terminal", "markdown", "html"])
def test_whoever_prints_prints_every_section_in_its_order(name: str) -> None:
    """Headings and all lines below them; the page alone has tables of ways and of what is
    skipped, last."""
    report = make_full_run()
    text = print_run(report, name)
    sections = sorted(make_page(report).sections, key=lambda one: (one.name, name) in TABLES)
    at = 0
    for section in sections:
        below = [] if (section.name, name) in TABLES else list_texts(section)
        for words in (section.title.text, *below):
            written = escape_markdown(words) if name == "markdown" else words
            at = text.index(written.casefold(), at)


def test_the_page_sends_its_readers_to_its_own_search_and_leaves_texts_of_others_alone() -> None:
    """What has no room in a text stands in another output; a page has all flows itself."""
    flows = [flow(BLOCKED, at, optional=True, requirement=f"r{at}") for at in range(30)]
    report = report_of([PASSED, *flows])
    report = replace(report, info=replace(report.info, notes=("for more see -o wide",)))

    assert "and 10 more groups, see -o wide" in print_run(report, "text")
    assert "and 10 more groups, see flows" in print_run(report, "html")
    assert "for more see -o wide" in print_run(report, "html")


def test_one_reason_of_several_sources_is_one_group() -> None:
    """Whatever the sources are called, and wherever the sentence names them."""
    unseen = [
        flow(
            BLOCKED, at, source=name, verdict="not-tested", state="unknown", reason="no-agent",
            because=f"the agent of {name} is gone",
        )
        for at, name in enumerate(("node-1", "node-10"))
    ]  # fmt: skip

    (section,) = make_page(report_of(unseen)).rest
    assert len(section.groups) == 1
    assert list_seen(section) == ["the agent of node-1 is gone (no-agent)"]


def test_reasons_decide_which_untested_flows_are_one_group() -> None:
    """Sentences may differ: all that are not alike stand in the group of their reason."""
    unseen = [
        flow(
            BLOCKED, at, source=f"node-{at}", verdict="not-tested", state="unknown", reason=reason,
            because=because,
        )
        for at, (reason, because) in enumerate(
            (("no-agent", "node-0: timeout"), ("no-agent", "node-1: refused"), ("stopped", "end"))
        )
    ]  # fmt: skip

    (section,) = make_page(report_of(unseen)).rest
    assert len(section.groups) == 2
    assert list_seen(section) == [
        "node-0: timeout (no-agent)", "node-1: refused (no-agent)", "end (stopped)",
    ]  # fmt: skip


def test_what_was_not_tested_has_something_to_do_whatever_the_reason() -> None:
    """Every known reason, and one that a later version may have."""
    for reason in (*REASONS, "of-a-later-version"):
        unseen = replace(BLOCKED, verdict="not-tested", state="unknown", reason=reason)
        (section,) = make_page(report_of([unseen])).rest
        labels = [part.label for part in section.groups[0] if isinstance(part, Field)]
        assert labels[-1] == "to do", reason


def test_a_start_that_hangs_names_the_hole_that_others_measured() -> None:
    """The finding, and where ping shows it; without one, what the reason asks for."""
    hole = flow(
        BLOCKED, 0, reason="mtu-black-hole", where=("path",), path_mtu_bytes=1400,
        needed_mtu_bytes=1500, source="node-1", destination="node-2", address="10.0.0.2",
    )  # fmt: skip
    hanging = flow(
        BLOCKED, 1, source="node-2", verdict="not-tested", state="unknown",
        reason="start-timeout", because="node-2: no agent after 30 s",
    )  # fmt: skip
    alone = make_page(report_of([hanging]))
    beside = make_page(report_of([hole, hanging], *fold([hole])))

    (words,), (more,) = (
        [str(line) for group in page.rest[-1].groups for part in group
         if isinstance(part, Field) and part.label == "to do" for line in part.lines]
        for page in (alone, beside)
    )  # fmt: skip
    assert words.startswith("See what the host says to netprobe check --hosts")
    assert more == (
        "Others measured what stops ssh, too: large packets vanish there (finding 1). `ping -M do "
        f"-s 1372 10.0.0.2` on node-1 gets an answer, and with -s 1373 it gets none. {words}"
    )


def test_a_doubt_says_what_removes_it_where_its_reason_tells() -> None:
    """A size that nobody could try, and what answers in the destination's place; of other doubts
    the report advises nothing."""
    unknown = flow(
        BLOCKED, 0, verdict="inconclusive", state="unknown", reason="mtu-not-measured",
        protocol="icmp", port=None, end_port=None,
    )  # fmt: skip
    taken = flow(BLOCKED, 0, verdict="inconclusive", state="open", reason="false-open")
    other = replace(unknown, reason="no-response")

    assert list_fields(unknown, "to do") == [
        "Mend what stops the other flows between these hosts, and run again: sizes are tried where "
        "small packets are answered."
    ]
    assert list_fields(taken, "to do") == [
        "Find what answers in the destination's place, a proxy, a firewall that accepts "
        "connections itself or an address translation, and let it pass these flows on; then run "
        "again."
    ]
    assert not list_fields(other, "to do")


def list_fields(result: Result, label: str) -> list[str]:
    """Give the lines of the fields of this label in the report of one result."""
    return [
        str(line)
        for section in make_page(report_of([result])).rest
        for group in section.groups
        for part in group
        if isinstance(part, Field) and part.label == label
        for line in part.lines
    ]


def list_seen(section: PageSection) -> list[str]:
    """Give what a section says was seen, over all of its groups."""
    fields = [part for group in section.groups for part in group if isinstance(part, Field)]
    return [str(line) for one in fields if one.label == "seen" for line in one.lines]

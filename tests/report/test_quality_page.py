"""The ways that were measured, in the text and on the page."""

from __future__ import annotations

import io
import re

from msgspec.structs import replace

from netprobe.judge.quality import judge_quality
from netprobe.model.quality import QualityLimits, WaySamples
from netprobe.model.result import Result
from netprobe.report.page.page import Line
from netprobe.report.record.collector import Report, collect
from netprobe.report.run.html.document import write_document
from netprobe.report.run.quality_text import quality_sections
from tests.report.samples import INFO, PASSED

# Nine of ten round trips take 1 ms, the others 60 ms: an average would say 7 ms, which none takes.
SPLIT = (*(1_000 for _ in range(270)), *(60_000 for _ in range(30)))


def way(rtts_us: tuple[int, ...], lost: int = 0) -> Result:
    base = replace(PASSED, requirement="etcd/quality", protocol="tcp", port=2380, end_port=2380)
    return judge_quality(base, WaySamples("tcp", rtts_us, lost), QualityLimits(loss=0.5))


def written(*results: Result) -> str:
    stream = io.StringIO()
    write_document(Report(INFO, collect(results)), stream)
    return stream.getvalue()


def test_the_page_draws_the_distribution() -> None:
    """A bar where round trips are, none between them, the highest where most are; whoever hears the
    page gets its numbers."""
    page = written(way(SPLIT))
    (drawn,) = re.findall(r'<svg class="bars".*?</svg>', page)
    heights = [int(one) for one in re.findall(r'<rect .*?height="(\d+)"', drawn)]
    assert len(heights) == 2
    assert heights[0] > 5 * heights[1]
    assert "<title>270 up to 1.41 ms, 30 up to 60 ms</title>" in drawn
    assert not re.search(r"(?<![\d.])(6\.9|7) ms", page)


def test_a_way_without_an_answer_has_no_bars() -> None:
    """Its line says so."""
    page = written(way((), 200))
    assert "no answer" in page
    assert "<svg class" not in page


def test_a_run_without_measurements_says_nothing() -> None:
    """Neither on the page nor in the text."""
    assert 'id="quality"' not in written(PASSED)
    assert not list(quality_sections(Report(INFO, collect([PASSED]))))


def test_the_text_has_a_line_for_each_way() -> None:
    """Also where it is good."""
    (told,) = quality_sections(Report(INFO, collect([PASSED, way(SPLIT), way((900,) * 300)])))
    assert told.title.text == "QUALITY: 2 ways measured"
    lines = [one for group in told.groups for one in group if isinstance(one, Line)]
    assert [line.text.partition(":")[0] for line in lines] == ["pass"] * 2

"""Every result on one line."""

from __future__ import annotations

import io

from msgspec.structs import replace

from netprobe.model.plan import Skipped
from netprobe.report.run.wide import write_wide
from tests.report.golden import check_golden
from tests.report.samples import BLOCKED, INFO, PASSED, everything, report_of


def test_golden() -> None:
    """All results and everything skipped, one line each, in plan order."""
    stream = io.StringIO()
    write_wide(everything(), stream)

    check_golden("everything-wide.txt", stream.getvalue())


def test_one_line_a_result() -> None:
    """A line break in remote words does not break the line; empty cells are dashes."""
    evil = replace(BLOCKED, because="two\nlines", row="")
    info = replace(INFO, skipped=(Skipped("m", "r", "one host", "a", "a"),))
    stream = io.StringIO()
    write_wide(report_of([PASSED, evil], info=info), stream)
    heads, *rows = stream.getvalue().splitlines()[:4]

    assert [row.split()[0] for row in rows] == ["pass", "blocked", "skipped"]
    assert "two lines" in rows[1]
    assert {len(row.split()) >= len(heads.split()) for row in rows} == {True}
    assert rows[2].split()[4:6] == ["a", "a"]


def test_a_part_is_called_one() -> None:
    """What the filters or a sample left is said above the totals."""
    info = replace(INFO, selection="--only etcd: 1 of 262 flows", sample="1 of 1 pairs")
    stream = io.StringIO()
    write_wide(report_of([PASSED], info=info), stream)

    assert stream.getvalue().splitlines()[-3:-1] == [
        "SELECTION: --only etcd: 1 of 262 flows",
        "SAMPLE: 1 of 1 pairs",
    ]

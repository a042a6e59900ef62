"""The ways that were measured, on the page: a line each, with the distribution of its round trips.

An average would hide what matters: a way on which one round trip of a hundred takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.quality import Bar, Quality, word_share, word_us
from netprobe.model.result import Result
from netprobe.report.page.flow_groups import wire_text
from netprobe.report.page.wording import number, plural
from netprobe.report.run.html.elements import Markup, element, keep_names

MOST_WAYS = 500
BAR_WIDTH, BAR_HEIGHT = 9, 28
HEADS = ("From", "To", "Port", "p50", "p99 (95 %)", "Longest", "Jitter", "Lost", "Distribution")


def quality_section(measured: Sequence[Result]) -> Iterator[Markup]:
    """List the ways that were measured; nothing where none was."""
    if not measured:
        return
    heads = element("tr", *(element("th", text, scope="col") for text in HEADS))
    rows = [_write_way(one, one.quality) for one in measured[:MOST_WAYS] if one.quality is not None]
    table = element("table", element("thead", heads), element("tbody", *rows))
    rest = len(measured) - MOST_WAYS
    more = element("p", f"and {number(rest)} more: the JSON report has all") if rest > 0 else None
    yield element(
        "section",
        element("h2", f"Quality: {plural(len(measured), 'way')} measured", id="quality-title"),
        element("div", table, class_="wide"),
        more,
        id="quality",
        aria_labelledby="quality-title",
    )


def _write_way(result: Result, shown: Quality) -> Markup:
    cells = [
        keep_names(result.source),
        keep_names(f"{result.destination} ({result.address})"),
        keep_names(wire_text([(result.protocol, result.ports)])),
        *_list_times(shown),
        f"{shown.lost} of {shown.samples} ({word_share(shown.lost_low)} to "
        f"{word_share(shown.lost_high)})",
    ]
    return element(
        "tr", *(element("td", one) for one in cells), element("td", _draw_bars(shown.bars))
    )


def _list_times(shown: Quality) -> list[str]:
    if shown.p50_us is None:
        return ["no answer", "", "", ""]
    high = "more" if shown.p99_high_us is None else word_us(shown.p99_high_us)
    return [
        word_us(shown.p50_us),
        f"{word_us(shown.p99_us)} ({word_us(shown.p99_low_us)} to {high})",
        word_us(shown.max_us),
        word_us(shown.jitter_us),
    ]


def _draw_bars(bars: Sequence[Bar]) -> Markup | None:
    """Draw the distribution; whoever does not see it hears its numbers."""
    if not bars:
        return None
    most = max(bar.count for bar in bars)
    drawn = [
        _draw_bar(place, -(-bar.count * BAR_HEIGHT // most))
        for place, bar in enumerate(bars)
        if bar.count
    ]
    words = ", ".join(f"{bar.count} up to {word_us(bar.up_to_us)}" for bar in bars if bar.count)
    size = {"width": str(BAR_WIDTH * len(bars)), "height": str(BAR_HEIGHT)}
    title = element("title", words)
    return element("svg", title, *drawn, class_="bars", role="img", **size)


def _draw_bar(place: int, height: int) -> Markup:
    return element(
        "rect", x=str(place * BAR_WIDTH), y=str(BAR_HEIGHT - height), width=str(BAR_WIDTH - 1),
        height=str(height),
    )  # fmt: skip

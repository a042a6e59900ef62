"""The history as a page: a lane for each outage over time, from the parts of the report's page.

It is read without a program, and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TextIO

from netprobe.model.outage import History, Interval, Outage
from netprobe.model.ports import text
from netprobe.model.result import PORTLESS
from netprobe.report.page.marks import KINDS, word_marks
from netprobe.report.page.times import word_begin, word_end, word_looks, word_time
from netprobe.report.page.wording import listed, plural
from netprobe.report.run.html.document import read_asset
from netprobe.report.run.html.elements import Markup, element, raw_element, source_hash

# Of a lane, in units of its picture.
_WIDTH: Final = 1000.0
_HEIGHT: Final = 24
_TICKS: Final = 4
_LEAST: Final = 3.0
# A member is a line of its table; a longer one says how many more there are.
_MOST_MEMBERS: Final = 200
_MOST_ENDS: Final = 20


def write_history_page(history: History, stream: TextIO) -> None:
    """Write the page. Everything is ASCII, so that no locale or mail can damage it."""
    style = read_asset("page.css") + read_asset("history.css")
    policy = f"default-src 'none'; style-src {source_hash(style)}; img-src data:; base-uri 'none'"
    title = _word_title(history)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),
        element("title", f"netprobe: {title}"),
        raw_element("style", style),
    )
    body = element(
        "body",
        element(
            "header",
            element("p", "netprobe", class_="brand"),
            element("h1", title),
            element("p", word_looks(history), class_="quiet"),
        ),
        element("main", *_list_sections(history)),
    )
    whole = element("html", head, body, lang="en").encode("ascii", "xmlcharrefreplace").decode()
    stream.write(f"<!DOCTYPE html>\n{whole}\n")


def _word_title(history: History) -> str:
    going_on = sum(one.is_open for one in history.outages)
    return f"{plural(len(history.outages), 'outage')}, {going_on} open"


def _list_sections(history: History) -> Iterator[Markup]:
    if history.outages:
        yield element("h2", "Outages over time")
        yield element(
            "p",
            "Faint: it began or ended in this time. Strong: it was there. Tick: a route changed.",
            class_="quiet",
        )
        span = _find_span(history)
        yield _draw_axis(*span)
        for one in history.outages:
            yield _draw_lane(span, one)
    if history.blind:
        yield element("h2", "Not seen")
        rows = (
            (one.host, one.reason, word_time(one.since), word_time(one.until) if one.until else "")
            for one in history.blind
        )
        yield _write_table(("host", "reason", "since", "until"), rows)
    if history.marks:
        yield element("h2", "Routes that changed")
        yield _write_table(
            ("between", "and", "from", "to", "what", "before", "now"), _list_marks(history)
        )


def _list_marks(history: History) -> Iterator[tuple[str, ...]]:
    for one in history.marks:
        ends = listed(one.destinations, _MOST_ENDS)
        times = word_time(one.last_before), word_time(one.first_now)
        yield *times, one.source, ends, KINDS[one.kind], one.before, one.now


def _find_span(history: History) -> tuple[float, float]:
    """Give the time that lanes show: that of the looks, or of open outages where there are none."""
    last = max(one.times.last_bad for one in history.outages)
    begin = last if history.begin is None else history.begin
    return begin, max(begin + 1.0, last if history.end is None else history.end)


def _draw_axis(begin: float, end: float) -> Markup:
    moments = [begin + (end - begin) * number / _TICKS for number in range(_TICKS + 1)]
    return element("ol", *(element("li", word_time(at)) for at in moments), class_="axis")


def _draw_lane(span: tuple[float, float], outage: Outage) -> Markup:
    state = "open" if outage.is_open else "ended"
    words = f"{outage.id}, {state}: {outage.title}"
    return element(
        "details",
        element(
            "summary", element("b", f"{state} "), outage.title, _draw_bars(span, outage, words)
        ),
        element("p", _word_times(outage)),
        *(element("p", words, class_="mark") for words in word_marks(outage)),
        _write_members(outage),
        class_=f"lane {state}",
        id=f"outage-{outage.id}",
    )


def _draw_bars(span: tuple[float, float], outage: Outage, words: str) -> Markup:
    times = outage.times
    begin = span[0] if times.last_good is None else times.last_good
    end = span[1] if times.end is None else times.end
    sure_end = end if outage.is_open else max(times.last_bad, times.first_bad)
    bars = (
        (begin, times.first_bad, "unsure"),
        (times.first_bad, sure_end, "bad"),
        (sure_end, end, "unsure"),
    )
    return element(
        "svg",
        element("title", words),
        *(_draw_bar(span, *bar) for bar in bars),
        *(_draw_bar(span, one.first_now, one.first_now, "tick") for one in outage.marks),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )


def _draw_bar(span: tuple[float, float], begin: float, end: float, kind: str) -> Markup:
    scale = _WIDTH / (span[1] - span[0])
    left = max(begin, span[0])
    width = max((min(end, span[1]) - left) * scale, _LEAST if kind in ("bad", "tick") else 0.0)
    left = min((left - span[0]) * scale, _WIDTH - width)
    return element(
        "rect", x=f"{left:.1f}", y="0", width=f"{width:.1f}", height=str(_HEIGHT), class_=kind
    )


def _word_times(outage: Outage) -> str:
    words = f"{word_begin(outage.times)}, {word_end(outage.times)}"
    return f"{words[0].upper()}{words[1:]}. Seen by {plural(outage.looks, 'look')}."


def _word_good(times: Interval) -> str:
    if times.not_required_since is not None:
        return "not required since " + word_time(times.not_required_since)
    return "" if times.first_good is None else word_time(times.first_good)


def _write_members(outage: Outage) -> Markup:
    rows = (
        (
            one.key[2],
            one.key[3],
            one.key[4],
            one.key[5] if one.ports == PORTLESS else f"{one.key[5]} {text(one.ports)}",
            word_time(one.times.first_bad),
            _word_good(one.times),
        )
        for one in outage.members[:_MOST_MEMBERS]
    )
    columns = ("from", "to", "address", "port", "bad since", "good since")
    table = _write_table(columns, rows)
    more = len(outage.members) - _MOST_MEMBERS
    if more <= 0:
        return table
    return element("div", table, element("p", f"and {more:,} more: see -o json", class_="quiet"))


def _write_table(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Markup:
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element(
        "div",
        element("table", element("thead", head), element("tbody", *body)),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label=f"table of {columns[0]}, {columns[1]} ...",
    )

"""What silent connections survive between zones, as a page and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TextIO

import netprobe
from netprobe.model.idle import (
    Ended,
    HeldKeepalive,
    IdleProtocol,
    IdleReport,
    PairMemory,
    SideMemory,
)
from netprobe.model.matrix import write_time
from netprobe.model.struct_json import to_json
from netprobe.report.page.page import Line, PagePart, Style, field, write_page
from netprobe.report.page.wording import duration, plural

IDLE_SCHEMA: Final = "netprobe.idle/1"
_ENDS: Final[Mapping[Ended | None, str]] = {
    "dropped": "without a reset", "reset": "with a reset", "closed": "with a FIN",
    "refused": "with an ICMP error", None: "",
}  # fmt: skip
# By the rank of a pair.
_STYLES: Final[tuple[Style, ...]] = ("bad", "doubt", "doubt", "good", "doubt")


def write_idle_text(report: IdleReport, stream: TextIO) -> None:
    """Write a paragraph for each pair of zones, those with a fault first."""
    write_page(_page_parts(report), stream)


def _page_parts(report: IdleReport) -> Iterator[PagePart]:
    yield _head_line(report)
    longest = f"silences up to {report.up_to_s:,} s"
    yield Line(f"netprobe {netprobe.__version__}, {report.started_at}, {longest}")
    for number, pair in enumerate(sorted(report.pairs, key=_rank_pair), start=1):
        yield Line()
        yield Line(f"{number}. {_name_pair(pair)}: {_word_pair(pair)}", _choose_style(pair), hang=3)
        yield from _pair_fields(pair)
    yield Line()
    measured = sum(pair.alive_s is not None for pair in report.pairs)
    rest = len(report.pairs) - measured
    left = f", {rest} not" if rest else ""
    early = sum(pair.is_unknown and pair.alive_s is not None for pair in report.pairs)
    left += f", {early} not to the end" if early else ""
    words = f"{plural(measured, 'pair')} of zones measured{left}; {duration(report.elapsed_s)}"
    yield Line(words, "strong")


def _head_line(report: IdleReport) -> Line:
    short = sum(pair.is_too_short for pair in report.pairs)
    forgotten = sum(pair.forgotten_s is not None for pair in report.pairs)
    measured = sum(pair.alive_s is not None for pair in report.pairs)
    if short:
        words = "silent connections are forgotten sooner than a keepalive comes"
        return Line(f"TOO SHORT: {words} ({plural(short, 'pair')} of zones)", "bad")
    if report.stopped:
        return Line("STOPPED: what is known so far", "doubt")
    if not measured:
        return Line("NOT MEASURED: no connection between zones could be held", "doubt")
    unknown = sum(pair.is_unknown for pair in report.pairs)
    if unknown:
        words = f"{unknown} of {plural(len(report.pairs), 'pair')} of zones"
        where = plural(forgotten, "pair")
        known = f"; silent connections of {where} are forgotten" if forgotten else ""
        return Line(f"NOT KNOWN: {words} could not be measured to the end{known}", "doubt")
    if forgotten:
        where = f"silent connections ({plural(forgotten, 'pair')} of zones)"
        return Line(f"FORGOTTEN: {where}; {_word_known(report)}", "doubt")
    words = f"no silent connection was forgotten within {report.up_to_s:,} s"
    rest = len(report.pairs) - measured
    pairs = f"{plural(measured, 'pair')} of zones{f', {rest} not measured' if rest else ''}"
    return Line(f"OK: {words} ({pairs})", "good")


def _word_known(report: IdleReport) -> str:
    if any(pair.keepalives for pair in report.pairs):
        return "no keepalive of a row is known to be too long"
    return "no row says how often its programs send (keepalive:)"


def _rank_pair(pair: PairMemory) -> int:
    if pair.is_too_short:
        return 0
    if pair.alive_s is None:
        return 4
    if pair.forgotten_s is not None:
        return 1
    return 2 if pair.is_unknown else 3


def _choose_style(pair: PairMemory) -> Style:
    return _STYLES[_rank_pair(pair)]


def _name_pair(pair: PairMemory) -> str:
    via = f" through {pair.via}" if pair.via else ""
    ends = f"within {pair.from_}" if pair.from_ == pair.to else f"from {pair.from_} to {pair.to}"
    return f"{ends}{via} (IPv{pair.family})"


def _word_pair(pair: PairMemory) -> str:
    if pair.alive_s is None:
        return f"not measured ({pair.reason})"
    if pair.forgotten_s is None:
        return f"silent {pair.protocol.upper()} lives for {pair.alive_s:,} s at least"
    words = (
        f"silent {pair.protocol.upper()} is forgotten between {pair.alive_s:,} and "
        f"{pair.forgotten_s:,} s, {_word_end(pair)}"
    )
    busy = pair.busy
    if busy is None:
        return words
    lives = "lives" if busy.lived else "is forgotten, too"
    return f"{words}; with a packet every {busy.every_s} s it {lives}"


def _word_end(pair: PairMemory) -> str:
    if pair.protocol == "udp":
        return "with an ICMP error" if pair.reset else "without a word"
    return "with a reset or a FIN" if pair.reset else "without a reset"


def _pair_fields(pair: PairMemory) -> Iterator[PagePart]:
    flow = pair.flow
    if flow is not None:
        ends = f"{flow.source} → {flow.destination} ({flow.address})  {pair.protocol} {flow.port}"
        yield from field("flow", [f"{ends}, row {flow.requirement}"])
    sides = [(words, one) for words, one in _list_sides(pair) if one is not None]
    if pair.forgotten_s is not None and len({one for _, one in sides}) > 1:
        seen = (f"{words}: {_word_side(one, pair.protocol)}" for words, one in sides)
        yield from field("seen", seen)
    yield from field("why", [pair.because])
    yield from field("keepalive", [_word_keepalive(one, pair) for one in pair.keepalives])
    too_long = [one for one in pair.keepalives if one.outcome == "too-long"]
    if too_long:
        longest = max(one.keepalive_s for one in too_long)
        to_do = f"raise the idle timeout of what stands between them above {longest:,} s"
        if pair.alive_s:
            to_do += f", or let the programs send at least every {pair.alive_s:,} s"
        yield from field("to do", [to_do])


def _list_sides(pair: PairMemory) -> tuple[tuple[str, SideMemory | None], ...]:
    if pair.protocol == "udp":
        return (
            ("after one question and its answer", pair.one_exchange),
            ("after a conversation of 3 s", pair.by_destination),
        )
    return (
        ("if the source sends first", pair.by_source),
        ("if the destination sends first", pair.by_destination),
    )


def _word_side(side: SideMemory, protocol: IdleProtocol) -> str:
    if side.forgotten_s is None:
        return f"lives for {side.alive_s:,} s at least"
    is_silent = protocol == "udp" and side.ended == "dropped"
    how = "without a word" if is_silent else _ENDS[side.ended]
    return f"forgotten between {side.alive_s:,} and {side.forgotten_s:,} s, {how}"


def _word_keepalive(one: HeldKeepalive, pair: PairMemory) -> str:
    what = "sends TCP keepalives every" if one.kind == "tcp" else "sends every"
    words = f"row {one.requirement} ({one.matrix}) {what} {write_time(one.keepalive_s)}"
    if one.uncounted_s is not None:
        words += f" (its TCP keepalives every {write_time(one.uncounted_s)} keep no proxy awake)"
    if one.outcome == "too-long":
        return f"{words}: too long"
    if one.outcome == "lives":
        return f"{words}: that is enough"
    if pair.forgotten_s is None and pair.reason is None:
        wanted = write_time(one.keepalive_s)
        return f"{words}: cannot be told, no silence was so long; --up-to {wanted} would tell"
    return f"{words}: cannot be told"


def write_idle_json(report: IdleReport, stream: TextIO) -> None:
    """Write the report as one JSON document, keys in a fixed order."""
    head = {"schema": IDLE_SCHEMA, "netprobe_version": netprobe.__version__}
    json.dump({**head, **to_json(report)}, stream, indent=1, ensure_ascii=False)
    stream.write("\n")


IDLE_WRITERS: Final[Mapping[str, Callable[[IdleReport, TextIO], None]]] = {
    "text": write_idle_text,
    "json": write_idle_json,
}

"""The words that reports share: numbers, ports, places, verdicts and lists of names.

Sentences about flows get holes for the names of their ends, so that equal ones are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from netprobe.model.accepted import NEVER
from netprobe.model.printable import clean
from netprobe.model.reasons import find_reason
from netprobe.model.result import Finding, Place, Result

_PLACES: dict[Place, str] = {
    "source": "the source itself",
    "path": "the path between the hosts",
    "destination": "the destination's own firewall",
    "return-path": "the way back to the source",
    "host": "the destination host",
    "service": "the service at the destination",
}

# Why a failure does not decide the exit status; of several the first counts.
EXCUSES: Final = ("accepted", "waived", "spared", "optional", "known")


def excuse_of(result: Result) -> str | None:
    """Tell which of ``EXCUSES`` a result has; None for one that decides."""
    return next((name for name in EXCUSES if getattr(result, name) not in (None, False)), None)


def excuse_text(result: Result) -> str:
    """``accepted until 2027-01-31: the reason (owner, id)``; nothing for a result that decides."""
    excuse = excuse_of(result)
    if result.accepted is not None:
        one = result.accepted
        until = "without an end" if one.until == NEVER else f"until {one.until}"
        return f"accepted {until}: {one.reason} ({one.owner}, {one.id})"
    texts = {
        "waived": f"waived: {result.waived}",
        "spared": f"spared: {result.spared} passes, and one of {result.any_of} is enough",
        "known": f"known: {result.known} has it too",
    }
    return texts.get(excuse, excuse) if excuse else ""


def number(count: int) -> str:
    """Give a count as people read it: ``12,345``."""
    return f"{count:,}"


def plural(count: int, noun: str) -> str:
    """``1 flow``, ``2 flows``."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


def duration(seconds: float) -> str:
    """Seconds as people read them: ``4.2 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def port_text(result: Result) -> str:
    """``6443``, ``7000-7999``, or nothing where the protocol has no ports."""
    if result.port is None:
        return ""
    if result.end_port is None or result.end_port == result.port:
        return str(result.port)
    return f"{result.port}-{result.end_port}"


def where_text(about: Finding | Result) -> str:
    """Give the places that are still possible; one place alone is proven.

    A host that lets nothing out is the source of its packets, and the destination of others'.
    """
    if isinstance(about, Finding) and about.where == ("destination", "source"):
        first = about.speaker
        if first.where == ("source",):
            return f"{first.source} itself ({find_reason(first.reason).source_is})"
    places = [_word_place(place, about) for place in about.where]
    if not places:
        return "not known"
    if len(places) == 1:
        return places[0]
    return f"not narrowed down between {', '.join(places[:-1])} and {places[-1]}"


def _word_place(place: Place, about: Finding | Result) -> str:
    first = about.speaker if isinstance(about, Finding) else about
    reason = find_reason(first.reason)
    if place in ("path", "return-path") and about.rejected_by:
        return f"{_PLACES[place]}: {reason.router_is.format(router=about.rejected_by)}"
    if place == "source":
        return f"{_PLACES[place]} ({reason.source_is})"
    if place == "destination" and reason.destination_is:
        return f"the destination itself ({reason.destination_is})"
    if place == "host":
        return f"{_PLACES[place]} ({reason.host_is})"
    return _PLACES[place]


def listed(items: Sequence[str], most: int) -> str:
    """``a, b, c and 37 more``."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {number(len(items) - most)} more"


# Source, destination, address; control characters, which no cleaned text has.
HOLES = ("\x01", "\x02", "\x03")


def make_holes(text: str, result: Result) -> str:
    """Clean a text and put holes where the flow's ends are named; filling them gives it again."""
    text = clean(text)
    names = dict(zip((result.source, result.destination, result.address), HOLES, strict=True))
    for name in sorted(filter(None, map(clean, names)), key=len, reverse=True):
        if name in text:
            text = replace_name(text, name, names.get(name, name))
    return text


def replace_name(text: str, name: str, hole: str) -> str:
    """Replace a name where it is not a part of a longer one: node-1 is not in node-10."""
    parts = text.split(name)
    written = parts[0]
    for before, after in pairwise(parts):
        inside = before[-1:].isalnum() or after[:1].isalnum()
        written += f"{name if inside else hole}{after}"
    return written


def fill_holes(text: str, names: tuple[str, str, str]) -> str:
    """Put these names of source, destination and address into the holes."""
    for hole, name in zip(HOLES, names, strict=True):
        text = text.replace(hole, name)
    return text


def is_failure(finding: Finding) -> bool:
    """Tell a finding about flows that fail from one about flows that could not be judged."""
    return finding.verdict in ("blocked", "exposed")

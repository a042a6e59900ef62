"""The words that reports share: numbers, ports, places, verdicts and lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from netprobe.model.accepted import NEVER
from netprobe.model.reasons import find_reason
from netprobe.model.result import Finding, Place, Result

_PLACES: dict[Place, str] = {
    "source": "the source itself (its own firewall or routing table)",
    "path": "the path between the hosts",
    "destination": "the destination's own firewall",
    "return-path": "the way back to the source",
    "host": "the destination host (down)",
    "service": "the service at the destination",
}

# Why a failure does not decide the exit status; of several the first counts.
EXCUSES: Final = ("accepted", "waived", "optional", "known")


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
    texts = {"waived": f"waived: {result.waived}", "known": f"known: {result.known} has it too"}
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
    """Give the places that are still possible; one place alone is proven."""
    places = [_word_place(place, about) for place in about.where]
    if not places:
        return "not known"
    trail = _word_last_hop(about)
    if len(places) == 1:
        return f"{places[0]}{trail}"
    return f"not narrowed down between {', '.join(places[:-1])} and {places[-1]}{trail}"


def _word_last_hop(about: Finding | Result) -> str:
    """Word the last hop, unless the evidence sentence names it already."""
    if about.last_hop is None or about.last_hop in _first_result(about).because:
        return ""
    return f"; the last hop that answered is {about.last_hop}"


def _word_place(place: Place, about: Finding | Result) -> str:
    if place in ("path", "return-path") and about.rejected_by:
        part = find_reason(_first_result(about).reason).router_is
        return f"{_PLACES[place]}: {part.format(router=about.rejected_by)}"
    return _PLACES[place]


def _first_result(about: Finding | Result) -> Result:
    return about.members[0] if isinstance(about, Finding) else about


def listed(items: Sequence[str], most: int) -> str:
    """``a, b, c and 37 more``."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {number(len(items) - most)} more"

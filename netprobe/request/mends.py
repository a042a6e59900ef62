"""Which failures a firewall rule can mend, and who would have to apply it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from netprobe.model.firewall import RULE_PLACES, Enforcer
from netprobe.model.reasons import find_reason
from netprobe.model.result import FILTERED, Finding, Place, Result
from netprobe.model.story import Story

# What else may be at fault, by the place that is still possible.
_DOUBTS: Final[Mapping[Place, str]] = {
    "host": "or the destination is down",
    "service": "or the service keeps quiet",
    "return-path": "or the answers are lost on the way back, by a route or a firewall",
}
# Evidence sentences of one rule.
_MOST_EVIDENCE = 3


def speaker_of(finding: Finding) -> Result:
    """Give the member that shows the cause, with the places and the router of the whole finding."""
    return replace(finding.speaker, where=finding.where, rejected_by=finding.rejected_by)


def routers_of(members: Sequence[Result]) -> Iterator[str | None]:
    """Give for each member who refused it; None where nobody did, or it may be several.

    Routers refuse seldom (docs/network-facts.md, section 4): silence beside a refusal is from the
    one router that refuses the pair, or the source, or all members.
    """
    known: dict[tuple[str, ...], set[str]] = {}
    for one in members:
        if one.rejected_by is not None:
            for part in _ways_of(one):
                known.setdefault(part, set()).add(one.rejected_by)
    for one in members:
        routers = next((known[part] for part in _ways_of(one) if part in known), set())
        only = next(iter(routers)) if len(routers) == 1 else None
        yield one.rejected_by or only


def _ways_of(result: Result) -> tuple[tuple[str, ...], ...]:
    return ((result.source, result.destination), (result.source,), ())


def may_mend(result: Result) -> bool:
    """Tell whether a rule can let this flow through."""
    return result.state in FILTERED and find_reason(result.reason).rule_mends


def enforcers_of(result: Result) -> tuple[Enforcer, ...]:
    """Give who can stop this flow, the likeliest first; none where the answers alone are lost."""
    return tuple(
        Enforcer(place, result.rejected_by if place == "path" else None)
        for place in RULE_PLACES
        if place in result.where
    )


def is_of_answers(result: Result) -> bool:
    """Tell whether only the answers are stopped: the request got through."""
    came_back = result.where == ("source",) and result.reason == "no-response"
    got_there = result.where == ("destination",) and result.got_there
    return came_back or got_there or result.where == ("return-path",)


def word_doubts(results: Iterable[Result], enforcers: Iterable[Enforcer]) -> list[str]:
    """Say what may be at fault although a rule is asked for, and where packets were seen last.

    The last router helps those who look for a firewall on the way, and nobody else.
    """
    results = list(results)
    places = {place for one in results for place in one.where}
    hops = dict.fromkeys(one.last_hop for one in results if one.last_hop and not one.rejected_by)
    words = [words for place, words in _DOUBTS.items() if place in places]
    if any(_may_lose_answers(one) for one in results):
        words.append("or the destination's own firewall lets the request in, and no answer out")
    if hops and any(one.place == "path" for one in enforcers):
        words.append(f"last routers that answered: {', '.join(hop for hop in hops if hop)}")
    return words


def _may_lose_answers(result: Result) -> bool:
    """Tell whether an answer that never left is all that the recorders know."""
    story = result.story or Story()
    seen = (story.destination_in.seen, story.socket.seen, story.destination_out.seen)
    return seen == ("yes", "unknown", "no")


def word_evidence(results: Iterable[Result]) -> tuple[str, ...]:
    """Give what was seen of the first flow of each state and reason, and of how many alike."""
    kinds: dict[tuple[str, str], list[Result]] = {}
    for one in results:
        kinds.setdefault((one.state, one.reason), []).append(one)
    lines = [_evidence_line(alike) for alike in kinds.values()]
    rest = len(lines) - _MOST_EVIDENCE
    more = [f"and {rest} more kinds of evidence"] if rest > 0 else []
    return (*lines[:_MOST_EVIDENCE], *more)


def _evidence_line(alike: list[Result]) -> str:
    first = alike[0]
    flows = sum(one.port_count for one in alike)
    count = "" if flows == 1 else f": {flows:,} flows"
    kind = f"{first.state}, {first.reason}{count}"
    return f"{first.source} → {first.destination}: {first.because} ({kind})"

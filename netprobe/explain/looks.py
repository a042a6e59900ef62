"""Turns the results of probes, of looks beside the flow and of TTL walks into words and facts."""

from __future__ import annotations

from typing import Any

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import MAX_TTL
from netprobe.model.evidence import Outcome
from netprobe.model.notes import word_failure


def outcome_words(outcome: Outcome) -> str:
    """Describe the outcome of one look beside the flow."""
    ttl = f", TTL {outcome.ttl}" if outcome.ttl is not None else ""
    if outcome.answer is not None:
        return f"{'answered' if outcome.answer == 'echo' else 'accepted the connection'}{ttl}"
    # One datagram without a word back has no failure: nobody owes an answer.
    return word_failure(outcome.failure or "no-answer", outcome.icmp)


def walk_words(walk: Walked, what: str) -> str:
    """``tcp/7000: 1 10.0.0.1, 2 10.0.2.2 answers``."""
    if walk.failure is not None:
        return f"{what}: could not be sent ({walk.failure})"
    hops = heard(walk)
    if not hops:
        return f"{what}: no hop answers at all"
    text = ", ".join(f"{ttl} {address or 'no answer'}" for ttl, address in hops)
    if walk.reached:
        return f"{what}: {text} answers"
    return f"{what}: {text}{' (which refuses it)' if refused(walk) else ', then nobody answers'}"


def refused(walk: Walked) -> bool:
    """Tell whether the last hop that answered ended the walk: its word was no time-exceeded.

    A walk that nobody ends goes on into silence, or to the last TTL that it was to ask.
    """
    hops = walk.hops
    return not walk.reached and 0 < len(hops) < MAX_TTL and hops[-1].address is not None


def heard(walk: Walked) -> list[WalkHop]:
    """Give the hops up to the last that answered."""
    hops = list(walk.hops)
    while hops and hops[-1].address is None:
        hops.pop()
    return hops


def distance(walk: Walked | None) -> int | None:
    """Count the hops to the destination; None where it did not answer."""
    if walk is None or not walk.reached:
        return None
    return max(ttl for ttl, _ in heard(walk))


def walk_facts(walk: Walked | None) -> dict[str, Any] | None:
    """Give a walk for programs: every hop that was asked, null where nobody answered."""
    if walk is None:
        return None
    hops = [hop._asdict() for hop in walk.hops]
    ends = {"reached": walk.reached, "refused": refused(walk), "failure": walk.failure}
    return {"hops": hops, **ends}

"""What a reader should do, and what the steps show beside the verdict, which never rests on it."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.diagnose.explain_far import lives
from netprobe.diagnose.explain_steps import nearer_hop
from netprobe.diagnose.explain_view import View
from netprobe.diagnose.explain_words import heard
from netprobe.judge.findings import fold


def advice(view: View) -> str:
    """The finding's advice, as a run gives it; for doubt, what would remove it."""
    findings = fold([view.result])
    if findings:
        return findings[0].advice
    alone = not view.has_agent(view.destination)
    if view.result.verdict == "inconclusive" and alone and view.has_agent(view.source):
        return (
            f"Give {view.destination.name} a vantage in the inventory: an agent there sees whether "
            "the packets arrive."
        )
    return ""


def remarks(view: View) -> Iterator[str]:
    """Warnings, and what the looks beside the flow add to the places of the verdict."""
    yield from view.result.warnings
    yield from _nearer(view)
    yield from _lost_between(view)
    if "host" in view.result.where and lives(view):
        yield f"asked beside the flow, {view.address} does answer: the host itself is up"
    if view.mtu is not None and view.mtu[1].verdict == "blocked":
        yield f"large packets do not fit: {view.mtu[1].because}"


def _nearer(view: View) -> Iterator[str]:
    """A router answers for itself where the TTL ends, and for others what it forwards: with one
    hop more than it takes to reach it."""
    hop = nearer_hop(view)
    if hop is None:
        return
    before = _hop(view, hop - 1)
    place = f"at {before} or right behind it" if before else "at the first hop"
    yield f"the hops show that what answers in the name of {view.address} stands {place}"


def _hop(view: View, ttl: int) -> str | None:
    """Who answers at a hop, for the flow itself or else for echo requests."""
    for walk in (view.further.flow_walk, view.further.echo_walk):
        found = [address for number, address in heard(walk) if number == ttl] if walk else []
        if found and found[0]:
            return found[0]
    return None


def _lost_between(view: View) -> Iterator[str]:
    """The piece of the way on which a silent drop is, where it is known to be on the way."""
    flow = view.further.flow_walk
    if view.result.where != ("path",) or view.result.reason != "no-response" or flow is None:
        return
    hops = heard(flow)
    last, address = hops[-1] if hops else (0, view.source.name)
    following = _hop(view, last + 1)
    if following is not None and address is not None and not flow.get("reached"):
        yield (
            f"{view.wire} is lost between {address} (itself included) and {following}, the next "
            "hop that answers echo requests"
        )

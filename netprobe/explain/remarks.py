"""Tells the reader what to do, and what the steps show beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.agent.wire.answers import Walked
from netprobe.explain.far_steps import lives
from netprobe.explain.looks import heard
from netprobe.explain.near_steps import nearer_hop
from netprobe.explain.view import View
from netprobe.judge.findings import fold


def advice(view: View) -> str:
    """Give the finding's advice, as a run gives it; for doubt, what would remove it."""
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
    yield from _say_where_nearer(view)
    yield from _lost_between(view)
    if "host" in view.result.where and lives(view):
        yield f"asked beside the flow, {view.address} does answer: the host itself is up"
    measured, result = view.mtu or (None, view.result)
    # Where not even small packets were answered, nobody knows what fits.
    tried = measured is not None and measured.mtu is not None and measured.mtu.path is not None
    if tried and result.verdict == "blocked":
        yield f"large packets do not fit: {result.because}"


def _say_where_nearer(view: View) -> Iterator[str]:
    """A router answers for itself where the TTL ends, and for others what it forwards: with one
    hop more than it takes to reach it."""
    hop = nearer_hop(view)
    if hop is None:
        return
    place = f"at {_find_hop(view, hop - 1) or 'the hop before that'} or right behind it"
    if hop == 1:
        place = (
            f"at the first hop, {_find_hop_of(view.further.other_walk, 1) or 'which is not known'}"
        )
    yield f"the hops show that what answers in the name of {view.address} stands {place}"


def _find_hop(view: View, ttl: int) -> str | None:
    """Find the host that answers at a hop, by the flow's walk or else the other."""
    own = _find_hop_of(view.further.flow_walk, ttl)
    return own or _find_hop_of(view.further.other_walk, ttl)


def _find_hop_of(walk: Walked | None, ttl: int) -> str | None:
    found = [address for number, address in heard(walk) if number == ttl] if walk else []
    return found[0] if found else None


def _lost_between(view: View) -> Iterator[str]:
    """Give the piece of the way on which a silent drop is, where it is known to be on the way."""
    flow = view.further.flow_walk
    if view.result.where != ("path",) or view.result.reason != "no-response" or flow is None:
        return
    hops = heard(flow)
    last, address = hops[-1] if hops else (0, view.source.name)
    following = _find_hop(view, last + 1)
    if following is not None and address is not None and not flow.reached:
        yield (
            f"{view.wire} is lost between {address} (itself included) and {following}, the next "
            f"hop that {view.further.other} shows"
        )

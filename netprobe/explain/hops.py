"""The hops that the flow's packets reach, those that another protocol reaches, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.parts import WalkHop
from netprobe.explain.view import BY_VERDICT, View
from netprobe.model.story import Step


def hops_step(view: View) -> Step:
    """Show the hops that the flow's packets reach, and those that another protocol reaches."""
    flow, other = view.further.flow_walk, view.further.other_walk
    facts = {"flow": walk_facts(flow), view.further.other: walk_facts(other)}
    if flow is None and other is None:
        return Step("hops", "not-possible", (view.unasked(),), facts)
    walks = ((flow, view.wire), (other, view.further.other))
    words = [walk_words(walk, what) for walk, what in walks if walk is not None]
    hop = nearer_hop(view)
    if hop is not None:
        words.append(
            f"{view.wire} is answered at hop {hop} already, but {view.address} is "
            f"{distance(other)} hops away: something nearer answers in its name"
        )
        return Step("hops", "doubt", tuple(words), facts)
    status = BY_VERDICT[view.result.verdict] if distance(flow) is None else "ok"
    return Step("hops", status, (*words, *_compare_walks(view)), facts)


def nearer_hop(view: View) -> int | None:
    """Give the hop at which something answers in the destination's name, nearer than that is."""
    flow, other = distance(view.further.flow_walk), distance(view.further.other_walk)
    return flow if flow is not None and other is not None and flow < other else None


def _compare_walks(view: View) -> Iterator[str]:
    flow, hop = view.further.flow_walk, distance(view.further.other_walk)
    silent = flow is not None and distance(flow) is None
    if silent and hop is not None and view.result.verdict != "pass":
        yield (
            f"{view.further.other} reaches {view.address} at hop {hop}: what stops {view.wire} "
            "does not stop it"
        )


def say_where_nearer(view: View) -> Iterator[str]:
    """A router answers for itself where the TTL ends, and for others what it forwards: with one
    hop more than it takes to reach it."""
    hop = nearer_hop(view)
    if hop is None:
        return
    flow, other = view.further.flow_walk, view.further.other_walk
    place = f"at {_find_hop(hop - 1, flow, other) or 'the hop before that'} or right behind it"
    if hop == 1:
        place = f"at the first hop, {_find_hop(1, other) or 'which is not known'}"
    yield f"the hops show that what answers in the name of {view.address} stands {place}"


def say_where_lost(view: View) -> Iterator[str]:
    """Give the piece of the way on which a silent drop is, where it is known to be on the way."""
    flow, other = view.further.flow_walk, view.further.other_walk
    if view.result.where != ("path",) or view.result.reason != "no-response" or flow is None:
        return
    hops = heard(flow)
    last, address = hops[-1] if hops else (0, view.source.name)
    following = _find_hop(last + 1, flow, other)
    if following is not None and address is not None and not flow.reached:
        yield (
            f"{view.wire} is lost between {address} (itself included) and {following}, the next "
            f"hop that {view.further.other} shows"
        )


def _find_hop(ttl: int, *walks: Walked | None) -> str | None:
    """Find the host that answers at a hop, by the first walk that shows one."""
    hops = (hop for walk in walks if walk is not None for hop in walk.hops)
    return next((hop.address for hop in hops if hop.ttl == ttl and hop.address), None)


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
    """Tell whether the last hop that answered ended the walk: its word was no time-exceeded."""
    return walk.refusal is not None


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

"""What is known of genuine answers of an address: the TTL that they arrive with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Icmp, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Scene
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import ROUND_TRIPS

# What stacks start their TTL with; a TTL on arrival tells how many hops it has lost.
INITIAL_TTLS = (64, 128, 255)
# Ports that stand for all whose answers arrive with one TTL.
SAMPLE = 3
# Where no recorder tells a TTL, so many of a range stand for it.
RANGE_SAMPLE = 8
# A dead neighbour shows after 3.06 s.
DEAD_HOST_MS = 3500
# How long a look waits for a reset at least.
FLOOR_MS = 300


def choose_sample(ports: Ports, size: int = SAMPLE) -> Ports:
    """Choose a few ports evenly, ends included."""
    last = port_sets.count(ports) - 1
    places = {round(last * number / (size - 1)) for number in range(size)}
    chosen = [port for place, port in enumerate(port_sets.each(ports)) if place in places]
    return port_sets.normalise((port, port) for port in chosen)


async def find_by_sample(
    ports: Ports, asked_for: Ports, ask: Callable[[Ports], Awaitable[Ports]]
) -> Ports:
    """Find which of these ports ``ask`` gives back, from a few of each range that was asked for.

    Ports that stand alone are all asked. A range whose few differ is halved until they do not.
    """
    pieces = [port_sets.intersect(ports, (one,)) for one in asked_for]
    pieces = [piece for piece in pieces if piece]
    found: list[Ports] = []
    while pieces:
        samples = [choose_sample(piece, RANGE_SAMPLE) for piece in pieces]
        said = await ask(port_sets.union(samples))
        halves: list[Ports] = []
        for piece, sample in zip(pieces, samples, strict=True):
            here = port_sets.intersect(sample, said)
            if here == sample:
                found.append(piece)
            elif port_sets.count(piece) <= RANGE_SAMPLE:
                found.append(here)
            elif here:
                halves += _halve_ports(piece)
        pieces = halves
    return port_sets.union(found)


def _halve_ports(ports: Ports) -> list[Ports]:
    each = list(port_sets.each(ports))
    middle = len(each) // 2
    return [
        port_sets.normalise((port, port) for port in half)
        for half in (each[:middle], each[middle:])
    ]


def count_lost_hops(ttl: int) -> int:
    """Tell how many routers have lowered a TTL on its way; stacks start with one of a few."""
    return min(start for start in INITIAL_TTLS if start >= ttl) - ttl


def arrival_ttl(seen: Observation) -> int | None:
    """Give the TTL that the answers arrived with, where the source's recorder saw them."""
    return seen.story.source_in.ttl if seen.story is not None else None


async def find_refused(
    task: Task, ports: Ports, min_ttl: int, scene: Scene, looks: int | None = None
) -> Ports:
    """Find the ports whose resets arrive with at least this TTL.

    The kernel ignores the others, and they look silent. Silence is asked for ``looks`` times; None:
    so often that loss does not explain it.
    """
    slowest_ms = scene.prober.slowest_ms(task)
    known_ms = None if slowest_ms is None else max(FLOOR_MS, round(ROUND_TRIPS * slowest_ms))
    refused: Ports = ()
    for _ in range(looks or scene.prober.chance.count_looks()):
        left = port_sets.subtract(ports, refused)
        if not left:
            break
        found = await scene.prober.ask(
            task, "tcp", left, look_ms=known_ms or CHECK_MS, min_ttl=min_ttl
        )
        told = [some for some, one in found if one.failure == "refused" and not one.icmp]
        refused = port_sets.union((refused, *told))
    return refused


class Genuine(NamedTuple):
    """The TTL of genuine answers; where there were none, a router's refusal in their place."""

    ttl: int | None = None
    refusal: Icmp | None = None


async def find_genuine(task: Task, group: Iterable[Observation], scene: Scene) -> Genuine:
    """Find the TTL of genuine answers: from what was heard already, else asked for.

    It asks for an echo reply, then for the answer of a closed UDP port. A router needs three
    seconds to find that nobody is there. What refuses a flow's own port counts last: that port may
    be translated. Where it arrived with another TTL than the echo reply, which a host may send with
    one of its own, the closed UDP port decides.
    """
    heard = [seen.heard for seen in group if seen.heard is not None]
    known = [one for one in heard if one.icmp is None and genuine_ttl(one) is not None]
    refused = {genuine_ttl(one) for one in heard if one.icmp is not None} - {None}
    control = ((CONTROL_PORTS[0],) * 2,)
    try:
        for protocol, ports, look_ms in (("icmp", (), DEAD_HOST_MS), ("udp", control, CHECK_MS)):
            if not known:
                outcomes = await scene.prober.ask(task, protocol, ports, look_ms=look_ms)
                heard += [one for _, one in outcomes]
                known = [one for _, one in outcomes if genuine_ttl(one) is not None]
        if refused and known[:1] and known[0].answer == "echo" and known[0].ttl not in refused:
            outcomes = await scene.prober.ask(task, "udp", control, look_ms=CHECK_MS)
            known = [one for _, one in outcomes if genuine_ttl(one) in refused] + known
    except AgentError:
        if all(genuine_ttl(one) is None for one in heard):
            raise
    ttls = [ttl for one in (*known, *heard) if (ttl := genuine_ttl(one)) is not None]
    if ttls:
        return Genuine(ttls[0])
    refusals = [one.icmp for one in heard if one.icmp is not None and one.icmp.origin == "router"]
    return Genuine(refusal=refusals[0] if refusals else None)


def genuine_ttl(outcome: Outcome | None) -> int | None:
    """Give the TTL of an answer that only the address itself gives, where the kernel said it."""
    if outcome is None:
        return None
    if outcome.icmp is not None:
        return outcome.icmp.ttl if outcome.icmp.origin == "destination" else None
    return outcome.ttl if outcome.answer in ("echo", "nonce", "service") else None

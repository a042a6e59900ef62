"""Asks the destination's kernel whether it can send answers to a source that got none.

A listener's own datagram tells by its errno; an answer that the kernel gives (SYN-ACK, echo reply)
disappears without a word, so the routing table, the neighbour entry of the next hop and the
reverse-path filter are asked. Where packets of another source come translated, nobody knows from
which address those of this one would come, and nothing is asked.

Packets that never left: the source's own firewall, or no room in its kernel for them.

A neighbour table that is full (net.ipv4.neigh.default.gc_thresh3) and a queue that drops look like
an OUTPUT firewall to TCP; a datagram's errno tells them apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterable

from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    Egress,
    ReturnPath,
)
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.errors import AgentError
from netprobe.model.evidence import NO_BUFFERS, NO_NEIGHBOUR, OWN_ADDRESS, CheckConclusion, Witness
from netprobe.model.story import Story
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address

# What a kernel says of a blackhole, and of an answering address that it does not have.
AMBIGUOUS = "invalid-route"
LOOPBACK = "lo"
UNANSWERED = ("failed", "incomplete")
# A neighbour is asked three times, a second apart; until then its entry is incomplete.
RESOLVING_S = 1.1
RESOLVING_LOOKS = 4


class ReturnPathLook(Check):
    """Asks the destination's kernel whether it can answer the silent flows."""

    name = "return-path"
    needs = "agent"

    def concerns(self, seen: Observation) -> bool:
        """All flows: those that were answered tell which addresses the host has."""
        return True

    def group(self, seen: Observation) -> Hashable:
        """All at once."""
        return None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give silent flows what keeps the destination from answering them."""
        silent = [seen for seen in group if seen.lost]
        found = await with_ways_back(silent, group, scene.agent, scene.fleet)
        return [seen for seen in group if not seen.lost] + found


async def with_ways_back(
    silent: list[Observation], round_: Iterable[Observation], agent: AgentMethods, fleet: Fleet
) -> list[Observation]:
    """Give the silent observations, with what keeps the destination from answering them.

    ``round_`` are all observations of the round: a host has an address if one of our listeners is
    bound to it.
    """
    own = {
        seen.task.address
        for seen in round_
        if seen.listener.state == "ours" and not seen.listener.nat
    }
    translated = {
        (one.task.source.name, one.task.address): one.witness.seen_from
        for one in round_
        if one.witness is not None and one.witness.seen_from is not None
    }
    pairs = {
        _pair_with_sender(one): one
        for one in silent
        if _wants_look(one) and _is_sender_known(one, translated)
    }
    ways = await asyncio.gather(
        *(
            _ask_way_back(one, translated.get(_pair_with_sender(one)[:2]), own, agent, fleet)
            for one in pairs.values()
        )
    )
    by_pair = dict(zip(pairs, ways, strict=True))
    return [
        _join_way(one, by_pair.get(_pair_with_sender(one))) if _wants_look(one) else one
        for one in silent
    ]


def _wants_look(seen: Observation) -> bool:
    """Where a recorder shows that nothing came or that the answer left, there is nothing to ask."""
    story, witness = seen.story or Story(), seen.witness or Witness()
    return (
        story.destination_in.seen != "no"
        and story.destination_out.seen != "yes"
        and witness.reply_failure is None
    )


def _is_sender_known(seen: Observation, translated: Collection[tuple[str, str]]) -> bool:
    """Tell whether it is known from which address the packets come, or would come.

    Where those of another source are translated, those of this one may be, too.
    """
    came = seen.arrived or seen.task.pair in translated
    return came or all(address != seen.task.address for _, address in translated)


def _pair_with_sender(seen: Observation) -> tuple[str, str, str | None]:
    witness = seen.witness or Witness()
    return (seen.task.source.name, seen.task.address, witness.seen_from)


async def _ask_way_back(
    seen: Observation, translated: str | None, own: set[str], agent: AgentMethods, fleet: Fleet
) -> ReturnPath | None:
    """Give the destination's way to the address that the packets come from; None: nobody could say.

    ``translated``: an address that other packets of the source came from.
    """
    task = seen.task
    try:
        asker = (seen.witness or Witness()).seen_from or translated or source_address(task)
        if asker is None:
            asker = (await fleet.agent(task.source).route(task.address, None)).source
        if asker is None:
            return None
        # Routes may depend on the address that answers.
        way = await agent.return_path(asker, task.address)
        for _ in range(RESOLVING_LOOKS):
            if way.neighbour != "incomplete":
                break
            await asyncio.sleep(RESOLVING_S)
            way = await agent.return_path(asker, task.address)
    except AgentError:
        return None  # either end is gone; what was seen before stands
    if way.dev == LOOPBACK and not _are_one(agent, fleet.agent(task.source)):
        return way._replace(failure=OWN_ADDRESS)
    # A kernel finds no way from an address that it does not have (a translated one).
    foreign = way.failure is not None and seen.listener.nat
    known = way.failure != AMBIGUOUS or task.address in own
    return way if known and not foreign else None


def _are_one(one: AgentMethods, other: AgentMethods) -> bool:
    """Tell whether two agents run on one machine, as far as they said."""
    return one.hello is None or other.hello is None or one.hello.machine == other.hello.machine


def _join_way(seen: Observation, way: ReturnPath | None) -> Observation:
    if way is None:
        return seen
    witness = seen.witness or Witness()
    if not seen.part.one_way:
        failure = way.failure or (NO_NEIGHBOUR if way.neighbour in UNANSWERED else None)
        hop = way.next_hop if failure == NO_NEIGHBOUR else None
        witness = replace(witness, reply_failure=failure, next_hop=hop)
    if witness.reply_failure is None and not witness.socket:
        witness = _with_reverse_path(seen.story or Story(), witness, way)
    return replace(seen, witness=witness)


def _with_reverse_path(story: Story, witness: Witness, way: ReturnPath) -> Witness:
    """Give the witness with the device by which the request was, or may have been, filtered.

    Where no recorder saw it come, the device that has the probed address is the likeliest.
    """
    device = story.destination_in.interface or way.holder
    if device not in way.strict or way.dev in (None, device):
        return witness
    return replace(witness, filtered_at=device, way_out=way.dev)


class EgressLook(Check):
    """Asks the source's kernel why packets never left."""

    name = "egress"

    def concerns(self, seen: Observation) -> bool:
        """Flows whose packets are known not to have left, and no errno said why."""
        return _has_stayed_home(seen)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Ask once for the pair; what had no room says so, and why."""
        task = group[0].task
        agent = scene.fleet.agent(task.source)
        egress = await agent.egress(task.address, source_address(task), CONTROL_PORTS[0])
        return [_conclude_room(seen, egress) for seen in group]


def _has_stayed_home(seen: Observation) -> bool:
    """Tell whether the packets are known not to have left, and no errno said why."""
    outcome = seen.outcome
    if outcome is None or outcome.operation == "bind":
        return False
    return outcome.failure == NO_BUFFERS or (seen.silent and seen.has_left is False)


def _conclude_room(seen: Observation, egress: Egress) -> Observation:
    assert seen.outcome is not None
    if NO_BUFFERS not in (seen.outcome.failure, egress.failure):
        return seen.noting(EgressLook.name)
    conclusion = CheckConclusion("no-room", _describe_egress(egress))
    return replace(seen, conclusion=conclusion).noting(EgressLook.name, status="bad")


def _describe_egress(egress: Egress) -> str:
    if egress.next_hop is None:
        return "its neighbour table is full, or a queue of its interface drops what it sends"
    if egress.neighbour is None:
        return (
            f"its neighbour table is full (gc_thresh3): there is no entry for {egress.next_hop} "
            "and none can be made"
        )
    return f"the queue of its interface {egress.dev} (tc) drops what it sends"

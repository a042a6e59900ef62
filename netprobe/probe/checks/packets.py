"""Fetches the packets that both recorders kept of flows that did not get through."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from netprobe.agent.wire.answers import PacketsKept
from netprobe.agent.wire.orders import KeptOrder
from netprobe.errors import AgentError
from netprobe.model.story import EndPackets, FlowPacket, FlowPackets, Keep
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.genuine import choose_sample
from netprobe.probe.flows.prober import Observation, source_address

NOTHING = PacketsKept(0, [], [], 0, [], sure=False)
# Of flows that went alike, evenly chosen.
MOST_PORTS = 16
# Answers that no finding is made of, unless a check concluded something else.
GOOD = ("nonce", "echo", "service")


async def fetch_packets(seen: Iterable[Observation], scene: Scene, keep: Keep) -> None:
    """Hand the packets of every flow that may be part of a finding to ``keep``."""
    doubtful = [one for one in seen if _may_fail(one)]
    for found in await asyncio.gather(*(_fetch_one(one, scene) for one in doubtful)):
        if found.source.packets or found.destination.packets:
            keep(found)


def _may_fail(seen: Observation) -> bool:
    if seen.outcome is None or seen.task.via is not None:
        return False
    return seen.conclusion is not None or seen.outcome.answer not in GOOD


async def _fetch_one(seen: Observation, scene: Scene) -> FlowPackets:
    """Ask the source first: its numbers name the packets at the other end, whatever NAT did."""
    task, source = seen.task, scene.fleet.agent(seen.task.source)
    asker = source_address(task) or await _find_source(source, task.address)
    ports = list(choose_sample(seen.ports, MOST_PORTS)) if seen.ports else []
    name = task.protocol.partition("/")[0]
    order = KeptOrder(0, name, asker or task.address, task.address, ports, True, [seen.order], [])
    at_source = await _ask_kept(source, order) if asker else NOTHING
    numbers = sorted({seen.order, *at_source.numbers})
    named = order._replace(sent=False, numbers=numbers, own_ports=at_source.own_ports)
    at_destination = await _ask_kept(scene.agent, named)
    # Of what was sent before its recorder ran nothing is sure there.
    at_destination = at_destination._replace(sure=at_destination.sure and scene.is_recorded)
    return FlowPackets(
        task.address, task.protocol, seen.ports, tuple(ports),
        _read_end(task.source.name, at_source),
        _read_end(task.wants[0].flow.destination.name, at_destination),
    )  # fmt: skip


async def _find_source(source: AgentMethods, address: str) -> str | None:
    try:
        return (await source.route(address, None)).source
    except AgentError:
        return None


async def _ask_kept(agent: AgentMethods, order: KeptOrder) -> PacketsKept:
    if not agent.recorder:
        return NOTHING
    try:
        return await agent.request(order, PacketsKept)
    except AgentError:
        return NOTHING


def _read_end(host: str, kept: PacketsKept) -> EndPackets:
    packets = (
        FlowPacket(one.port, one.time_ns, one.device, one.outgoing, one.length, one.data)
        for one in kept.packets
    )
    return EndPackets(host, kept.sure, tuple(packets), kept.left_out)

"""The tunnel of an overlay: a VXLAN device of the kernel at both ends, and TCP through it.

A network card may spoil the checksums or the segments of packets inside of a tunnel; no packet that
a program builds shows that (docs/rehearsal.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from netprobe.agent.wire.tunnel_messages import (
    TunnelChecksums,
    TunnelChecksumsOrder,
    TunnelClosed,
    TunnelCloseOrder,
    TunnelOpened,
    TunnelOpenOrder,
    TunnelTried,
    TunnelTryOrder,
)
from netprobe.errors import AgentError
from netprobe.model.plan import Block, find_row
from netprobe.model.rehearsed import Card, CpuEnd, OverlayFacts, TunnelTrial
from netprobe.model.shapes import NAME
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import family_of
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, PairRehearsal, Stage

TRANSFER_BYTES = 200_000
# What a tunnel's headers take of a packet, by the family outside.
HEADERS = {4: 50, 6: 70}
LEAST_MTU, USUAL_MTU, LARGEST_MTU = 1280, 1500, 65_000
# The agents' words for what no installation could change now: on purpose no result.
SKIPPED: Final = frozenset(("tunnel-there", "no-vxlan"))
NO_RIGHT = "no-right"


class OverlayRehearsal(PairRehearsal):
    """Plays the tunnel of a row with ``probe: vxlan``."""

    async def play(self, stage: Stage) -> OverlayFacts:
        """Make the tunnel, try it, and where TCP fails alone try it with checksums by the CPU."""
        near, far = (
            stage.fleet.agent(host) for host in (stage.flow.source, stage.flow.destination)
        )
        _refuse_hopeless(stage, near, far)
        async with open_tunnel(stage, near, far) as tunnel:
            trial = await tunnel.try_out(tcp_only=False)
            mended_at, last = None, trial
            if not trial.carries_tcp:
                mended_at, last = await tunnel.find_mend(trial)
        facts = OverlayFacts(
            tunnel.network, tunnel.mtu, trial, tunnel.near_card, tunnel.far_card,
            row_arrived=stage.arrivals.of_row(stage.flow, stage.address, stage.port),
            back_arrived=stage.arrivals.of_way_back(stage.flow, stage.address, stage.port),
        )  # fmt: skip
        if mended_at is None:
            return facts._replace(trial=last)
        return facts._replace(mended_at=mended_at, mended=last)

    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """Open one end of a tunnel to the host itself, through which nothing is sent."""
        number = next(fleet.order_ids)
        own = "127.0.0.1" if block.family == 4 else "::1"
        order = TunnelOpenOrder(0, number, None, own, block.ports[0][0], 1, USUAL_MTU, first=True)
        try:
            told = await agent.request(order, TunnelOpened)
        finally:
            await _close_end(agent, number)
        return told.words if told.failure is not None else None


def _refuse_hopeless(stage: Stage, near: AgentMethods, far: AgentMethods) -> None:
    """Raise NotPlayedError where the run knows already that no tunnel can be, AgentError without
    an agent."""
    machines = [one.hello.machine for one in (near, far) if one.hello is not None]
    if len(machines) == 2 and machines[0] and machines[0] == machines[1]:
        raise NotPlayedError(None, "both ends are one machine")
    name = stage.flow.destination.name
    ways = (
        (stage.arrivals.of_row(stage.flow, stage.address, stage.port), f"to {name}"),
        (stage.arrivals.of_way_back(stage.flow, stage.address, stage.port), f"from {name}"),
    )
    for arrived, way in ways:
        if arrived is False:
            block = stage.flow.block
            row = f"{find_row(block.requirement.id)} of {block.matrix}"
            words = f"UDP port {stage.port} itself (row {row}) is stopped on the way {way}"
            raise NotPlayedError("row-stopped", f"{words}: first that, and then the tunnel")


class PlayedTunnel(Struct, frozen=True):
    """A tunnel that is open at both ends."""

    number: int
    network: int
    mtu: int
    near: AgentMethods
    far: AgentMethods
    near_card: Card
    far_card: Card

    async def try_out(self, *, tcp_only: bool) -> TunnelTrial:
        """Send through it what is to pass. Raises AgentError and NotPlayedError."""
        order = TunnelTryOrder(0, self.number, TRANSFER_BYTES, tcp_only)
        told = await self.near.request(order, TunnelTried)
        if told.failure is not None:
            raise NotPlayedError("no-tunnel", f"{self.near.host.name}: {told.failure}")
        return TunnelTrial(told.echo, told.opened, told.full, told.bytes, told.took_us)

    async def find_mend(self, bare: TunnelTrial) -> tuple[CpuEnd | None, TunnelTrial]:
        """Find at which ends checksums made by the CPU let TCP get further than it got without
        them, and how far; None: nowhere, with the last trial without them. Raises AgentError.

        It must get less far without them at one end at least: else chance would look like a cure.
        """
        mended = await self._try_with(near=True, far=True)
        if mended.reach <= bare.reach:
            return None, bare
        at_source = (await self._try_with(near=True, far=False)).reach > bare.reach
        at_destination = (await self._try_with(near=False, far=True)).reach > bare.reach
        if at_source and at_destination:
            again = await self._try_with(near=False, far=False)
            return None, again._replace(echo=bare.echo)
        if at_source or at_destination:
            return "source" if at_source else "destination", mended
        return "both", mended

    async def _try_with(self, *, near: bool, far: bool) -> TunnelTrial:
        await self._set_checksums(self.near, by_cpu=near)
        await self._set_checksums(self.far, by_cpu=far)
        return await self.try_out(tcp_only=True)

    async def _set_checksums(self, agent: AgentMethods, *, by_cpu: bool) -> None:
        told = await agent.request(TunnelChecksumsOrder(0, self.number, by_cpu), TunnelChecksums)
        if told.failure is not None:
            words = f"the tunnel's device on {agent.host.name} keeps its checksums: {told.failure}"
            raise NotPlayedError("no-tunnel", words)


@contextlib.asynccontextmanager
async def open_tunnel(
    stage: Stage, near: AgentMethods, far: AgentMethods
) -> AsyncIterator[PlayedTunnel]:
    """Open a tunnel, and close it whatever comes. Raises NotPlayedError and AgentError."""
    await asyncio.gather(near.wait_ready(), far.wait_ready())
    number, network = next(stage.fleet.order_ids), secrets.randbelow((1 << 24) - 1) + 1
    way = await near.route(stage.address, stage.source_address)
    own = stage.source_address or way.source
    if own is None:
        raise NotPlayedError("no-route", f"{near.host.name} has no route to {stage.address}")
    mtu = stage.flow.block.overlay_mtu or choose_mtu(way.dev_mtu, stage.address)
    first = TunnelOpenOrder(0, number, own, stage.address, stage.port, network, mtu, first=True)
    second = first._replace(local=stage.address, remote=own, first=False)
    try:
        # Both are waited for: what has been opened is closed again.
        opened = await asyncio.gather(
            near.request(first, TunnelOpened), far.request(second, TunnelOpened),
            return_exceptions=True,
        )  # fmt: skip
        cards = [_read_card(agent, one) for agent, one in zip((near, far), opened, strict=True)]
        yield PlayedTunnel(number, network, mtu, near, far, *cards)
    finally:
        await asyncio.gather(_close_end(near, number), _close_end(far, number))


def choose_mtu(device: int | None, address: str) -> int:
    """Choose the MTU that a CNI gives the pods: what the interface sends less the headers."""
    size = (device or USUAL_MTU) - HEADERS[family_of(address)]
    return min(LARGEST_MTU, max(LEAST_MTU, size))


def _read_card(agent: AgentMethods, opened: TunnelOpened | BaseException) -> Card:
    """Give the card of an open end. Raises NotPlayedError where it is not open, and AgentError."""
    if isinstance(opened, BaseException):
        raise opened
    if opened.failure is not None:
        words = f"{agent.host.name}: {opened.words}"
        if opened.failure in SKIPPED:
            raise NotPlayedError(None, words)
        reason = "no-permission" if opened.failure == NO_RIGHT else opened.failure
        raise NotPlayedError(reason, words)
    return Card(agent.host.name, _keep_name(opened.dev), _keep_name(opened.driver))


def _keep_name(text: str | None) -> str | None:
    """Keep what can stand in a command."""
    return text if text is not None and NAME.fits(text) else None


async def _close_end(agent: AgentMethods, number: int) -> None:
    with contextlib.suppress(AgentError):
        await agent.request(TunnelCloseOrder(0, number), TunnelClosed)

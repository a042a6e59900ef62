"""Looks that a destination's listeners should answer: they end with its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.flows.batches import Part

T = TypeVar("T")


async def look_until_lost(look: Awaitable[T], parts: Sequence[Part], agent: AgentMethods) -> T:
    """Give what a look at these parts finds. Raises AgentError where the agent is lost meanwhile,
    and listeners of ours with it: without its word the look tells nothing.

    The orders that are out go on at the sources. One of UDP is waited for: beside another one each
    would get half of the host's ICMP errors.
    """
    lost = agent.lost_link
    is_rationed = any(one.paced or one.task.protocol == "udp" for one in parts)
    if lost is None or is_rationed or not any(one.ours for one in parts):
        return await look
    looking = asyncio.ensure_future(look)
    try:
        await asyncio.wait((looking, lost), return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():
            lost.result()
        return looking.result()
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

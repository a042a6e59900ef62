"""Asks segments who has addresses: one frame each, and so many a second in the whole run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from netprobe.agent.wire.failures import NOT_SUPPORTED
from netprobe.agent.wire.numbers import MOST
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.rehearsals.rehearsal import NotPlayedError

# The most questions a second of all agents together, and in one order.
MOST_A_SECOND = 20
MOST_ASKED = 100
# The longest pause between two questions of one order.
LONGEST_GAP_MS = MOST["gap_ms"]

# Why nobody could ask.
Unasked = AgentError | NotPlayedError
# By address: the link-layer addresses of all who answer for it.
LinksByAddress = Mapping[str, Sequence[str] | Unasked]


async def ask_segments(
    questions: Iterable[tuple[str, AgentMethods, str]], fleet: Fleet
) -> dict[str, list[str] | Unasked]:
    """Ask each address, by its agent and device, once: all of them take turns, a frame a turn."""
    asked: dict[tuple[AgentMethods, str], dict[str, None]] = {}
    for address, agent, device in questions:
        asked.setdefault((agent, device), {})[address] = None
    gap_ms = 1000 * len(asked) // MOST_A_SECOND
    most = MOST_ASKED if gap_ms <= LONGEST_GAP_MS else 1
    found: dict[str, list[str] | Unasked] = {}
    read_clock = asyncio.get_running_loop().time
    started = read_clock()

    async def ask(turn: int, agent: AgentMethods, device: str, addresses: list[str]) -> None:
        for begin in range(0, len(addresses), most):
            due = started + (turn + begin * len(asked)) / MOST_A_SECOND
            await asyncio.sleep(max(0, due - read_clock()))
            some = addresses[begin : begin + most]
            gap = min(gap_ms, LONGEST_GAP_MS)
            order = SegmentAskOrder(next(fleet.order_ids), device, some, gap, None)
            found.update(await _ask_some(agent, order))

    turns = enumerate(asked.items())
    await asyncio.gather(*(ask(turn, *place, [*some]) for turn, (place, some) in turns))
    return found


async def _ask_some(agent: AgentMethods, order: SegmentAskOrder) -> dict[str, list[str] | Unasked]:
    try:
        told = await agent.request(order, SegmentAnswers)
    except AgentError as error:
        return dict.fromkeys(order.dsts, error)
    if told.failure == NOT_SUPPORTED:
        words = f"{order.dev} of {agent.host.name} is no Ethernet: nobody asks there for addresses"
        return dict.fromkeys(order.dsts, NotPlayedError(None, words))
    if told.failure is not None:
        words = f"{agent.host.name} could not ask on {order.dev} ({told.failure})"
        return dict.fromkeys(order.dsts, AgentError("not-tested", words))
    answered: dict[str, list[str] | Unasked] = {}
    for address in order.dsts:
        answered[address] = [one.link for one in told.answers if one.dst == address]
    return answered

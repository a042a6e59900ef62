"""Asks segments who has addresses: a frame a turn, and so many turns a second in the whole run.

An IPv4 address is asked for by an ARP probe and by a request from the asker's own address: what
answers for others (``ip neigh add proxy``) answers no probe of Linux, and who has no way back to
the asker answers nothing else (measured: tests/lab/test_segment_proxies.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

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
# A frame may get lost: so often RFC 5227 asks before an address counts as free.
TIMES = 3

# Why nobody could ask.
Unasked = AgentError | NotPlayedError
# By address: the link-layer addresses of all who answer for it.
LinksByAddress = Mapping[str, Sequence[str] | Unasked]


class SegmentQuestion(NamedTuple):
    """Who has an address? ``source``: the asker's own one there. ``times``: as long as nobody
    answers."""

    address: str
    asker: AgentMethods
    device: str
    source: str | None = None
    times: int = TIMES


class _Turns(NamedTuple):
    """Questions of one order: the turn of the first one, and how many turns each takes."""

    first: int
    each: int
    questions: list[SegmentQuestion]


async def ask_segments(
    questions: Iterable[SegmentQuestion], fleet: Fleet
) -> dict[str, list[str] | Unasked]:
    """Ask for each address, and again where nobody answers; all agents take turns."""
    left, found = list(questions), dict[str, list[str] | Unasked]()
    read_clock = asyncio.get_running_loop().time
    started = read_clock()

    async def ask(turns: _Turns) -> None:
        await asyncio.sleep(max(0, started + turns.first / MOST_A_SECOND - read_clock()))
        _add_answers(found, await _ask_some(turns, fleet))

    asked = 0
    while left:
        frames = [one for question in left for one in _list_frames(question)]
        started = max(read_clock(), started + asked / MOST_A_SECOND)
        await asyncio.gather(*(ask(turns) for turns in _plan_turns(frames)))
        asked = len(frames)
        left = [one._replace(times=one.times - 1) for one in left
                if one.times > 1 and not isinstance(found[one.address], Exception)
                and not found[one.address]]  # fmt: skip
    return found


def _list_frames(question: SegmentQuestion) -> Iterator[SegmentQuestion]:
    """List the frames of a question; neighbour solicitations come from nobody alone."""
    yield question._replace(source=None)
    if question.source is not None and ":" not in question.address:
        yield question


def _plan_turns(frames: Iterable[SegmentQuestion]) -> Iterator[_Turns]:
    """Plan who asks when: all places take turns, as long as they have questions."""
    lanes: dict[tuple[AgentMethods, str], dict[SegmentQuestion, None]] = {}
    for one in sorted(frames, key=lambda one: one.source is not None):
        lanes.setdefault((one.asker, one.device), {})[one] = None
    left = [[*some] for some in lanes.values()]
    first = done = 0
    while left:
        each, until = len(left), min(len(some) for some in left)
        most = MOST_ASKED if 1000 * each // MOST_A_SECOND <= LONGEST_GAP_MS else 1
        for turn, some in enumerate(left):
            at = done
            for _, alike in groupby(some[done:until], key=lambda one: one.source):
                while part := [*islice(alike, most)]:
                    yield _Turns(first + turn + (at - done) * each, each, part)
                    at += len(part)
        first += (until - done) * each
        done = until
        left = [some for some in left if len(some) > done]


async def _ask_some(turns: _Turns, fleet: Fleet) -> dict[str, list[str] | Unasked]:
    one, addresses = turns.questions[0], [question.address for question in turns.questions]
    agent, gap_ms = one.asker, min(1000 * turns.each // MOST_A_SECOND, LONGEST_GAP_MS)
    order = SegmentAskOrder(next(fleet.order_ids), one.device, addresses, gap_ms, one.source)
    try:
        told = await agent.request(order, SegmentAnswers)
    except AgentError as error:
        return dict.fromkeys(addresses, error)
    if told.failure == NOT_SUPPORTED:
        words = f"{order.dev} of {agent.host.name} is no Ethernet: nobody asks there for addresses"
        return dict.fromkeys(addresses, NotPlayedError(None, words))
    if told.failure is not None:
        words = f"{agent.host.name} could not ask on {order.dev} ({told.failure})"
        return dict.fromkeys(addresses, AgentError("not-tested", words))
    return {
        address: [one.link for one in told.answers if one.dst == address] for address in addresses
    }


def _add_answers(
    found: dict[str, list[str] | Unasked], some: Mapping[str, list[str] | Unasked]
) -> None:
    """Add who answered; where one question could not be asked, nothing is known."""
    for address, links in some.items():
        known = found.setdefault(address, links)
        if isinstance(known, Exception) or known is links:
            continue
        if isinstance(links, Exception):
            found[address] = links
        else:
            known += [link for link in links if link not in known]

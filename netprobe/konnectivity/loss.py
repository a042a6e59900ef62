"""Counts lost packets on a worker's way where one of its connections showed a sign of loss.

Loss looks like everything else, and differently each time: like a dead back end, a dropped
ClientHello, a silent server. So no such verdict is given before loss is counted. What was sent
again and then answered was lost, by chance or by a limit; what falls into a hole is never answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from netprobe.konnectivity.findings import Conclusion, Log, found
from netprobe.konnectivity.reach import Reach, open_tunnel
from netprobe.konnectivity.tables import fill
from netprobe.model.konnectivity import Opened, OpenedPipe
from netprobe.protocols.services.tls import TlsClient

CONNECTS = 40
# A firewall may limit new connections a second.
SPACING_S = 0.025
# SYNs are sent at 0 s, 1 s and 3 s; other packets again after 0.2 s, 0.6 s, 1.4 s.
CONNECT_S = 3.5
ANSWER_S = 2.5
# One late answer of so many may be anything.
LEAST_LATE = 2
# TCP copes with less, slowly.
FAULT_PERCENT = 10

_COUNTED = (
    "about {percent} % of the packets are lost: of {connects} connects to {to} {syn_first} opened "
    "with the first SYN, {syn_late} with a further one, {syn_never} not at all; of their "
    "ClientHellos {data_first} were answered at once, {data_late} with packets sent again, "
    "{data_never} not at all"
)
_SYNS_ONLY = (
    "of {connects} connects to {to} {syn_late} opened with a further SYN only, and nothing else "
    "was sent again: a limit on new connections, or one of several back ends drops them"
)


class Tried(Struct, frozen=True):
    """What became of a packet: ``again`` is how often it was sent again; ``torn``: a part of its
    answer came before an earlier one."""

    answered: bool
    again: int
    torn: bool = False


class Sent(Struct, frozen=True):
    """Packets by what became of them: answered at once, ``late``: when something was sent again, or
    ``never``; and how many were sent."""

    first: int
    late: int
    never: int
    sent: int

    @classmethod
    def of(cls, tries: Sequence[Tried]) -> Sent:
        """Count tries."""
        good = [one for one in tries if one.answered]
        first = sum(1 for one in good if not one.again and not one.torn)
        total = len(tries) + sum(one.again for one in tries)
        return cls(first, len(good) - first, len(tries) - len(good), total)

    @property
    def is_chance(self) -> bool:
        """Whether packets got through when they were sent again."""
        return self.late >= LEAST_LATE

    @property
    def percent(self) -> int:
        """How many of a hundred were lost. What was never answered counts where chance explains
        it: then it is less than what was answered late."""
        answered = self.first + self.late
        if self.never > self.late:
            return round(100 * self.late / answered)
        return round(100 * (self.sent - answered) / self.sent)


class Losses(Struct, frozen=True):
    """What became of the SYNs, and of the ClientHellos on the connections that opened."""

    syns: Sent
    data: Sent

    @property
    def percent(self) -> int:
        """How many packets of a hundred are lost; 0 where data is not. The kernel sends SYNs again
        only when they were lost, so they give the figure where they can."""
        if not self.data.is_chance:
            return 0
        return self.syns.percent if self.syns.is_chance else self.data.percent


async def count_losses(reach: Reach) -> Losses:
    """Wait for a sign of loss on any connection, then count with connections of its own."""
    await reach.doubted.wait()
    tries = await asyncio.gather(*(_try_later(reach, number) for number in range(CONNECTS)))
    return Losses(
        Sent.of([syn for syn, _ in tries]), Sent.of([data for _, data in tries if data is not None])
    )


async def _try_later(reach: Reach, number: int) -> tuple[Tried, Tried | None]:
    """Connect and send a ClientHello: give what became of the SYN, and of that."""
    await asyncio.sleep(number * SPACING_S)
    async with open_tunnel(reach, timeout_s=CONNECT_S) as (stream, failure):
        opened = stream.opened
        syn = Tried(opened.failure is None, _count_repeated_syns(opened))
        return syn, None if failure is not None else await _send_hello(reach, stream)


async def _send_hello(reach: Reach, stream: OpenedPipe) -> Tried:
    await stream.send(TlsClient(reach.hello).start())
    event = await stream.receive(ANSWER_S)
    again = event.tcp.get("total_retrans", 0) - stream.opened.tcp.get("total_retrans", 0)
    return Tried(event.kind != "timeout", max(0, again), bool(event.tcp.get("rcv_ooopack")))


def _count_repeated_syns(one: Opened) -> int:
    return one.tcp.get("total_retrans", 0) if one.failure is None else max(0, (one.syns or 1) - 1)


def conclude_loss(reach: Reach, log: Log, losses: Losses) -> Conclusion | None:
    """Give the verdict, its stage in the log; None where TCP copes with it, which is a warning."""
    evidence: dict[str, Any] = reach.where() | {"percent": losses.percent, "connects": CONNECTS}
    for name, sent in (("syn", losses.syns), ("data", losses.data)):
        evidence |= {
            f"{name}_first": sent.first, f"{name}_late": sent.late, f"{name}_never": sent.never,
        }  # fmt: skip
    if losses.percent >= FAULT_PERCENT:
        return log.fail("tcp", found("PACKET_LOSS", _COUNTED, evidence))
    if losses.percent:
        log.warnings.append(fill(_COUNTED, evidence))
    elif losses.syns.is_chance:
        log.warnings.append(fill(_SYNS_ONLY, evidence))
    return None

"""How long an agent may take for its orders: a deadline for each, from the order's own work.

An agent that is alive may still be one that does not answer: another thread of it beats, or the
command that leads to it. Each deadline is a multiple of what the work takes at a slow pace. It
counts from the agent's last answer to any order, because orders share the agent; but progress
extends it to MOST_ESTIMATES of them at most. Only time counts in which the agent could run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from netprobe.agent.wire import (
    host_messages,
    orders,
    quality_messages,
    stream_messages,
    tunnel_messages,
)
from netprobe.agent.wire.parts import ProbeBlock

# A busy machine is slower than the work says; the rest is for the way there and back.
FACTOR = 2.0
GRACE_S = 10.0
MOST_ESTIMATES = 4
# A weak host starts more probes a second than this, unless it may open few files.
STARTS_PER_S = 1000.0
FILES_SHARE = 2
LEAST_SOCKETS = 8

# What starts no packets of its own is answered at once, unless it is in here.
RESOLVE_S = 10.0
# A trial of a tunnel: echo requests, a connection, and transfers, each to the end of its patience.
TRIAL_S = 15.0
# Before a round tells what it has seen, thousands of listeners may be dialled, a part at a time.
SELF_TEST_S = 10.0
# A walk asks 8 TTLs at a time, after two others that find out what it shares with them. Where
# routers ration their answers, each walk may cost a second.
WAVE_S, WAVE_TTLS, WALKS_IN_TURN, ANSWER_EVERY_S = 2.2, 8, 3, 1.02


class Effort(Struct, frozen=True):
    """The work of one order.

    ``what``: in words. ``wait_s``: how long its answers are waited for. ``starts``: how many
    packets, sockets or listeners it starts, in turn with those of all other orders. ``lanes``:
    what only one order can use at a time, and for how long it does.
    """

    what: str
    wait_s: float = 0.0
    starts: int = 0
    lanes: tuple[tuple[str, float], ...] = ()


class Moment(NamedTuple):
    """A time, and how long the agent could not run before it. Seconds."""

    at: float
    stalled: float


class OpenOrder(Struct):
    """An order that has not been answered to its end: its work, when it was sent, and the most that
    it was ever expected to take beside the others."""

    effort: Effort
    sent: Moment
    estimate_s: float = 0.0


def effort_of(order: Any) -> Effort:
    """Tell how much work an order is."""
    kind = type(order)
    return _EFFORTS[kind](order) if kind in _EFFORTS else Effort(_name_order(order))


class OrderPatience(Struct):
    """How long an agent's open orders may take. ``files``: how many it may have open at once.

    ``per_s``: how many probes a second it may start, where that is limited.
    """

    files: int
    grace_s: float = GRACE_S
    per_s: float | None = None

    def deadlines_s(self, efforts: list[Effort]) -> list[float]:
        """Give for each open order how long the agent may be without any answer."""
        sockets = max(LEAST_SOCKETS, self.files // FILES_SHARE)
        longest_s = max((one.wait_s for one in efforts), default=0.0)
        starts_per_s = min(STARTS_PER_S, sockets / longest_s if longest_s else STARTS_PER_S)
        starts_per_s = min(starts_per_s, self.per_s or STARTS_PER_S)
        starting_s = sum(one.starts for one in efforts) / starts_per_s
        lanes: defaultdict[str, float] = defaultdict(float)
        for one in efforts:
            for lane, lane_s in one.lanes:
                lanes[lane] += lane_s
        return [
            self.grace_s
            + FACTOR
            * (
                one.wait_s
                + max((lanes[lane] for lane, _ in one.lanes), default=0.0)
                + (starting_s if one.starts else 0.0)
            )
            for one in efforts
        ]


def _count_ports(ranges: list[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges) or 1


def _measure_probe(order: orders.ProbeOrder) -> Effort:
    own = _count_starts(order.looks, order.blocks)
    starts = [(order.dst, own)]
    starts += [
        (one.dst, _count_starts(order.looks, one.blocks) if one.blocks else own)
        for one in order.more
    ]
    lanes: tuple[tuple[str, float], ...] = ()
    if order.pace is not None:
        # A destination's bucket of ICMP errors is one for all orders to it.
        pace_s = order.pace.interval_ms / 1000
        lanes = tuple((f"pace {dst} {order.src}", count * pace_s) for dst, count in starts)
    to = f"{len(starts)} hosts" if order.more else order.dst
    what = f"its {order.proto} probes of {to}"
    return Effort(what, _find_wait_s(order), sum(count for _, count in starts), lanes)


def _count_starts(looks: int, blocks: list[ProbeBlock]) -> int:
    return looks * sum(_count_ports(block.ports) for block in blocks)


def _measure_echo(order: orders.EchoOrder) -> Effort:
    count = len(order.dsts)
    to = order.dsts[0] if count == 1 else f"{count} hosts"
    return Effort(f"its echo requests to {to}", _find_wait_s(order), order.looks * count)


def _find_wait_s(order: orders.ProbeOrder | orders.EchoOrder) -> float:
    return max(order.first_ms or 0, order.look_ms) * order.looks / 1000


def _measure_walk(order: orders.WalkOrder) -> Effort:
    wait_s = WALKS_IN_TURN * WAVE_S * -(-order.max_ttl // WAVE_TTLS)
    return Effort(f"a walk to {order.dst}", wait_s, 0, (("walks", ANSWER_EVERY_S),))


def _measure_listening(order: orders.ListenOrder | orders.HeldOrder) -> Effort:
    starts = sum(_count_ports(block.ports) for block in order.blocks)
    what = "opening" if isinstance(order, orders.ListenOrder) else "looking at"
    return Effort(f"{what} its ports", starts=starts)


def _measure_samples(order: quality_messages.SampleOrder) -> Effort:
    wait_s = (order.samples * order.interval_ms + order.timeout_ms) / 1000
    return Effort(f"its samples of the way to {order.dst}", wait_s, order.samples)


_EFFORTS: dict[type[Any], Callable[[Any], Effort]] = {
    orders.ProbeOrder: _measure_probe,
    orders.EchoOrder: _measure_echo,
    orders.WalkOrder: _measure_walk,
    orders.ListenOrder: _measure_listening,
    orders.SeenOrder: lambda _: Effort("dialling its listeners", SELF_TEST_S),
    orders.HeldOrder: _measure_listening,
    host_messages.ResolveOrder: lambda order: Effort(f"resolving {order.name}", RESOLVE_S),
    quality_messages.SampleOrder: _measure_samples,
    tunnel_messages.TunnelTryOrder: lambda _: Effort("a trial of a tunnel", TRIAL_S),
    stream_messages.StreamOpenOrder: lambda order: Effort(
        f"a connection to {order.dst}", order.timeout_ms / 1000
    ),
    stream_messages.StreamAwaitOrder: lambda order: Effort("hearing a connection", order.ms / 1000),
}


def _name_order(order: Any) -> str:
    return f"the order {type(order).__name__.removesuffix('Order')}"

"""Holds an agent's answer against the order: the codec knows types, and this knows what they mean.

An answer that breaks a rule is a ValueError with the words; who reads it loses that agent, because
nothing else that it said can be trusted either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from netprobe.agent.wire import (
    answers,
    host_messages,
    orders,
    parts,
    quality_messages,
    segment_messages,
    tunnel_messages,
)
from netprobe.model import ports as port_sets
from netprobe.model.ports import MAX_PORT, PortRange, Ports
from netprobe.model.shapes import LINE, LINK, NAME, REASON
from netprobe.probe.agents.outcome_rules import check_addresses, demand_that
from netprobe.vantage.link import AgentLink

MOST_ARRIVED = 4096
MOST_STRANGERS = 64
# First sequence numbers of one range of ports.
MOST_NUMBERS = 64
MOST_ADDRESSES = 1024
# Machines that have one address.
MOST_HEARD, MOST_ANSWERS, MOST_SERVERS = 64, 256, 32


def _pair_messages(module: ModuleType) -> Iterator[tuple[type[Any], tuple[type[Any], ...]]]:
    """Pair what a host is asked with its answer, which stands behind it in the module."""
    records = [
        one for one in vars(module).values() if getattr(one, "__module__", None) == module.__name__
    ]
    return zip(records[::2], ((one,) for one in records[1::2]), strict=True)


# Which answers an order may have; a fault is one to any.
ANSWERS_TO: dict[type[Any], tuple[type[Any], ...]] = {
    orders.ListenOrder: (answers.Listening,),
    orders.HeldOrder: (answers.Listening,),
    orders.CloseOrder: (answers.Closed,),
    orders.SeenOrder: (answers.Seen,),
    orders.StoryOrder: (answers.StoryTold,),
    orders.KeptOrder: (answers.PacketsKept,),
    orders.WalkOrder: (answers.Walked,),
    orders.ProbeOrder: (answers.ProbeOutcomes, answers.Done),
    orders.EchoOrder: (answers.EchoOutcomes, answers.Done),
    **dict(_pair_messages(host_messages)),
    **dict(_pair_messages(tunnel_messages)),
    **dict(_pair_messages(quality_messages)),
    **dict(_pair_messages(segment_messages)),
}


def check_answer(order: Any, answer: Any) -> None:
    """Check the answer of an order that has one. Raises ValueError."""
    check = _CHECKS.get(type(answer))
    if check is not None:
        check(order, answer)


def _check_order(ranges: Sequence[PortRange]) -> None:
    """Check ranges of any ports; the codec keeps out numbers that are none."""
    for first, last in ranges:
        demand_that(first <= last, f"a range {first}-{last}")


def _check_ranges(ranges: Sequence[PortRange], asked: Ports) -> Ports:
    """Check that these ports are among those that were asked, normalised, and give them."""
    _check_order(ranges)
    told = port_sets.normalise(ranges)
    demand_that(not port_sets.divide(told, asked)[1], "ports that were not asked")
    return told


def _check_listening(
    order: orders.ListenOrder | orders.HeldOrder, answer: answers.Listening
) -> None:
    found, asked = len(answer.blocks), len(order.blocks)
    demand_that(found == asked, f"{found} blocks of {asked}")
    for block, told in zip(order.blocks, answer.blocks, strict=True):
        _check_listening_block(block, told, bound=isinstance(order, orders.ListenOrder))


def _check_listening_block(
    block: parts.ListenBlock, told: parts.ListeningBlock, bound: bool
) -> None:
    # An IP protocol has no ports: bound it is 0, held it is its number.
    asked = port_sets.normalise(block.ports)
    if not block.ports:
        asked = port_sets.normalise(((0, 0), (block.number or 0, block.number or 0)))
    held = [(one.first, one.last) for one in told.held]
    failed = [(one.first, one.last) for one in told.failed]
    fates = _check_ranges([*told.up, *held, *told.denied, *failed, *told.skipped], asked)
    _check_ranges([(one.first, one.last) for one in told.beside], asked)
    _check_ranges(told.up, asked)
    if bound and block.ports:
        untold = port_sets.subtract(asked, fates)
        demand_that(not untold, f"nothing of ports {port_sets.text(untold):.40}")


def _check_seen(order: orders.SeenOrder, answer: answers.Seen) -> None:
    # Of each order once, and once for each reason why answers to it did not leave.
    told = [(one.order, one.reply) for one in answer.orders]
    replies = {reply for _, reply in told}
    _check_once(told, [(number, reply) for number in order.orders for reply in replies], "order")
    for arrivals in answer.orders:
        _check_order(arrivals.ports)
        check_addresses(arrivals.senders)
    _check_length(answer.half_open, MOST_ARRIVED)
    _check_length(answer.strangers, MOST_STRANGERS)
    check_addresses(one.remote for one in answer.half_open)
    _check_length(answer.unreached, MOST_ARRIVED)
    for unreached in answer.unreached:
        _check_order(unreached.ports)
    check_addresses(one.address for one in answer.unreached)


def _check_story(order: orders.StoryOrder, answer: answers.StoryTold) -> None:
    asked = port_sets.normalise(order.ports or [(0, 0)])
    told = [_check_ranges(run.ports, asked) for run in answer.runs]
    twice = sum(map(port_sets.count, told)) - port_sets.count(port_sets.union(told))
    demand_that(not twice, "ports of two runs")
    for run in answer.runs:
        _check_length(run.numbers, MOST_NUMBERS)
    for error in answer.errors:
        _check_ranges(error.ports, asked)
    for moved in answer.translated:
        _check_order(moved.ports)
        check_addresses((moved.asker, moved.target))
    check_addresses(error.sender for error in answer.errors)
    _check_length(answer.translated, MOST_ARRIVED)


def _check_kept(_order: Any, answer: answers.PacketsKept) -> None:
    # The other end is asked about these: an order must stay one that it takes.
    _check_length(answer.numbers, MOST_ARRIVED)
    _check_length(answer.own_ports, MOST_ARRIVED)


def _check_walked(order: orders.WalkOrder, answer: answers.Walked) -> None:
    ttls = [hop.ttl for hop in answer.hops]
    # Every hop up to the last: the walk's own numbers, in their order.
    demand_that(ttls == list(range(1, len(ttls) + 1)), "hops that are out of order")
    demand_that(len(ttls) <= order.max_ttl, f"{len(ttls)} hops of {order.max_ttl}")
    check_addresses(hop.address for hop in answer.hops)
    ended = bool(answer.hops) and answer.hops[-1].address is not None
    demand_that(ended or not answer.reached, "a walk that arrived without a hop")
    if answer.refusal is not None:
        by = answer.hops[-1].address if answer.hops else None
        demand_that(answer.refusal.offender == by, "a walk that another hop refused than its last")
        demand_that(not answer.reached, "a walk that arrived and was refused")


def _check_resolved(_order: Any, answer: host_messages.Resolved) -> None:
    _check_length(answer.addresses, MOST_ADDRESSES)
    check_addresses(answer.addresses)
    _check_once(answer.addresses, answer.addresses, "address")


def _check_routed(_order: Any, answer: host_messages.Routed) -> None:
    check_addresses((answer.source, answer.gateway))


def _check_next_hop(_order: Any, answer: host_messages.Egress | host_messages.ReturnPath) -> None:
    check_addresses([answer.next_hop])


def _check_next_hops(order: host_messages.HopsOrder, answer: host_messages.HopsTold) -> None:
    demand_that(len(answer.picks) == len(order.targets), "another number of next hops")
    check_addresses(hop.gateway for hop in answer.hops)
    for hop in answer.hops:
        demand_that(hop.dev is None or LINE.fits(hop.dev), f"a device {hop.dev!r:.40}")
    demand_that(all(at < len(answer.hops) for at in answer.picks), "a next hop that is not there")


def _check_own_resets(order: host_messages.OwnResetsOrder, answer: host_messages.OwnResets) -> None:
    _check_ranges(answer.ports, port_sets.normalise(order.ports))


def _check_tunnel(_order: Any, answer: tunnel_messages.TunnelOpened) -> None:
    failure = answer.failure
    demand_that(failure is None or REASON.fits(failure), f"a failure {failure!r:.40}")


def _check_trial(
    order: tunnel_messages.TunnelTryOrder, answer: tunnel_messages.TunnelTried
) -> None:
    demand_that(answer.bytes in (0, order.bytes), f"{answer.bytes} bytes of {order.bytes}")
    demand_that(answer.opened or not (answer.full or answer.bytes), "bytes without a connection")


def _check_samples(
    order: quality_messages.SampleOrder, answer: quality_messages.SamplesTaken
) -> None:
    told = len(answer.rtts_us) + answer.lost
    demand_that(told <= order.samples, f"{told} samples of {order.samples}")
    longest_us = max(answer.rtts_us, default=0)
    demand_that(longest_us <= order.timeout_ms * 1000, f"a round trip of {longest_us} us")
    failure = answer.failure
    demand_that(failure is None or REASON.fits(failure), f"a failure {failure!r:.40}")


def _check_heard(_order: Any, answer: segment_messages.SegmentHeard) -> None:
    _check_length(answer.routers, MOST_HEARD)
    check_addresses(one.sender for one in answer.routers)
    for one in answer.routers:
        demand_that(LINK.fits(one.link), f"a link-layer address {one.link!r:.40}")
        demand_that(NAME.fits(one.speaks), f"a protocol {one.speaks!r:.40}")
        demand_that(LINE.fits(one.dev), f"a device {one.dev!r:.40}")


def _check_segment(
    order: segment_messages.SegmentAskOrder, answer: segment_messages.SegmentAnswers
) -> None:
    _check_length(answer.answers, MOST_ANSWERS)
    _check_once([*map(tuple, answer.answers)], [*map(tuple, answer.answers)], "answer")
    for dst, link in answer.answers:
        demand_that(dst in order.dsts, f"an address {dst!r:.40}")
        demand_that(LINK.fits(link), f"a link-layer address {link!r:.40}")


def _check_dhcp(_order: Any, answer: segment_messages.DhcpHeard) -> None:
    _check_length(answer.servers, MOST_SERVERS)
    _check_once([*map(tuple, answer.servers)], [*map(tuple, answer.servers)], "server")
    check_addresses(one.server for one in answer.servers)
    check_addresses(one.offer for one in answer.servers if one.offer is not None)
    for one in answer.servers:
        demand_that(LINK.fits(one.link), f"a link-layer address {one.link!r:.40}")


def _check_sockets(_order: Any, answer: host_messages.Sockets) -> None:
    check_addresses(one.address for one in answer.sockets)
    for one in answer.sockets:
        demand_that(one.protocol in ("tcp", "udp"), f"a protocol {one.protocol!r:.40}")
        demand_that(one.port <= MAX_PORT, f"a port {one.port}")
        _check_once(one.owners, range(len(answer.owners)), "process")


def _check_once(told: Sequence[Any], asked: Sequence[Any], what: str) -> None:
    demand_that(len(set(told)) == len(told), f"one {what} twice")
    demand_that(set(told) <= set(asked), f"another {what} than was asked")


def _check_length(items: Sequence[Any], most: int) -> None:
    demand_that(len(items) <= most, f"{len(items)} items, more than {most}")


_CHECKS: dict[type[Any], Callable[[Any, Any], None]] = {
    answers.Listening: _check_listening,
    answers.Seen: _check_seen,
    answers.StoryTold: _check_story,
    answers.PacketsKept: _check_kept,
    answers.Walked: _check_walked,
    host_messages.Resolved: _check_resolved,
    host_messages.Routed: _check_routed,
    host_messages.Egress: _check_next_hop,
    host_messages.HopsTold: _check_next_hops,
    host_messages.ReturnPath: _check_next_hop,
    host_messages.Sockets: _check_sockets,
    host_messages.OwnResets: _check_own_resets,
    tunnel_messages.TunnelOpened: _check_tunnel,
    tunnel_messages.TunnelTried: _check_trial,
    quality_messages.SamplesTaken: _check_samples,
    segment_messages.SegmentHeard: _check_heard,
    segment_messages.SegmentAnswers: _check_segment,
    segment_messages.DhcpHeard: _check_dhcp,
}


@contextlib.contextmanager
def refusing(link: AgentLink, answer: type[Any]) -> Iterator[None]:
    """Lose the agent whose answer breaks a rule. Raises AgentError instead of ValueError."""
    try:
        yield
    except ValueError as error:
        raise link.refuse(f"{answer.__name__}: {error}") from None

"""The cost of a plan (packets, listeners, seconds), estimated from counts alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, product

from netprobe.model import ports as port_sets
from netprobe.model.plan import (
    BALANCER,
    MULTICAST,
    OVERLAY,
    QUALITY,
    SEGMENT,
    Block,
    Plan,
    PlanCost,
)
from netprobe.model.ports import Ports
from netprobe.model.quality import FLOWS_AT_ONCE, INTERVAL_MS

# What one open or refused flow takes in packets: SYN, SYN-ACK, ACK, nonce, answer, reset; or one
# datagram and its answer. Silence takes more, and cannot be known before.
PACKETS = {"tcp": 6, "udp": 2, "icmp": 2}
PACKETS_OTHER = 2

# How many flows a second one source and one destination get through, Python at both ends; and a
# source whose destinations have no agent (docs/performance.md).
FLOWS_PER_S = 3500
BARE_FLOWS_PER_S = 50_000
# How many pairs and ranges a second the coordinator orders, judges and keeps.
RESULTS_PER_S = 5_000
# A start of an agent takes about a second over ssh, eight at a time through one first hop; then
# come netprobe's own start and the end.
START_S = {"ssh": 1.2, "command": 0.2, "local": 0.2, "none": 0.0}
STARTS_AT_ONCE = 8
OWN_S = 0.5
# A tunnel that is rehearsed (docs/rehearsal.md).
TRIAL_S = 0.2
# A port of a balancer: checks of it must find the back ends up.
BALANCER_S = 5
# A back end that fails, and is well again; all of them end with the time of a port.
REMOVAL_S, LONGEST_BALANCER_S = 10, 100
# Questions to segments in the whole run, and how long routers are listened for meanwhile.
ASKED_PER_S, ANSWERED_S, HEAR_S = 20, 6, 4
# What flows that stay silent cost, however many they are: first looks, second looks, walks.
SILENCE_S = 2.5
# Closed UDP ports: each source sends a destination 6 datagrams at once, then one per 1.02 s
# (docs/design.md, section 6.7).
UDP_BURST = 6
UDP_INTERVAL_S = 1.02


def estimate(plan: Plan) -> PlanCost:
    """Count without walking any flow.

    Times are those of idle hosts with processors of their own: how busy hosts are, and which of
    them share a machine, as those of a lab do, is not known before they are asked.
    """
    flows = plan.flow_count()
    packets = sum(
        block.flow_count() * PACKETS.get(block.protocol, PACKETS_OTHER) * (block.samples or 1)
        for block in plan.blocks
    )
    paced = _paced_seconds(plan)
    busiest = max(_busiest_seconds(plan), count_results(plan) / RESULTS_PER_S)
    played_s = estimate_rehearsals_s(plan.blocks) + estimate_quality_s(plan.blocks)
    seconds = _start_seconds(plan) + busiest + paced + played_s if flows else 0.0
    dropped = seconds + SILENCE_S if flows else 0.0
    listeners = _count_listeners(plan)
    return PlanCost(
        flows, packets, listeners, round(seconds, 1), round(dropped, 1), round(paced, 1)
    )


def count_results(plan: Plan) -> int:
    """Tell how many results there are at least: ports of a range share one with their fate."""
    return sum(block.pair_count() * max(1, len(block.ports)) for block in plan.blocks)


def _start_seconds(plan: Plan) -> float:
    """Give the seconds until all agents have started, with netprobe's own start and end."""
    hosts = {host.name: host for block in plan.blocks for host in block.sources}
    for block in plan.blocks:
        hosts |= {host.name: host for host, _ in block.destinations}
    kinds = [host.vantage.kind for host in hosts.values()]
    over_ssh = -(-kinds.count("ssh") // STARTS_AT_ONCE) * START_S["ssh"]
    return OWN_S + max([over_ssh, *(START_S[kind] for kind in kinds if kind != "ssh")])


def _count_listeners(plan: Plan) -> int:
    """Sockets that destinations open: each address and port once, however many ask for it."""
    wanted: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for block in plan.blocks:
        if block.requirement.expect == "allowed" and block.protocol in ("tcp", "udp"):
            for host, address in block.destinations:
                if host.vantage.kind != "none":
                    wanted.setdefault((address.text, block.protocol), []).extend(block.ports)
    return sum(port_sets.count(port_sets.normalise(ranges)) for ranges in wanted.values())


def _busiest_seconds(plan: Plan) -> float:
    """Give the seconds of the host that has most to do, as source and destination together."""
    load: dict[str, float] = {}
    parts: dict[int, tuple[Block, int]] = {}
    for block in plan.blocks:
        ports = port_sets.count(block.ports) or 1
        if block.chosen is not None:
            # Blocks of the same pairs share them: thousands of hosts are walked once.
            known = parts.get(id(block.chosen), (block, 0))
            parts[id(block.chosen)] = (block, known[1] + ports)
            continue
        bare = sum(1 for host, _ in block.destinations if host.vantage.kind == "none")
        heard = len(block.destinations) - bare
        for source in block.sources:
            its_s = ports * (heard / FLOWS_PER_S + bare / BARE_FLOWS_PER_S)
            load[source.name] = load.get(source.name, 0.0) + its_s
        for host, _ in block.destinations:
            if host.vantage.kind != "none":
                its_s = ports * len(block.sources) / FLOWS_PER_S
                load[host.name] = load.get(host.name, 0.0) + its_s
    for block, ports in parts.values():
        _add_chosen(block, ports, load)
    return max(load.values(), default=0.0)


def _add_chosen(block: Block, ports: int, load: dict[str, float]) -> None:
    """Add the seconds of a part of which each pair is known, to both of its hosts."""
    assert block.chosen is not None
    bare = {at for at, (host, _) in enumerate(block.destinations) if host.vantage.kind == "none"}
    times = Counter(chain.from_iterable(block.chosen))
    for at, (host, _) in enumerate(block.destinations):
        if at not in bare:
            load[host.name] = load.get(host.name, 0.0) + times[at] * ports / FLOWS_PER_S
    for source, peers in zip(block.sources, block.chosen, strict=True):
        few = len(bare.intersection(peers)) if bare else 0
        its_s = ports * ((len(peers) - few) / FLOWS_PER_S + few / BARE_FLOWS_PER_S)
        load[source.name] = load.get(source.name, 0.0) + its_s


def _paced_seconds(plan: Plan) -> float:
    """Give the seconds of the slowest pair for UDP ports without a listener of netprobe."""
    by_end: dict[tuple[str, str], Ports] = {}
    for block in plan.blocks:
        for host, address in _pairs_of_unanswered_udp(block):
            known = by_end.get((host, address), ())
            by_end[host, address] = port_sets.normalise((*known, *block.ports))
    longest = max((port_sets.count(ports) for ports in by_end.values()), default=0)
    return max(0, longest - UDP_BURST) * UDP_INTERVAL_S


def _pairs_of_unanswered_udp(block: Block) -> list[tuple[str, str]]:
    if block.protocol != "udp":
        return []
    denied = block.requirement.expect == "denied"
    ends = block.destinations
    return [(host.name, end.text) for host, end in ends if denied or host.vantage.kind == "none"]


def estimate_rehearsals_s(blocks: Iterable[Block]) -> float:
    """Give about how many seconds the rehearsals take: a host has one tunnel at a time, and all
    back ends of a balancer are played together."""
    load: dict[str, int] = {}
    beside: dict[str | None, list[Block]] = {BALANCER: [], SEGMENT: [], MULTICAST: []}
    for block in blocks:
        if block.rehearsal in beside:
            beside[block.rehearsal].append(block)
        if block.rehearsal != OVERLAY:
            continue
        for place, source in enumerate(block.sources):
            for peer in block.peers(place):
                for name in (source.name, block.destinations[peer][0].name):
                    load[name] = load.get(name, 0) + 1
    tunnels_s = max(load.values(), default=0) * TRIAL_S
    played_s = estimate_balancers_s(beside[BALANCER])[0] + estimate_segments_s(beside[SEGMENT])
    # Hosts listen while segments are asked.
    alone_s = HEAR_S if beside[MULTICAST] and not beside[SEGMENT] else 0
    return tunnels_s + played_s + alone_s


def estimate_segments_s(blocks: Iterable[Block]) -> int:
    """Give about how many seconds the questions for all addresses and DHCP servers take."""
    count = frames = 0
    for block in blocks:
        count += block.pair_count()
        # IPv4 is asked in two ways, and what is free three times.
        rounds = 3 if block.destinations[0][0].free else 1
        frames += block.pair_count() * (1 if block.family == 6 else 2) * rounds
    return max(ANSWERED_S, round(frames / ASKED_PER_S) + 3) if count else 0


def estimate_quality_s(blocks: Iterable[Block]) -> float:
    """Give about how many seconds the samples of the busiest source take."""
    load: dict[str, float] = {}
    longest_s = 0.0
    for block in blocks:
        if block.rehearsal != QUALITY:
            continue
        flow_s = (block.samples or 0) * INTERVAL_MS / 1000
        for place, source in enumerate(block.sources):
            flows = len(list(block.peers(place))) * max(1, len(block.ports))
            longest_s = max(longest_s, flow_s * bool(flows))
            load[source.name] = load.get(source.name, 0.0) + flows * flow_s / FLOWS_AT_ONCE
    return max(longest_s, *load.values()) if load else 0.0


def estimate_balancers_s(blocks: Iterable[Block]) -> tuple[int, int]:
    """Give about how many seconds it takes to play balancers, and how many at most.

    What has a port of a back end in common comes one after the other, as the addresses of a
    balancer do; all else goes side by side.
    """
    took: dict[tuple[str, str, int], int] = {}
    ends: dict[tuple[str, int], set[tuple[str, str, int]]] = {}
    for block in blocks:
        for host, address in block.destinations:
            for port in port_sets.each(block.ports):
                one = (host.name, address.text, port)
                failing = len(block.back_ends) if host.health_at(port) is not None else 0
                took[one] = min(LONGEST_BALANCER_S, BALANCER_S + failing * REMOVAL_S)
                for end, number in product(block.back_ends, host.list_back_ports(port)):
                    ends.setdefault((end.name, number), set()).add(one)
    about_s = max((sum(took[one] for one in some) for some in ends.values()), default=0)
    return about_s, LONGEST_BALANCER_S * max(map(len, ends.values()), default=0)


def count_balancers(blocks: Iterable[Block]) -> int:
    """Count the ports of balancers: several rows to one are one."""
    return len(
        {
            (host.name, address.text, port)
            for block in blocks
            for host, address in block.destinations
            for port in port_sets.each(block.ports)
        }
    )

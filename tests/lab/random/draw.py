"""Draw an estate from its seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

from tests.lab.random.estate import (
    PROTOCOLS,
    Cut,
    Dead,
    Duplicate,
    Estate,
    Fault,
    Firewall,
    Flow,
    Held,
    Host,
    Loss,
    Narrow,
    Requirement,
    Route,
    Translation,
    router_name,
)

REJECTS = {
    4: ("net-unreachable", "host-unreachable", "prot-unreachable", "port-unreachable",
        "net-prohibited", "host-prohibited", "admin-prohibited"),
    6: ("no-route", "admin-prohibited", "addr-unreachable", "port-unreachable", "policy-fail",
        "reject-route"),
}  # fmt: skip
RESET = "tcp-reset"
ROUTES = ("none", "unreachable", "prohibit", "blackhole", "via dead", "via wrong")
MTUS = (1280, 1320, 1400, 1450)
LOSSES = (5, 10, 20)


def draw(seed: int) -> Estate:
    """The estate of a seed; the same on every machine and in every run."""
    rng = random.Random(seed)
    links = _links(rng)
    segments = _segments(rng, len(links) + 1)
    hosts = _hosts(rng, len(segments))
    requirements = _requirements(rng, hosts)
    bare = Estate(seed, links, segments, hosts, requirements, ())
    count = rng.choices((0, 1, 2, 3, 4), (5, 35, 30, 20, 10))[0]
    faults = [fault for _ in range(count) if (fault := _fault(rng, bare))]
    return _without_agents_on_dead(bare, tuple(dict.fromkeys(faults)))


def _links(rng: random.Random) -> tuple[tuple[int, int], ...]:
    routers = rng.choices((1, 2, 3), (25, 40, 35))[0]
    star = rng.random() < 0.5
    return tuple((0 if star else number - 1, number) for number in range(1, routers))


def _segments(rng: random.Random, routers: int) -> tuple[int, ...]:
    """The router of each segment; the first two are as far apart as can be."""
    ends = [routers - 1, 0 if routers < 3 or rng.random() < 0.5 else 1]
    more = [rng.randrange(routers) for _ in range(rng.randrange(3))]
    return tuple(ends + more)


def _hosts(rng: random.Random, segments: int) -> tuple[Host, ...]:
    count = rng.randint(2, 5)
    hosts = []
    for number in range(count):
        segment = number if number < 2 and rng.random() < 0.9 else rng.randrange(segments)
        agents = (100, 0, 0) if number == 0 else (70, 10, 20)
        agent = rng.choices(("root", "nobody", "none"), agents)[0]
        hosts.append(Host(f"h{number}", segment, 10 + number, agent))
    return tuple(hosts)


def _requirements(rng: random.Random, hosts: tuple[Host, ...]) -> tuple[Requirement, ...]:
    sources = [host.name for host in hosts if host.agent != "none"]
    found = []
    for number in range(rng.randint(3, 6)):
        source = rng.choice(sources)
        destination = rng.choice([host.name for host in hosts if host.name != source])
        protocol = rng.choices(PROTOCOLS, (60, 30, 10))[0]
        first = rng.choice((80, 443, 2379, 5432, 6443, 8285, 9100)) if rng.random() < 0.5 else 0
        first = first or 2000 + rng.randrange(30000)
        ports = tuple(first + 1000 * number + step for step in range(rng.randint(1, 3)))
        ports = () if protocol == "icmp" else ports
        found.append(Requirement(f"q{number}", source, destination, protocol, ports))
    return tuple(found)


def _fault(rng: random.Random, estate: Estate) -> Fault | None:
    flow = rng.choice(list(estate.flows()))
    makers: dict[Callable[[random.Random, Estate, Flow], Fault | None], int] = {
        _firewall: 52, _translation: 13, _route: 13, _narrow: 4, _loss: 5, _held: 5,
        _duplicate: 3, _dead: 3, _cut: 2,
    }  # fmt: skip
    return rng.choices(list(makers), list(makers.values()))[0](rng, estate, flow)


def _firewall(rng: random.Random, estate: Estate, flow: Flow) -> Fault:
    routers = [router_name(one) for one in estate.way(flow.source, flow.destination)]
    places = [(flow.source, "output", False), (flow.destination, "input", False),
              (flow.destination, "output", True), (flow.source, "input", True)]  # fmt: skip
    places += [(router, "forward", back) for router in routers for back in (False, True)]
    machine, hook, answers = rng.choice(places)
    data = flow.protocol == "tcp" and rng.random() < 0.12
    scope = "port" if data else rng.choices(("port", "protocol", "address"), (60, 20, 20))[0]
    kinds = ["drop", "drop", rng.choice(REJECTS[flow.family]), rng.choice(REJECTS[flow.family])]
    if flow.protocol == "tcp" and scope != "address":
        kinds.append(RESET)
    return Firewall(machine, hook, flow, scope, answers, rng.choice(kinds), data)


def _translation(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    routers = [router_name(one) for one in estate.way(flow.source, flow.destination)]
    if not routers:
        return None
    machine = rng.choice(routers)
    scope = "port" if flow.port else "address"
    others = [h.name for h in estate.hosts if h.name not in (flow.source, flow.destination)]
    kind = rng.choice(("snat", "host", "host", "port", "redirect"))
    if kind == "snat":
        return Translation(machine, flow, rng.choice((scope, "address")), None)
    if kind == "redirect" and flow.port:
        return Translation(machine, flow, scope, machine, flow.port, rng.random() < 0.6)
    if kind == "port" and flow.port:
        ports = [other.port for other in estate.flows()
                 if other.destination == flow.destination and other.protocol == flow.protocol
                 and other.port != flow.port]  # fmt: skip
        return Translation(machine, flow, scope, flow.destination, rng.choice([*ports, 39999]))
    if not others:
        return None
    other = rng.choice(others)
    asked = any((o.destination, o.port) == (other, flow.port) for o in estate.flows())
    return Translation(machine, flow, scope, other, 0, not asked and rng.random() < 0.4)


def _route(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    routers = [router_name(one) for one in estate.way(flow.source, flow.destination)]
    if not routers:
        return None
    places = [(flow.source, False), (flow.destination, True)]
    places += [(router, back) for router in routers for back in (False, True)]
    machine, answers = rng.choice(places)
    action = rng.choice(ROUTES)
    if action == "via wrong":
        wrong = _wrong_gateway(rng, estate, machine, routers, (flow.source, flow.destination))
        action = f"via {wrong}" if wrong else "via dead"
    return Route(machine, flow, answers, action)


def _wrong_gateway(
    rng: random.Random, estate: Estate, machine: str, way: list[str], ends: tuple[str, str]
) -> str | None:
    """Some neighbour that is not the right next hop: a host of the segment, or another router."""
    if machine in ends:
        segment = estate[machine].segment
        hosts = [h.name for h in estate.hosts if h.segment == segment and h.name not in ends]
        return rng.choice(hosts) if hosts else None
    routers = [router_name(one) for one in estate.neighbours(int(machine[1:]))]
    return rng.choice(routers) if routers else None


def _narrow(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    way = estate.way(flow.source, flow.destination)
    if len(way) < 2:
        return None
    pair = set(rng.choice(list(pairwise(way))))
    link = next(number for number, ends in enumerate(estate.links) if set(ends) == pair)
    return Narrow(link, rng.choice(MTUS), rng.random() < 0.6)


def _loss(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    way = estate.way(flow.source, flow.destination)
    return Loss(router_name(rng.choice(way)), rng.choice(LOSSES)) if way else None


def _held(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    if not flow.port:
        return None
    return Held(flow, rng.choice(("address", "wildcard", "loopback")))


def _duplicate(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    others = [h.name for h in estate.hosts if h.name not in (flow.source, flow.destination)]
    way = estate.way(flow.source, flow.destination)
    if not others or not way or rng.random() < 0.5:
        return Duplicate(flow.source, flow)
    other = rng.choice(others)
    return Duplicate(other, flow, router_name(estate.segments[estate[other].segment]))


def _dead(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    return Dead(flow.destination)


def _cut(rng: random.Random, estate: Estate, flow: Flow) -> Fault | None:
    if estate.links and rng.random() < 0.6:
        return Cut(link=rng.randrange(len(estate.links)))
    return Cut(machine=flow.source)


def _without_agents_on_dead(estate: Estate, faults: tuple[Fault, ...]) -> Estate:
    """Nobody gets onto a dead host: it has no agent and is no source."""
    dead = {fault.machine for fault in faults if isinstance(fault, Dead)}
    hosts = tuple(
        Host(h.name, h.segment, h.number, "none" if h.name in dead else h.agent)
        for h in estate.hosts
    )
    kept = tuple(one for one in estate.requirements if one.source not in dead)
    return Estate(estate.seed, estate.links, estate.segments, hosts, kept, faults)

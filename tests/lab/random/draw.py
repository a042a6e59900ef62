"""Draw an estate from its seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tests.lab.random.estate import (
    PROTOCOLS,
    Behind,
    Cut,
    Dead,
    Duplicate,
    Estate,
    Fault,
    FewSyns,
    Firewall,
    FirstSyn,
    Flow,
    Held,
    Host,
    Loss,
    Narrow,
    Relay,
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
TTLS = (32, 40, 60, 61, 62, 63, 64, 128, 255)


def draw(seed: int) -> Estate:
    """The estate of a seed; the same on every machine and in every run."""
    rng = random.Random(seed)
    links = _links(rng)
    segments = _segments(rng, len(links) + 1)
    hosts = _hosts(rng, len(segments))
    requirements = _requirements(rng, hosts)
    bare = Estate(seed, links, segments, hosts, requirements, ())
    count = rng.choices((0, 1, 2, 3, 4), (5, 35, 30, 20, 10))[0]
    faults = [fault for _ in range(count) for fault in _faults(rng, bare)]
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
        agents = (100, 0, 0) if number == 0 else (40, 10, 50)
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


Made = Fault | tuple[Fault, ...] | None


def _faults(rng: random.Random, estate: Estate) -> tuple[Fault, ...]:
    """Draw a fault, or some that belong together."""
    flow = rng.choice(list(estate.flows()))
    makers: dict[Callable[[random.Random, Estate, Flow], Made], int] = {
        _firewall: 42, _translation: 10, _route: 11, _narrow: 4, _loss: 5, _held: 5,
        _duplicate: 3, _dead: 3, _cut: 2, _translated_and_rejected: 14, _first_syn: 4, _relay: 3,
        _few_syns: 4,
    }  # fmt: skip
    made = rng.choices(list(makers), list(makers.values()))[0](rng, estate, flow)
    return made if isinstance(made, tuple) else (() if made is None else (made,))


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


def _translated_and_rejected(rng: random.Random, estate: Estate, flow: Flow) -> Made:
    """A translation, and behind it somebody who rejects, or who changes the answers' TTL."""
    made = _translation(rng, estate, flow)
    if not isinstance(made, Translation) or made.to is None:
        return made
    if made.to == made.machine:
        # What it takes for itself meets its own rules.
        places = [(made.machine, "input")]
    else:
        way = [router_name(one) for one in estate.way(flow.source, made.to)]
        behind = way[way.index(made.machine) :] if made.machine in way else []
        places = [(made.to, "input"), *((router, "forward") for router in behind)]
    machine, hook = rng.choice(places)
    actions = [rng.choice(REJECTS[flow.family]) for _ in range(4)]
    if flow.protocol == "tcp" and made.scope == "port":
        actions.append(RESET)
    if rng.random() < 0.25:
        rewriter = rng.choice([made.machine, *(one for one, hook in places if hook == "forward")])
        return (made, Behind(rewriter, "postrouting", made, f"ttl {rng.choice(TTLS)}"))
    return (made, Behind(machine, hook, made, rng.choice(actions)))


def _first_syn(rng: random.Random, estate: Estate, flow: Flow) -> Made:
    way = estate.way(flow.source, flow.destination)
    if not way or flow.protocol != "tcp":
        return None
    return FirstSyn(router_name(rng.choice(way)), flow)


def _relay(rng: random.Random, estate: Estate, flow: Flow) -> Made:
    """A proxy that forwards; mostly a service holds the port that it forwards to."""
    way = estate.way(flow.source, flow.destination)
    if not way or flow.protocol != "tcp":
        return None
    made = Relay(router_name(rng.choice(way)), flow)
    return (made, Held(flow, "wildcard")) if rng.random() < 0.7 else made


def _few_syns(rng: random.Random, estate: Estate, flow: Flow) -> Made:
    """A kernel that gives up early, and mostly something that it gives up for."""
    few = FewSyns(flow.source)
    return (few, _firewall(rng, estate, flow)) if rng.random() < 0.8 else few


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


def _held(rng: random.Random, estate: Estate, flow: Flow) -> Made:
    """A service that holds the port; of one on loopback the way is of interest, too."""
    if not flow.port:
        return None
    held = Held(flow, rng.choice(("address", "wildcard", "loopback", "loopback")))
    if held.on == "loopback" and rng.random() < 0.5:
        return (held, _firewall(rng, estate, flow))
    return held


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


def without_rights(estate: Estate) -> Estate:
    """The same estate, whose agents have no right."""
    hosts = tuple(
        replace(host, agent="nobody" if host.agent == "root" else host.agent)
        for host in estate.hosts
    )
    return replace(estate, hosts=hosts)


def _without_agents_on_dead(estate: Estate, faults: tuple[Fault, ...]) -> Estate:
    """Nobody gets onto a dead host: it has no agent and is no source."""
    dead = {fault.machine for fault in faults if isinstance(fault, Dead)}
    hosts = tuple(
        Host(h.name, h.segment, h.number, "none" if h.name in dead else h.agent)
        for h in estate.hosts
    )
    kept = tuple(one for one in estate.requirements if one.source not in dead)
    return Estate(estate.seed, estate.links, estate.segments, hosts, kept, faults)

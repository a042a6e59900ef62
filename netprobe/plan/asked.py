"""The part of a plan that an earlier file asks for, flow by flow: ``run --retry`` of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from netprobe.model.firewall import FirewallRule
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import Ports, cut_entries, normalise, union_by_key
from netprobe.model.result import PORTLESS, Result

# Matrix, requirement, protocol, source, destination, and its address: None where the source
# resolves a name.
_AskedKey = tuple[str, str, str, str, str, str | None]
# Gives the ports to probe; None where a flow is not asked for.
_PortFinder = Callable[[_AskedKey], Ports | None]


def keep_asked(plan: Plan, asked: Iterable[Result], path: str) -> Plan:
    """Give the plan of these flows only; ``path`` is the file that asks for them.

    Flows that the plan has no more are left out.
    """
    return _keep_flows(plan, _ports_of_flows(asked).get, path)


def keep_ruled(plan: Plan, rules: Iterable[FirewallRule], path: str) -> Plan:
    """Give the plan of the flows that rules are for: all that a request before a run has."""
    return _keep_flows(plan, _ports_of_rules(rules), path)


def _keep_flows(plan: Plan, ports_of: _PortFinder, path: str) -> Plan:
    parts = (part for block in plan.blocks for part in _parts_of_block(block, ports_of))
    blocks = tuple(replace(part, index=index) for index, part in enumerate(parts))
    kept = replace(plan, blocks=blocks)
    words = f"what {path} asks for: {kept.flow_count():,} of {plan.flow_count():,} flows"
    before = f"{plan.selection}; " if plan.selection else ""
    return replace(kept, selection=before + words, some_ports=True)


def _ports_of_flows(asked: Iterable[Result]) -> Mapping[_AskedKey, Ports]:
    return union_by_key(
        ((*name, one.protocol, one.source, one.destination, address), one.ports or PORTLESS)
        for one in asked
        for name in one.names
        for address in (one.address, None)
    )


def _ports_of_rules(rules: Iterable[FirewallRule]) -> _PortFinder:
    """Look the ports up by rule: all of its pairs may be millions."""
    found: dict[tuple[str, ...], list[tuple[set[str], set[tuple[str, str | None]], Ports]]] = {}
    for rule in rules:
        hosts = {end.host for end in rule.sources}
        ends: set[tuple[str, str | None]] = {(end.host, end.address) for end in rule.destinations}
        # Rules for answers open nothing that a run probes.
        for need in () if rule.answers else rule.needs:
            key = (need.matrix, need.requirement, rule.protocol)
            found.setdefault(key, []).append((hosts, ends, rule.ports or PORTLESS))

    def find_ports(key: _AskedKey) -> Ports | None:
        parts = [
            ports
            for hosts, ends, ports in found.get(key[:3], ())
            if key[3] in hosts and key[4:] in ends
        ]
        return normalise(chain.from_iterable(parts)) if parts else None

    return find_ports


def _parts_of_block(block: Block, ports_of: _PortFinder) -> Iterator[Block]:
    """Split a block into parts whose pairs have the same ports to ask."""
    pairs: dict[Ports, list[tuple[int, int]]] = {}
    for place, source in enumerate(block.sources):
        for peer in block.peers(place):
            destination, address = block.destinations[peer]
            end = None if block.family is None else address.text
            ends = (block.protocol, source.name, destination.name, end)
            found = (ports_of((*name, *ends)) for name in block.names_of_rows)
            wanted = [some for some in found if some is not None]
            if wanted:
                ports = cut_entries(block.ports, normalise(chain.from_iterable(wanted)))
                pairs.setdefault(ports, []).append((place, peer))
    for ports, some in pairs.items():
        if ports or not block.ports:
            yield block.keep_pairs(ports, some)

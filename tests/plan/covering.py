"""A covering run without packets: a truth decides every flow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.inventory import Host, Vantage
from netprobe.model.plan import Plan
from netprobe.model.ports import each
from netprobe.model.result import PORTLESS, Result, Verdict
from netprobe.plan.cover.completion import Completion
from netprobe.plan.cover.conclusion import conclude
from netprobe.plan.cover.cover import Cover
from tests.plan.conftest import host

# Source, destination, protocol, port (0 where there is none).
OneFlow = tuple[str, str, str, int]
Truth = Callable[[OneFlow], Verdict]


@dataclass(frozen=True)
class Fault:
    """These sources do not reach these destinations at these ports."""

    kind: str
    sources: frozenset[str]
    destinations: frozenset[str]
    protocol: str
    first: int
    last: int

    def stops(self, flow: OneFlow) -> bool:
        """Tell whether it stops a flow."""
        source, destination, protocol, port = flow
        return (
            source in self.sources
            and destination in self.destinations
            and protocol == self.protocol
            and self.first <= port <= self.last
            and source != destination
        )


@dataclass
class Simulation:
    """What a simulated run found, flow by flow, and what it says of the rest."""

    probed: dict[OneFlow, Verdict] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    flows: int = 0
    rounds: int = 0

    def failed(self) -> set[OneFlow]:
        """Give the flows that were probed and did not pass."""
        return {flow for flow, verdict in self.probed.items() if verdict != "pass"}

    def rest(self) -> Iterator[tuple[OneFlow, Unprobed]]:
        """Give every flow that has no result, with the group that it is in."""
        for group in self.coverage.unprobed:
            for source in self.coverage.sources(group):
                for destination in self.coverage.destinations(group):
                    if (source == destination) != group.itself:
                        continue
                    for port in each(group.ports or PORTLESS):
                        flow = (source, destination, group.protocol, port)
                        if flow not in self.probed:
                            yield flow, group


def zone_hosts(zones: int, size: int, *roles: str) -> list[Host]:
    """Hosts of so many zones of one size, all with an agent."""
    return [
        host(f"z{zone}-{number}", *roles, addresses=(f"10.{zone}.0.{number + 1}",), zone=f"z{zone}")
        for zone in range(zones)
        for number in range(size)
    ]


def without_agent(one: Host) -> Host:
    """The same host as a destination only."""
    return replace(one, vantage=Vantage("none"))


def simulate(cover: Cover, truth: Truth) -> Simulation:
    """Run a covering plan to its end against a truth."""
    completion = Completion(cover)
    found = Simulation()
    plan: Plan | None = cover.plan
    while plan is not None:
        found.rounds += 1
        for result in _results_of(plan, truth):
            _note(found, result)
            completion.add(result)
        plan = completion.next_plan()
    found.coverage = conclude(completion)
    return found


def _note(found: Simulation, result: Result) -> None:
    for port in each(result.ports or PORTLESS):
        flow = (result.source, result.destination, result.protocol, port)
        assert flow not in found.probed, f"{flow} is probed twice"
        found.probed[flow] = result.verdict
        found.flows += 1


def _results_of(plan: Plan, truth: Truth) -> Iterator[Result]:
    for block in plan.blocks:
        for place, source in enumerate(block.sources):
            for peer in block.peers(place):
                destination, address = block.destinations[peer]
                base = result_of(
                    (source.name, destination.name, block.protocol, 0),
                    order=block.order(place, peer),
                    requirement=block.requirement.id,
                    address=address.text,
                    expect=block.requirement.expect,
                )
                for port in each(block.ports or PORTLESS):
                    verdict = truth((source.name, destination.name, block.protocol, port))
                    ports = (port, port) if port else (None, None)
                    yield replace(base, verdict=verdict, port=ports[0], end_port=ports[1])


def result_of(flow: OneFlow, **known: object) -> Result:
    """A result of one flow; it passes unless ``known`` says otherwise."""
    facts: dict[str, object] = {
        "order": (0, 0, 0), "matrix": "m", "requirement": "row", "purpose": "p", "row": "r",
        "optional": False, "expect": "allowed", "waived": None, "source": flow[0],
        "destination": flow[1], "address": flow[1], "protocol": flow[2], "port": None,
        "end_port": None, "verdict": "pass", "state": "open", "reason": "syn-ack",
        "proof": "nonce", "where": (), "because": "it answered",
    }  # fmt: skip
    return Result(**{**facts, **known})  # type: ignore[arg-type]


def truth_of(faults: Iterable[Fault]) -> Truth:
    """The truth in which only these faults stop anything."""
    faults = tuple(faults)
    return lambda flow: "blocked" if any(one.stops(flow) for one in faults) else "pass"


def draw_faults(chance: random.Random, zones: int, size: int, wires: Wires) -> list[Fault]:
    """Draw one fault of each kind: zone to zone, host to zone, zone to host, 5 x 5 hosts."""
    found = []
    for kind in ("zone-zone", "host-zone", "zone-host", "5x5"):
        start, end = chance.sample(range(zones), 2)
        sources = [f"z{start}-{number}" for number in range(size)]
        ends = [f"z{end}-{number}" for number in range(size)]
        if kind == "host-zone":
            sources = [chance.choice(sources)]
        elif kind == "zone-host":
            ends = [chance.choice(ends)]
        elif kind == "5x5":
            sources, ends = chance.sample(sources, min(5, size)), chance.sample(ends, min(5, size))
        protocol, first, last = chance.choice(wires)
        # A rule for one host and some ports of a range may lie beside its slice (docs/reach.md).
        if kind == "zone-zone" and last - first > 50 and chance.random() < 0.5:
            first += chance.randrange((last - first) // 2)
            last = first + max(20, (last - first) // 3)
        found.append(Fault(kind, frozenset(sources), frozenset(ends), protocol, first, last))
    return found


# Protocol, first and last port; (0, 0) where it has none.
Wires = list[tuple[str, int, int]]


def stopped_by(fault: Fault, sources: Iterable[str], destinations: Iterable[str]) -> set[OneFlow]:
    """Every flow between these hosts that a fault stops."""
    return {
        flow
        for source in sources
        for destination in destinations
        for port in each(((fault.first, fault.last),))
        if fault.stops(flow := (source, destination, fault.protocol, port))
    }


def check_against_truth(required: int, found: Simulation, faults: list[Fault]) -> None:
    """What failed is what is stopped, wholly so but where two zones fail alike."""
    stopped = [stopped_by(fault, fault.sources, fault.destinations) for fault in faults]
    everything = set().union(*stopped)
    assert found.failed() <= everything
    rest = dict(found.rest())
    groups = sum(group.flows for group in found.coverage.unprobed)
    assert len(rest) == groups == required - found.flows
    for fault, flows in zip(faults, stopped, strict=True):
        seen = found.failed() & flows
        if fault.kind != "5x5":
            assert seen, fault
        for flow in flows - found.failed():
            group = rest[flow]
            # What nobody probed stands beside what failed in the same way; never beside a pass.
            told = (group.verdict, group.by_verdict)
            assert told == ("covered", "blocked") or (fault.kind == "5x5" and not seen), (
                fault, flow, group,
            )  # fmt: skip
    for flow, group in rest.items():
        if group.by_verdict == "blocked" or group.verdict != "covered":
            assert flow in everything, (flow, group, faults)

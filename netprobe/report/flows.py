"""Many flows in few lines: who reaches whom on which ports, exactly or as a survey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from netprobe.model.names import names_text
from netprobe.model.ports import PortRange, Ports, normalise
from netprobe.model.ports import text as ports_text
from netprobe.model.result import Result
from netprobe.report.words import listed, plural

MOST_LINES = 6
MOST_NAMES = 8
MOST_PORTS = 12
# With more destinations than this their addresses would hide their names.
MOST_ADDRESSES = 3

End = tuple[str, str]  # destination and the address that was probed
Wire = tuple[tuple[str, Ports], ...]  # the ports of every protocol


def flow_lines(members: Sequence[Result], most: int = MOST_LINES) -> list[str]:
    """Exactly the flows of these results, folded where sources, destinations and ports allow it."""
    lines = [_line(*part) for wire, pairs in _by_wire(members) for part in _products(wire, pairs)]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"and {len(lines) - most + 1} more groups, see -o wide"]


def _by_wire(members: Iterable[Result]) -> Iterator[tuple[Wire, list[tuple[str, End]]]]:
    """Pairs of hosts by the ports that they have in common, in plan order."""
    ranges: dict[tuple[str, End], dict[str, list[PortRange]]] = {}
    for member in members:
        pair = (member.source, (member.destination, member.address))
        of_pair = ranges.setdefault(pair, {}).setdefault(member.protocol, [])
        if member.port is not None and member.end_port is not None:
            of_pair.append((member.port, member.end_port))
    wires: dict[Wire, list[tuple[str, End]]] = {}
    for pair, protocols in ranges.items():
        wire = tuple((name, normalise(parts)) for name, parts in protocols.items())
        wires.setdefault(wire, []).append(pair)
    yield from wires.items()


def _products(
    wire: Wire, pairs: list[tuple[str, End]]
) -> Iterator[tuple[Sequence[str], Sequence[End], Wire]]:
    """The pairs as few "all of these to all of those", a host to itself apart."""
    sources = list(dict.fromkeys(source for source, _ in pairs))
    ends = list(dict.fromkeys(end for _, end in pairs))
    full = [(source, end) for end in ends for source in sources if source != end[0]]
    if len(full) == len(pairs) and set(full) == set(pairs):
        yield sources, ends, wire
        return
    reaching_end: dict[End, list[str]] = {}
    for source, end in pairs:
        reaching_end.setdefault(end, []).append(source)
    by_sources: dict[tuple[str, ...], list[End]] = {}
    for end, names in reaching_end.items():
        by_sources.setdefault(tuple(names), []).append(end)
    for reaching, reached in by_sources.items():
        yield reaching, reached, wire


def _line(sources: Sequence[str], ends: Sequence[End], wire: Wire) -> str:
    left = names_text(sources, MOST_NAMES)
    return f"{left} → {_ends_text(ends)}  {wire_text(wire)}"


def _ends_text(ends: Sequence[End]) -> str:
    if len(ends) <= MOST_ADDRESSES:
        return ", ".join(
            name if name == address else f"{name} ({address})" for name, address in ends
        )
    return names_text(list(dict.fromkeys(name for name, _ in ends)), MOST_NAMES)


def wire_text(wire: Iterable[tuple[str, Ports]]) -> str:
    """``tcp 2379-2380, 6443; udp 53; icmp``."""
    return "; ".join(
        f"{protocol} {_some_ports(ports)}" if ports else protocol for protocol, ports in wire
    )


def _some_ports(ports: Ports) -> str:
    shown = ports_text(ports[:MOST_PORTS])
    rest = len(ports) - MOST_PORTS
    return shown if rest <= 0 else f"{shown} and {rest} more"


@dataclass(slots=True)
class Survey:
    """What many results have in common, without keeping them: for what nobody could look at.

    ``first`` is the first result. The names are lists of what occurs, not a claim about each pair.
    """

    first: Result
    flows: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    destinations: dict[End, None] = field(default_factory=dict)
    requirements: dict[tuple[str, str], Result] = field(default_factory=dict)
    _ports: dict[str, set[PortRange]] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Take one more result in."""
        self.flows += result.port_count
        self.sources[result.source] = None
        self.destinations[result.destination, result.address] = None
        self.requirements.setdefault((result.matrix, result.requirement), result)
        ranges = self._ports.setdefault(result.protocol, set())
        if result.port is not None and result.end_port is not None:
            ranges.add((result.port, result.end_port))

    def text(self) -> str:
        """``worker-1, worker-2 → master-0, master-1  tcp 6443 (4 flows)``."""
        left = names_text(list(self.sources), MOST_NAMES)
        right = _ends_text(list(self.destinations))
        return f"{left} → {right}  {self.ports_text()} ({plural(self.flows, 'flow')})"

    def ports_text(self) -> str:
        """``tcp 2379-2380; udp 53``."""
        ranges = self._ports.items()
        return wire_text((protocol, normalise(some)) for protocol, some in ranges)


def needs(results: Iterable[Result], most: int = 4) -> list[str]:
    """What the flows are needed for: purpose and document row of each requirement."""
    texts = list(dict.fromkeys(need(result) for result in results))
    if len(texts) <= most:
        return texts
    names = list(dict.fromkeys(result.requirement for result in results))
    return [*texts[: most - 1], f"and {len(texts) - most + 1} more ({listed(names, 12)})"]


def need(result: Result) -> str:
    """``etcd replication (deckhouse-nodes, etcd; row: Master to master nodes traffic)``."""
    row = f"; row: {result.row}" if result.row and result.row != result.purpose else ""
    purpose = result.purpose or result.requirement
    return f"{purpose} ({result.matrix}, {result.requirement}{row})"

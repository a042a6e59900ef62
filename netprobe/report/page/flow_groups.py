"""Many flows in few lines: sources, destinations and ports, exactly or as a survey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from netprobe.model.names import names_text
from netprobe.model.ports import PortRange, Ports, count, normalise
from netprobe.model.ports import text as ports_text
from netprobe.model.result import Also, Result
from netprobe.model.run import RunInfo
from netprobe.report.page.page import More
from netprobe.report.page.wording import listed, plural

MOST_LINES = 6
MOST_NAMES = 8
MOST_PORTS = 12
# With more hosts than this their addresses would hide their names.
MOST_ADDRESSES = 6

EndAddress = tuple[str, str]  # destination and the address that was probed
Addresses = Mapping[str, Sequence[str]]  # of each host, those that its probes start from
# Matrix, requirement and purpose, and those of other matrices.
NeedKey = tuple[str, str, str, tuple[Also, ...]]
ProtocolPorts = tuple[tuple[str, Ports], ...]  # the ports of every protocol


def addresses_of(*runs: RunInfo) -> Addresses:
    """Give the addresses of the hosts of these runs; the last run wins."""
    return {host.name: host.addresses for info in runs for host in info.hosts}


def flow_lines(
    members: Sequence[Result], addresses: Addresses, most: int = MOST_LINES
) -> list[str | More]:
    """Exactly the flows of these results, folded where sources, destinations and ports allow it."""
    lines: list[str | More] = [
        f"{_sides_text(sources, ends, addresses)}  {wire_text(wire)}"
        for wire, pairs in _by_wire(members)
        for sources, ends in _split_into_products(pairs)
    ]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], More(f"and {len(lines) - most + 1} more groups")]


def _by_wire(
    members: Iterable[Result],
) -> Iterator[tuple[ProtocolPorts, list[tuple[str, EndAddress]]]]:
    """Group pairs of hosts by the ports that they have in common, in plan order."""
    ranges: dict[tuple[str, EndAddress], dict[str, list[PortRange]]] = {}
    for member in members:
        pair = (member.source, (member.destination, member.address))
        ranges.setdefault(pair, {}).setdefault(member.protocol, []).extend(member.ports)
    wires: dict[ProtocolPorts, list[tuple[str, EndAddress]]] = {}
    for pair, protocols in ranges.items():
        wire = tuple((name, normalise(parts)) for name, parts in protocols.items())
        wires.setdefault(wire, []).append(pair)
    yield from wires.items()


def _split_into_products(
    pairs: list[tuple[str, EndAddress]],
) -> Iterator[tuple[Sequence[str], Sequence[EndAddress]]]:
    """Split the pairs as few "all of these to all of those", a host to itself apart."""
    sources = list(dict.fromkeys(source for source, _ in pairs))
    ends = list(dict.fromkeys(end for _, end in pairs))
    full = [(source, end) for end in ends for source in sources if source != end[0]]
    if len(full) == len(pairs) and set(full) == set(pairs):
        yield sources, ends
        return
    reaching_end: dict[EndAddress, list[str]] = {}
    for source, end in pairs:
        reaching_end.setdefault(end, []).append(source)
    by_sources: dict[tuple[str, ...], list[EndAddress]] = {}
    for end, names in reaching_end.items():
        by_sources.setdefault(tuple(names), []).append(end)
    yield from by_sources.items()


def _sides_text(sources: Sequence[str], ends: Sequence[EndAddress], addresses: Addresses) -> str:
    return f"{_sources_text(sources, ends, addresses)} → {_ends_text(ends)}"


def _sources_text(sources: Sequence[str], ends: Sequence[EndAddress], addresses: Addresses) -> str:
    """Names with the addresses of the families that are probed."""
    if len(sources) > MOST_ADDRESSES:
        return names_text(sources, MOST_NAMES)
    families = list(dict.fromkeys(_family_of(address) for _, address in ends))
    return ", ".join(_source_text(name, addresses.get(name, ()), families) for name in sources)


def _source_text(name: str, addresses: Sequence[str], families: Iterable[int | None]) -> str:
    by_family = [[one for one in addresses if _family_of(one) == family] for family in families]
    known = ", ".join(" or ".join(some) for some in by_family if some)
    return f"{name} ({known})" if known not in ("", name) else name


def _family_of(address: str) -> int | None:
    """4 or 6; None for a name that was not resolved."""
    if ":" in address:
        return 6
    return 4 if address.replace(".", "").isdigit() else None


def _ends_text(ends: Sequence[EndAddress]) -> str:
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


class FlowNames(Struct, kw_only=True):
    """How many flows, and the names that occur in them: no claim about each pair."""

    flows: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    destinations: dict[EndAddress, None] = field(default_factory=dict)
    _ports: dict[str, set[PortRange]] = field(default_factory=dict)

    def add_flows(self, source: str, end: EndAddress, protocol: str, ports: Ports) -> None:
        """Take more flows in: all of these ports, or one flow of a protocol without ports."""
        self.flows += count(ports) or 1
        self.sources[source] = None
        self.destinations[end] = None
        self._ports.setdefault(protocol, set()).update(ports)

    def text(self, addresses: Addresses) -> str:
        """``worker-1 (10.0.0.21) → master-0 (10.0.0.10)  tcp 6443 (1 flow)``."""
        sides = _sides_text(list(self.sources), list(self.destinations), addresses)
        return f"{sides}  {self.ports_text()} ({plural(self.flows, 'flow')})"

    def ports_text(self) -> str:
        """``tcp 2379-2380; udp 53``."""
        ranges = self._ports.items()
        return wire_text((protocol, normalise(some)) for protocol, some in ranges)


class Survey(FlowNames):
    """Counts and names of many results, without the results: for flows that were not tested.

    ``first`` is the first result. ``causes`` has each sentence about flows that were not tested,
    with a hole for the source: what several sources have is listed once.
    """

    first: Result
    causes: dict[str, str] = field(default_factory=dict)
    requirements: dict[tuple[str, str], Result] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Take one more result in."""
        end = (result.destination, result.address)
        self.add_flows(result.source, end, result.protocol, result.ports)
        self.requirements.setdefault((result.matrix, result.requirement), result)


def needs(results: Iterable[Result], most: int = 4) -> list[str]:
    """Give the purpose and document row of each requirement."""
    by_need: dict[NeedKey, Result] = {}
    for result in results:
        by_need.setdefault(need_key(result), result)
    firsts = list(by_need.values())
    texts = list(map(need, firsts[:most]))
    if len(firsts) <= most:
        return texts
    rest = list(dict.fromkeys(result.requirement for result in firsts[most - 1 :]))
    return [*texts[: most - 1], f"and {len(firsts) - most + 1} more ({listed(rest, 12)})"]


def need_key(result: Result) -> NeedKey:
    """Give what tells needs apart: the path MTUs of several overlays are one requirement."""
    return (result.matrix, result.requirement, result.purpose, result.also)


def need(result: Result) -> str:
    """``etcd replication (deckhouse-nodes, etcd; row: Master to master nodes traffic)``.

    What other matrices demand it for follows behind.
    """
    row = f"; row: {result.row}" if result.row and result.row != result.purpose else ""
    purpose = result.purpose or result.requirement
    own = f"{purpose} ({result.matrix}, {result.requirement}{row})"
    return "; ".join((own, *also_texts(result.also)))


def also_texts(rows: Iterable[Also]) -> Iterator[str]:
    """``also: peers (cni-calico, bgp)``, for each other row that demands a flow."""
    for one in rows:
        yield f"also: {one.purpose or one.requirement} ({one.matrix}, {one.requirement})"

"""Hosts and ports of a finding in words: short in its title, all of them in its advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.model.names import names_text
from netprobe.model.ports import PortRange, Ports, normalise, text
from netprobe.model.result import Result

Name = TypeVar("Name")


class Naming(Struct, frozen=True):
    """How many names and ports a text shows; None: all, with numbered names folded.

    Many hosts of one zone are named by it; ``zones`` are those of the hosts that have one.
    """

    most_names: int | None = None
    most_ports: int | None = None
    most_boxes: int | None = None
    zones: Mapping[str, str] = field(default_factory=dict)

    def names(self, names: Sequence[str]) -> str:
        """``a, b, c, d and 36 more``, ``worker-[0-39]``, or ``zone a (40 hosts)``."""
        if self.most_names is None:
            return names_text(names, len(names))
        zones = {self.zones.get(name) for name in names}
        (zone,) = zones if len(zones) == 1 else (None,)
        if zone is None or len(names) == 1:
            shown = ", ".join(names[: self.most_names])
            return _list_with_rest(shown, len(names) - self.most_names)
        whole = len(names) == Counter(self.zones.values())[zone]
        return (
            f"zone {zone} ({len(names)} hosts)" if whole else f"{len(names)} hosts of zone {zone}"
        )

    def ports(self, members: Sequence[Result]) -> str:
        """``tcp 2379-2380; udp 8472; icmp echo``, with the families where one is IPv6."""
        families = {":" in member.address for member in members}
        told = {frozenset({True}): " (IPv6)", frozenset({True, False}): " (IPv4 and IPv6)"}
        return self._list_ports(members) + told.get(frozenset(families), "")

    def _list_ports(self, members: Sequence[Result]) -> str:
        by_protocol: dict[str, list[PortRange]] = {}
        for member in members:
            entries = by_protocol.setdefault(member.protocol, [])
            if member.port is not None and member.end_port is not None:
                entries.append((member.port, member.end_port))
        return "; ".join(
            self._name_ports(name, normalise(some)) for name, some in by_protocol.items()
        )

    def _name_ports(self, protocol: str, ports: Ports) -> str:
        if not ports:
            return "icmp echo" if protocol == "icmp" else protocol
        shown = ports[: self.most_ports]
        return _list_with_rest(f"{protocol} {text(shown)}", len(ports) - len(shown))

    def between(self, members: Sequence[Result]) -> str:
        """Pairs of hosts in words: ``from a to b``, ``between a, b``, ``between a and (b, c)``."""
        two = sides(members)
        if two is not None:
            return "between " + " and ".join(self._name_side(side) for side in two)
        boxes = _cover_pairs(members)
        ((sources, destinations), *more) = boxes
        if len(sources) > 1 and set(sources) == set(destinations) and not more:
            return f"between {self.names(sorted(sources))}"
        shown = [f"from {self.names(a)} to {self.names(b)}" for a, b in boxes[: self.most_boxes]]
        if len(shown) < len(boxes):
            return f"{', '.join(shown)} and between more hosts"
        return " and ".join(shown)

    def rules(self, members: Sequence[Result]) -> str:
        """Ports and pairs of hosts, exactly: ``tcp 53 from a to b, and tcp 80 from a, b to c``."""
        wires = group_by_wire(members).values()
        told = (f"{self.ports(some)} {self.between(some)}" for some in wires)
        return ", and ".join(told)

    def _name_side(self, names: Sequence[str]) -> str:
        """Name one side plainly, a list in brackets: lists have an "and" of their own."""
        shown = self.names(names)
        return f"({shown})" if ", " in shown else shown

    def sent(self, members: Sequence[Result]) -> str:
        """Give the flows of one source in words: ``tcp 53 to dns and udp 8472 to b, c``."""
        ports: dict[str, list[Result]] = {}
        for member in members:
            ports.setdefault(member.destination, []).append(member)
        groups: dict[str, list[str]] = {}
        for destination, some in ports.items():
            groups.setdefault(self.ports(some), []).append(destination)
        told = [f"{what} to {self.names(names)}" for what, names in groups.items()]
        shown = told[: self.most_boxes]
        return f"{', '.join(shown)} and more" if len(shown) < len(told) else " and ".join(told)


SHORT: Final = Naming(most_names=4, most_ports=6, most_boxes=3)
FULL: Final = Naming()


def titled(zones: Mapping[str, str]) -> Naming:
    """Give the naming of titles, where hosts have these zones."""
    return replace(SHORT, zones=zones)


def group_by_wire(members: Sequence[Result]) -> dict[str, list[Result]]:
    """Group results by the ports, in words, that their pairs of hosts have in them."""
    pairs: dict[tuple[str, str], list[Result]] = {}
    for member in members:
        pairs.setdefault((member.source, member.destination), []).append(member)
    groups: dict[str, list[Result]] = {}
    for some in pairs.values():
        groups.setdefault(FULL.ports(sorted(some, key=_port_order)), []).extend(some)
    return groups


def _port_order(member: Result) -> tuple[str, int]:
    return (member.protocol, member.port or 0)


def count_flows(members: Iterable[Result]) -> str:
    """``1 flow``, ``2,040 flows``."""
    flows = sum(member.port_count for member in members)
    return "1 flow" if flows == 1 else f"{flows:,} flows"


def _list_with_rest(shown: str, more: int) -> str:
    return f"{shown} and {more} more" if more > 0 else shown


def addressed(members: Iterable[Result]) -> str:
    """Give every destination with its own address: ``db (10.0.2.10), 192.0.2.1``."""
    ends = unique((member.destination, member.address) for member in members)
    return ", ".join(name if name == address else f"{name} ({address})" for name, address in ends)


def _cover_pairs(members: Sequence[Result]) -> list[tuple[list[str], list[str]]]:
    """The failing pairs as sources × destinations: each is true of every pair of two hosts."""
    pairs = dict.fromkeys((member.source, member.destination) for member in members)
    sources, destinations = unique(a for a, _ in pairs), unique(b for _, b in pairs)
    if all((a, b) in pairs for a in sources for b in destinations if a != b):
        return [(sources, destinations)]
    by_source = _group_by_equal_ends(pairs)
    by_destination = _group_by_equal_ends((b, a) for a, b in pairs)
    if len(by_destination) < len(by_source):
        return [(some, to) for to, some in by_destination]
    return by_source


def _group_by_equal_ends(pairs: Iterable[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Give the first ends that share all their second ends, with those."""
    ends: dict[str, list[str]] = {}
    for one, other in pairs:
        ends.setdefault(one, []).append(other)
    groups: dict[frozenset[str], list[str]] = {}
    for one, others in ends.items():
        groups.setdefault(frozenset(others), []).append(one)
    return [(group, ends[group[0]]) for group in groups.values()]


def sides(members: Sequence[Result]) -> tuple[list[str], list[str]] | None:
    """The two zones, where every host of one fails towards every host of the other and back."""
    reached: dict[str, dict[str, None]] = {}
    for member in members:
        reached.setdefault(member.source, {})[member.destination] = None
    groups = unique(tuple(sorted(ends)) for ends in reached.values())
    if len(groups) != 2:
        return None
    left, right = groups
    crossed = {source: tuple(sorted(ends)) for source, ends in reached.items()}
    if crossed == dict.fromkeys(right, left) | dict.fromkeys(left, right) and not {*left} & {
        *right
    }:
        return list(right), list(left)
    return None


def unique(names: Iterable[Name]) -> list[Name]:
    return list(dict.fromkeys(names))

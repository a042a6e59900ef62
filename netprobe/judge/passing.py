"""What passes beside the failures: it tells one rule of a firewall from another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netprobe.model.ports import PortRange
from netprobe.model.result import Result

Pair = tuple[str, str]  # source and destination
FlowEnds = tuple[str, str, str]  # with the address that was probed: families differ
ProtocolPort = tuple[str, PortRange | None]
Zones = Mapping[str, str]  # of the hosts that have one


def way_of(result: Result) -> FlowEnds:
    """Give the hosts and the address of a result."""
    return (result.source, result.destination, result.address)


def port_of(result: Result) -> ProtocolPort:
    """Give the protocol of a result and its range of ports, None where it has none."""
    if result.port is None or result.end_port is None:
        return result.protocol, None
    return result.protocol, (result.port, result.end_port)


class Passing:
    """What passes, as far as it says something of the failures."""

    def __init__(self, failures: Sequence[Result], passes: Iterable[Result], zones: Zones) -> None:
        wanted = set(map(way_of, failures))
        self.ways: dict[FlowEnds, list[ProtocolPort]] = {}
        self.zones: set[tuple[str | None, str | None]] = set()
        self.sources: set[str] = set()
        self.destinations: set[str] = set()
        for one in passes if wanted else ():
            # That a port is closed for others, as it must be, shows no way.
            if one.expect == "denied" or one.source == one.destination:
                continue
            way = way_of(one)
            if way in wanted:
                self.ways.setdefault(way, []).append(port_of(one))
            self.sources.add(one.source)
            self.destinations.add(one.destination)
            if zones:
                self.zones.add((zones.get(one.source), zones.get(one.destination)))

    def has_any(self, ports: Iterable[ProtocolPort], ways: Iterable[FlowEnds]) -> bool:
        """Tell whether one of these ports passes on one of these ways."""
        wanted = list(ports)
        passing = (one for way in ways for one in self.ways.get(way, ()))
        return any(_have_common(one, other) for one in passing for other in wanted)


def _have_common(one: ProtocolPort, other: ProtocolPort) -> bool:
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return one == other
    return one[1][0] <= other[1][1] and other[1][0] <= one[1][1]

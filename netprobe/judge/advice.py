"""What a finding is called, and what its reader should do: sentences a firewall team can act on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from netprobe.judge import mtu
from netprobe.model.ports import PortRange, Ports, normalise, text
from netprobe.model.result import Place, Result

Name = TypeVar("Name")

# The network lets it through, and the two ends will not understand each other.
MISMATCHES = {
    "tls-not-expected": "speaks TLS where plaintext is expected",
    "plaintext-not-tls": "does not speak TLS, which is expected",
}
NAMES_SHOWN = 4
PORTS_SHOWN = 6
BOXES_SHOWN = 3


def kind_and_title(members: Sequence[Result], first: Result) -> tuple[str, str]:
    """The common factor of the members, and one line that says it; ``first`` speaks for them."""
    sources = _unique(member.source for member in members)
    destinations = _unique(member.destination for member in members)
    what = ports_text(members)
    if first.verdict == "exposed":
        return "exposed", f"{what} of {_names(destinations)} must not answer, and does"
    if first.where == ("host",):
        return "host", f"{_names(destinations)} ({first.address}) is down or not reachable at all"
    if first.reason in MISMATCHES:
        return "service", f"{what} of {_names(destinations)} {MISMATCHES[first.reason]}"
    if first.reason == "name-not-resolved":
        return "name", f"{_names(sources)} cannot resolve {first.address}"
    if first.where == ("source",):
        return "source", f"{_names(sources)} itself stops {_sent(members)}"
    if first.reason in mtu.TITLES:
        return "mtu", mtu.title(first, _between(members))
    if first.rejected_by is not None and first.where == ("path",):
        return "router", f"{first.rejected_by} {_refuses(first, what)} {_between(members)}"
    kind = _kind(sources, destinations)
    both = " in both directions" if _sides(members) is not None else ""
    return kind, f"{what} {_between(members)} is blocked{both}"


def _refuses(first: Result, what: str) -> str:
    if first.reason == "net-unreach":
        return f"has no route for {what}"
    return f"rejects {what}"


def _kind(sources: Sequence[str], destinations: Sequence[str]) -> str:
    if len(sources) == 1 and len(destinations) == 1:
        return "pair"
    if len(destinations) == 1:
        return "destination"
    return "source" if len(sources) == 1 else "zone"


def advice(members: Sequence[Result], first: Result) -> str:
    """What to do, from the places that are still possible; ``first`` speaks for the members."""
    what = ports_text(members)
    ends = (
        _names(_unique(m.source for m in members)),
        _names(_unique(m.destination for m in members)),
    )
    if first.verdict == "exposed":
        return f"Bind the service on {ends[1]} to loopback only, or close {what} in its firewall."
    if first.reason == "name-not-resolved":
        return f"Create the DNS record of {first.address}, or correct the resolver of {ends[0]}."
    if first.reason == "net-unreach" and first.rejected_by is not None:
        return f"Give {first.rejected_by} a route to {ends[1]} ({first.address})."
    if first.reason == "no-buffers":
        return (
            f"On {ends[0]}, raise net.ipv4.neigh.default.gc_thresh3 (ipv6 likewise), or see which "
            "queue drops (tc -s qdisc)."
        )
    if first.reason == "reverse-path-filter":
        return (
            f"On {ends[1]}, route the answers to {ends[0]} out by the device that the requests "
            "come in by, or set its rp_filter to 2 (loose)."
        )
    if first.reason in mtu.TITLES:
        return mtu.advice(first, _between(members))
    rule = f"{what} {_between(members)}"
    return " ".join(_ADVICE[place].format(rule=rule, source=ends[0], destination=ends[1],
                                          address=first.address, router=first.rejected_by or
                                          "the firewall on the way")
                    for place in _order(first.where))  # fmt: skip


_ADVICE: dict[Place, str] = {
    "path": "Allow {rule} on {router}.",
    "destination": "Allow {rule} in the firewall of {destination} itself.",
    "return-path": "Let the answers of {destination} back to {source}: routes and firewalls of the "
    "way back.",
    "source": "Check the firewall and the routing table of {source}.",
    "host": "Check that {destination} runs and has the address {address}.",
    "service": "Check what listens on {destination} and on which address.",
}

_RANK: tuple[Place, ...] = ("path", "destination", "return-path", "service", "host", "source")


def _order(places: Iterable[Place]) -> list[Place]:
    """The likeliest first."""
    return sorted(places, key=_RANK.index)


def ports_text(members: Sequence[Result]) -> str:
    """``tcp 2379-2380; udp 8472; icmp``."""
    by_protocol: dict[str, list[PortRange]] = {}
    for member in members:
        entries = by_protocol.setdefault(member.protocol, [])
        if member.port is not None and member.end_port is not None:
            entries.append((member.port, member.end_port))
    return "; ".join(_entries(name, normalise(some)) for name, some in by_protocol.items())


def _entries(protocol: str, ports: Ports) -> str:
    if not ports:
        return protocol
    rest = len(ports) - PORTS_SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return f"{protocol} {text(ports[:PORTS_SHOWN])}{more}"


def _between(members: Sequence[Result]) -> str:
    """Who is cut off from whom: ``from a to b``, ``between a, b``, ``between zone and zone``."""
    sides = _sides(members)
    if sides is not None:
        return f"between {_names(sides[0])} and {_names(sides[1])}"
    boxes = _boxes(members)
    ((sources, destinations), *more) = boxes
    if len(sources) > 1 and set(sources) == set(destinations) and not more:
        return f"between {_names(sorted(sources))}"
    shown = [f"from {_names(a)} to {_names(b)}" for a, b in boxes[:BOXES_SHOWN]]
    rest = len(boxes) - BOXES_SHOWN
    if rest > 0:
        return f"{', '.join(shown)} and between more hosts"
    return " and ".join(shown)


def _boxes(members: Sequence[Result]) -> list[tuple[list[str], list[str]]]:
    """The failing pairs as sources × destinations: each is true of every pair of two hosts."""
    pairs = dict.fromkeys((member.source, member.destination) for member in members)
    sources, destinations = _unique(a for a, _ in pairs), _unique(b for _, b in pairs)
    if all((a, b) in pairs for a in sources for b in destinations if a != b):
        return [(sources, destinations)]
    by_source, by_destination = _alike(pairs), _alike((b, a) for a, b in pairs)
    if len(by_destination) < len(by_source):
        return [(some, to) for to, some in by_destination]
    return by_source


def _alike(pairs: Iterable[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """The first ends that share all their second ends, with those."""
    ends: dict[str, list[str]] = {}
    for one, other in pairs:
        ends.setdefault(one, []).append(other)
    groups: dict[frozenset[str], list[str]] = {}
    for one, others in ends.items():
        groups.setdefault(frozenset(others), []).append(one)
    return [(group, ends[group[0]]) for group in groups.values()]


def _sent(members: Sequence[Result]) -> str:
    """What goes where, of one source: ``tcp 53 to dns and udp 8472 to b, c``."""
    ports: dict[str, list[Result]] = {}
    for member in members:
        ports.setdefault(member.destination, []).append(member)
    groups: dict[str, list[str]] = {}
    for destination, some in ports.items():
        groups.setdefault(ports_text(some), []).append(destination)
    shown = [f"{what} to {_names(names)}" for what, names in list(groups.items())[:BOXES_SHOWN]]
    if len(groups) > BOXES_SHOWN:
        return f"{', '.join(shown)} and more"
    return " and ".join(shown)


def _sides(members: Sequence[Result]) -> tuple[list[str], list[str]] | None:
    """The two zones, where every host of one fails towards every host of the other and back."""
    reached: dict[str, dict[str, None]] = {}
    for member in members:
        reached.setdefault(member.source, {})[member.destination] = None
    groups = _unique(tuple(sorted(ends)) for ends in reached.values())
    if len(groups) != 2:
        return None
    left, right = groups
    crossed = {source: tuple(sorted(ends)) for source, ends in reached.items()}
    two_sided = all(crossed.get(name) == left for name in right) and all(
        crossed.get(name) == right for name in left
    )
    return (
        (list(right), list(left)) if two_sided and set(left) | set(right) == set(reached) else None
    )


def _unique(names: Iterable[Name]) -> list[Name]:
    return list(dict.fromkeys(names))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"

"""What a firewall stops → one group for each of its rules.

A rule shows only where the matrix requires something. So two kinds of rules are told apart: those
that let nothing through between two hosts, whatever is required there; and those that stop some
ports while others pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.judge.naming import group_by_wire
from netprobe.judge.places import split_by_place
from netprobe.judge.walls import (
    DeadPair,
    FlowEnds,
    Pair,
    Passing,
    ProtocolPort,
    Zones,
    find_dead_pairs,
    port_of,
    way_of,
)
from netprobe.model.ports import find_near, union_by_key
from netprobe.model.reasons import find_reason
from netprobe.model.result import FILTERED, Result

_OWN_STOPS = ("local-firewall", "no-route")

FlowKey = tuple[str, ...]  # a way with matrix, requirement and protocol
FailureKey = tuple[FlowEnds, bool]  # a way, and whether the failure decides


def is_stopped_by_rule(result: Result) -> bool:
    """Tell whether a firewall, other than the source's own, explains this failure."""
    filtered = result.verdict == "blocked" and result.state in FILTERED
    return filtered and result.where != ("source",) and find_reason(result.reason).rule_causes


def is_own_stop(result: Result) -> bool:
    """Tell whether the source itself does not let it out: by its firewall, or without a route."""
    return result.reason in _OWN_STOPS and result.where == ("source",)


class Stopped(Struct, frozen=True):
    """Failures with one cause; ``everything``: nothing else gets through there.

    ``proof``: the member that shows the cause of all, where one does.
    """

    members: list[Result]
    everything: bool = False
    proof: Result | None = None


def group_by_rule(
    failures: Sequence[Result], passes: Iterable[Result], zones: Zones, *, some_ports: bool
) -> list[Stopped]:
    """Group the failures that one rule explains: all of a group decide, or none does.

    ``some_ports``: what else gets through between their hosts was not asked.
    """
    passing = Passing(failures, passes, zones)
    deciding = [one for one in failures if one.decides]
    others = [one for one in failures if not one.decides]
    groups: list[Stopped] = []
    for some in (deciding, others):
        dead = {} if some_ports else find_dead_pairs(some, passing, zones)
        groups += _group_alike(some, passing, dead)
    return groups


def check_whole_pairs(rules: Iterable[Stopped], failures: Iterable[Result]) -> list[Stopped]:
    """Give the rules, of which those stop everything that have all failures of their pairs.

    What has another cause there, as a firewall of the source, is in another finding.
    """
    sizes = Counter(map(_key_of_failure, failures))
    return [
        replace(rule, everything=False) if rule.everything and _lacks_any(rule, sizes) else rule
        for rule in rules
    ]


def _lacks_any(rule: Stopped, sizes: Mapping[FailureKey, int]) -> bool:
    own = Counter(map(_key_of_failure, rule.members))
    return any(count < sizes.get(key, 0) for key, count in own.items())


def _key_of_failure(result: Result) -> FailureKey:
    return way_of(result), result.decides


def _group_alike(
    failures: Sequence[Result], passing: Passing, dead: Mapping[Pair, DeadPair]
) -> Iterator[Stopped]:
    groups: dict[object, list[Result]] = {}
    rest = []
    for result in failures:
        rule, ways = dead.get((result.source, result.destination), (None, ()))
        if way_of(result) in ways:
            groups.setdefault(rule, []).append(result)
        else:
            rest.append(result)
    for joined in _join_equal_ports(groups):
        for group in _split_by_refusal(joined):
            parts = sorted(split_by_place(group), key=len)
            # What is stopped elsewhere is of another rule, which has other flows, too.
            yield Stopped(parts.pop(), everything=not parts)
            rest += [one for part in parts for one in part]
    for alike in _split_by_reason(rest):
        for group in _split_by_ports(alike, passing):
            yield from map(Stopped, split_by_place(group))


def _join_equal_ports(groups: Mapping[object, list[Result]]) -> list[list[Result]]:
    """Join groups in which the same ports fail between all hosts: the ports are the rule."""
    joined: dict[object, list[Result]] = {}
    for rule, group in groups.items():
        wires = group_by_wire(group)
        joined.setdefault(next(iter(wires)) if len(wires) == 1 else rule, []).extend(group)
    return list(joined.values())


def _split_by_refusal(failures: Sequence[Result]) -> list[list[Result]]:
    """Split the sources that somebody refused from those that heard nothing at all.

    A router rations its errors for each source by itself: one that refuses says so to every source.
    """
    refused = {one.source for one in failures if one.rejected_by is not None}
    heard = [one for one in failures if one.source in refused]
    silent = [one for one in failures if one.source not in refused]
    return [some for some in (heard, silent) if some]


def _split_by_reason(failures: Sequence[Result]) -> list[list[Result]]:
    """Split by what became of the packets: one rule drops, rejects or resets."""
    rejecters = find_rejecters(failures)
    groups: dict[str, list[Result]] = {}
    for one in failures:
        groups.setdefault(speaker_of(one, rejecters).reason, []).append(one)
    return list(groups.values())


def find_rejecters(failures: Iterable[Result]) -> dict[FlowKey, Result]:
    """Give for every flow of which a router on the way rejected a port that failure."""
    return {_flow_of(one): one for one in failures
            if one.where == ("path",) and one.rejected_by is not None}  # fmt: skip


def speaker_of(result: Result, rejecters: Mapping[FlowKey, Result]) -> Result:
    """Give the failure that says why this one failed, most often itself.

    Routers send about one ICMP error a second (docs/network-facts.md, section 4): if a router
    rejected some ports of a requirement, silence on the others most likely has the same cause.
    """
    if result.reason == "no-response" and "path" in result.where:
        return rejecters.get(_flow_of(result), result)
    return result


def _flow_of(result: Result) -> FlowKey:
    return (result.matrix, result.requirement, *way_of(result), result.protocol)


def _split_by_ports(failures: Sequence[Result], passing: Passing) -> list[list[Result]]:
    """Keep ports together that fail between the same hosts, whatever their requirements.

    They are one rule, too, where some of these ports are not required between all of these hosts:
    nothing of them passes there.
    """
    whole = _join_ranges(failures)
    pairs: dict[ProtocolPort, set[Pair]] = {}
    for one in failures:
        pairs.setdefault(whole[id(one)], set()).add((one.source, one.destination))
    keys = {port: frozenset(some) for port, some in pairs.items()}
    groups: dict[frozenset[Pair], list[Result]] = {}
    for one in failures:
        groups.setdefault(keys[whole[id(one)]], []).append(one)
    ways: dict[Pair, set[FlowEnds]] = {}
    for one in failures:
        ways.setdefault((one.source, one.destination), set()).add(way_of(one))
    joined: dict[frozenset[Pair], list[Result]] = {}
    for hosts in sorted(groups, key=len, reverse=True):
        ports = {whole[id(one)] for one in groups[hosts]}
        around = (
            more
            for more in joined
            if hosts < more
            and not passing.has_any(ports, (way for pair in more - hosts for way in ways[pair]))
        )
        joined.setdefault(next(around, hosts), []).extend(groups[hosts])
    return list(joined.values())


def _join_ranges(failures: Sequence[Result]) -> dict[int, ProtocolPort]:
    """Give each failure, by its id, the range of failing ports of its way that it is a part of.

    Evidence that differs a little cuts a range in pieces, and elsewhere in others.
    """
    joined = union_by_key(((way_of(one), one.protocol), one.ports) for one in failures)
    found: dict[int, ProtocolPort] = {}
    for one in failures:
        protocol, ports = port_of(one)
        ranges = joined.get((way_of(one), protocol), ())
        around = find_near(ranges, (ports,)) if ports else ()
        found[id(one)] = (protocol, around[0] if around else None)
    return found

"""Failures → findings: results that share a likely cause are folded into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from netprobe.judge.advice import advice, kind_and_title
from netprobe.judge.naming import Naming, count_flows, titled
from netprobe.judge.places import common_places
from netprobe.judge.rules import (
    Stopped,
    find_rejecters,
    group_by_rule,
    is_stopped_by_rule,
    speaker_of,
)
from netprobe.judge.walls import Zones
from netprobe.model.reasons import find_reason
from netprobe.model.result import Finding, Result

# One port, and one pair of hosts: a cause does not know requirements.
PortKey = tuple[str, int | None, int | None]
SourcePair = tuple[str, str, str]


def fold(
    results: Iterable[Result], passes: Iterable[Result] = (), zones: Zones | None = None
) -> tuple[Finding, ...]:
    """Fold failures with one likely cause into findings, and number them.

    Those that decide the exit status come first, of them what is blocked or exposed, in the order
    of their first members. A failure is blocked or exposed, a service that wrongly speaks TLS or
    wrongly does not, or a port that another run of netprobe holds. ``passes`` are the passes of the
    run, which tell whether nothing gets through between two hosts; they are read only where a
    firewall stops something. ``zones`` are those of the hosts that have one.
    """
    failures = [result for result in results if _is_worth_a_finding(result)]
    rejecters = find_rejecters(failures)
    stopped: list[Result] = []
    causes: dict[tuple[object, ...], list[Result]] = {}
    for result in failures:
        speaker = speaker_of(result, rejecters)
        if is_stopped_by_rule(speaker):
            stopped.append(result)
        else:
            causes.setdefault(_cause_key(speaker), []).append(result)
    parts = [Stopped(part) for members in causes.values() for part in _split_by_pairs(members)]
    rules = group_by_rule(stopped, passes, zones or {}) if stopped else []
    naming = titled(zones or {})
    findings = sorted(
        (_make_finding(one, naming) for one in (*parts, *rules)), key=_order_of_finding
    )
    return tuple(replace(one, number=number) for number, one in enumerate(findings, 1))


def _is_worth_a_finding(result: Result) -> bool:
    return result.verdict in ("blocked", "exposed") or find_reason(result.reason).always_found


def _order_of_finding(finding: Finding) -> tuple[bool, bool, tuple[int, int, int]]:
    decides = any(member.decides for member in finding.members)
    failed = finding.verdict in ("blocked", "exposed")
    return (not decides, not failed, finding.members[0].order)


def _cause_key(result: Result) -> tuple[object, ...]:
    """Give the key that two failures with one cause share, where no firewall on the way is it."""
    shares = find_reason(result.reason).shares
    if shares == "address":
        return (result.verdict, result.reason, result.decides, result.address)
    common = (result.verdict, result.reason, result.where, result.rejected_by, result.decides)
    if shares == "reason":
        return common
    if shares == "next-hop":
        return (*common, result.source, result.next_hop)
    if shares == "name":
        return (*common, result.source, result.address)
    if result.where == ("source",):
        return (*common, result.source)
    if shares == "holder":
        return (*common, result.destination, result.holder)
    return (*common, result.path_mtu_bytes, result.needed_mtu_bytes)


def _split_by_pairs(members: Sequence[Result]) -> list[list[Result]]:
    """Split one cause's failures by which pairs of hosts they hit: equal pairs stay together."""
    first = members[0]
    shared = find_reason(first.reason).shares in ("address", "next-hop", "holder", "reason")
    if shared or first.where == ("source",):
        return [list(members)]
    pairs: dict[PortKey, set[SourcePair]] = {}
    for member in members:
        pairs.setdefault(_port_key(member), set()).add(_pair_key(member))
    groups: dict[frozenset[SourcePair], list[Result]] = {}
    for member in members:
        groups.setdefault(frozenset(pairs[_port_key(member)]), []).append(member)
    return list(groups.values())


def _port_key(result: Result) -> PortKey:
    return (result.protocol, result.port, result.end_port)


def _pair_key(result: Result) -> SourcePair:
    return (result.source, result.destination, result.address)


def _make_finding(cause: Stopped, naming: Naming) -> Finding:
    members = sorted(cause.members, key=_place_in_plan)
    # A member with a rejecter speaks for those that heard nothing, and what is proven for the rest.
    first = min(members, key=lambda member: (member.rejected_by is None, len(member.where)))
    kind, title = kind_and_title(members, first, naming, everything=cause.everything)
    hops = {member.last_hop for member in members}
    routers = {member.rejected_by for member in members} - {None}
    return Finding(
        kind=kind,
        verdict=first.verdict,
        title=f"{title} ({count_flows(members)})",
        advice=advice(members, first),
        where=common_places(members),
        members=tuple(members),
        rejected_by=first.rejected_by if len(routers) == 1 else None,
        last_hop=first.last_hop if len(hops) == 1 else None,
    )


def _place_in_plan(member: Result) -> tuple[tuple[int, int, int], str, int]:
    return (member.order, member.address, member.port or 0)

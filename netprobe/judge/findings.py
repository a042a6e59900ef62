"""Failures → findings: results that share a likely cause are folded into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netprobe.judge.advice import MISMATCHES, advice, kind_and_title
from netprobe.model.result import Finding, Result

# What one port between one pair of hosts is: the requirement does not matter to a firewall.
PortKey = tuple[str, int | None, int | None]
SourcePair = tuple[str, str, str]


def fold(results: Iterable[Result]) -> tuple[Finding, ...]:
    """Fold what is blocked or exposed, and services that speak TLS where they should not, or do
    not where they should; the order of findings is that of their first members."""
    failures = [result for result in results if _tells(result)]
    rejecters = {_flow(result): result for result in failures if result.where == ("path",)
                 and result.rejected_by is not None}  # fmt: skip
    causes: dict[tuple[object, ...], list[Result]] = {}
    for result in failures:
        like = rejecters.get(_flow(result)) if _may_be_rejected(result) else None
        causes.setdefault(_cause(like or result), []).append(result)
    findings = [_finding(part) for members in causes.values() for part in _parts(members)]
    return tuple(sorted(findings, key=_place))


def _tells(result: Result) -> bool:
    return result.verdict in ("blocked", "exposed") or result.reason in MISMATCHES


def _flow(result: Result) -> tuple[str, ...]:
    ends = (result.source, result.destination, result.address)
    return (result.matrix, result.requirement, *ends, result.protocol)


def _may_be_rejected(result: Result) -> bool:
    """Routers may say no about once a second only (network-facts section 4): where one rejected
    some ports of a requirement, silence on its other ports has most likely the same cause."""
    return result.reason == "no-response" and "path" in result.where


def _place(finding: Finding) -> tuple[bool, tuple[int, int, int]]:
    """What decides the exit status comes first; then the order of the plan."""
    decides = any(member.decides for member in finding.members)
    return (not decides, finding.members[0].order)


def _cause(result: Result) -> tuple[object, ...]:
    """What must be equal for two failures to have one cause."""
    common = (result.verdict, result.reason, result.where, result.rejected_by, result.decides)
    if result.where == ("host",):
        return (*common, result.address)
    if result.reason == "name-not-resolved":
        return (*common, result.source, result.address)
    if result.where == ("source",):
        return (*common, result.source)
    return (*common, result.path_mtu_bytes, result.needed_mtu_bytes)


def _parts(members: Sequence[Result]) -> list[list[Result]]:
    """Split one cause's failures by which pairs of hosts they hit: equal pairs stay together."""
    if members[0].where in (("host",), ("source",)):
        return [list(members)]
    pairs: dict[PortKey, set[SourcePair]] = {}
    for member in members:
        pairs.setdefault(_port(member), set()).add(_pair(member))
    groups: dict[frozenset[SourcePair], list[Result]] = {}
    for member in members:
        groups.setdefault(frozenset(pairs[_port(member)]), []).append(member)
    return list(groups.values())


def _port(result: Result) -> PortKey:
    return (result.protocol, result.port, result.end_port)


def _pair(result: Result) -> SourcePair:
    return (result.source, result.destination, result.address)


def _finding(members: list[Result]) -> Finding:
    # A member with a rejecter speaks for those that heard nothing.
    first = next((member for member in members if member.rejected_by), members[0])
    kind, title = kind_and_title(members, first)
    hops = {member.last_hop for member in members}
    return Finding(
        kind=kind,
        verdict=first.verdict,
        title=title,
        advice=advice(members, first),
        where=first.where,
        members=tuple(members),
        rejected_by=first.rejected_by,
        last_hop=first.last_hop if len(hops) == 1 else None,
    )

"""Failures → findings: results that share a likely cause are folded into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netprobe.judge.advice import OF_ADDRESS, TELLING_REASONS, advice, kind_and_title
from netprobe.model.result import Finding, Result

# One port, and one pair of hosts: a firewall does not know requirements.
PortKey = tuple[str, int | None, int | None]
SourcePair = tuple[str, str, str]


def fold(results: Iterable[Result]) -> tuple[Finding, ...]:
    """Fold failures with one likely cause into findings, in the order of their first members.

    A failure is blocked or exposed, a service that wrongly speaks TLS or wrongly does not, or a
    port that another run of netprobe holds.
    """
    failures = [result for result in results if _is_worth_a_finding(result)]
    rejecters = {_flow_key(result): result for result in failures if result.where == ("path",)
                 and result.rejected_by is not None}  # fmt: skip
    causes: dict[tuple[object, ...], list[Result]] = {}
    for result in failures:
        like = rejecters.get(_flow_key(result)) if _may_be_rejected(result) else None
        causes.setdefault(_cause_key(like or result), []).append(result)
    findings = [
        _make_finding(part) for members in causes.values() for part in _split_by_pairs(members)
    ]
    return tuple(sorted(findings, key=_order_of_finding))


def _is_worth_a_finding(result: Result) -> bool:
    return result.verdict in ("blocked", "exposed") or result.reason in TELLING_REASONS


def _flow_key(result: Result) -> tuple[str, ...]:
    ends = (result.source, result.destination, result.address)
    return (result.matrix, result.requirement, *ends, result.protocol)


def _may_be_rejected(result: Result) -> bool:
    """Tell whether this silence may be a rejection whose ICMP error was rate-limited.

    Routers send about one ICMP error a second (docs/network-facts.md, section 4). If a router
    rejected some ports of a requirement, silence on the others most likely has the same cause.
    """
    return result.reason == "no-response" and "path" in result.where


def _order_of_finding(finding: Finding) -> tuple[bool, tuple[int, int, int]]:
    """Sort key: findings that decide the exit status first, then in the order of the plan."""
    decides = any(member.decides for member in finding.members)
    return (not decides, finding.members[0].order)


def _cause_key(result: Result) -> tuple[object, ...]:
    """Give the key that two failures with one cause share."""
    common = (result.verdict, result.reason, result.where, result.rejected_by, result.decides)
    if result.reason in OF_ADDRESS:
        return (*common, result.address)
    if result.next_hop is not None:
        return (*common, result.source, result.next_hop)
    if result.reason == "name-not-resolved":
        return (*common, result.source, result.address)
    if result.where == ("source",):
        return (*common, result.source)
    if result.holder is not None:
        return (*common, result.destination, result.holder)
    return (*common, result.path_mtu_bytes, result.needed_mtu_bytes)


def _split_by_pairs(members: Sequence[Result]) -> list[list[Result]]:
    """Split one cause's failures by which pairs of hosts they hit: equal pairs stay together."""
    first = members[0]
    one = first.reason in OF_ADDRESS or first.next_hop is not None or first.holder is not None
    if one or first.where == ("source",):
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


def _make_finding(members: list[Result]) -> Finding:
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

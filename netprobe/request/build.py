"""A run's findings, or a plan before any packet → the fewest rules that open exactly that."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, NamedTuple

from netprobe.model.firewall import (
    PERMANENT,
    Action,
    Enforcer,
    FirewallRequest,
    FirewallRule,
    RuleEnd,
    RuleNeed,
    Unmended,
)
from netprobe.model.inventory import Family
from netprobe.model.ports import Ports, intersect, normalise
from netprobe.model.ports import count as count_ports
from netprobe.model.result import Finding, Result
from netprobe.model.run import RunInfo
from netprobe.request.boxes import Box, Pair, cover
from netprobe.request.mends import (
    enforcers_of,
    is_of_answers,
    may_mend,
    speaker_of,
    word_doubts,
    word_evidence,
)
from netprobe.request.safe import digest_of

By = Literal["device", "finding", "requirement"]
BY: tuple[By, ...] = ("device", "finding", "requirement")
INCLUDE = ("exposed", "inconclusive")

# Stands for the one flow of a protocol that has no ports.
PORTLESS: Ports = ((0, 0),)
# Between host and address of a destination; no name holds it.
_AT = "\0"
# Verdicts of results that no finding holds and no rule is asked for, and what to do about them.
_LEFT_OUT = {
    "inconclusive": "The evidence allows both. Run again with agents at both ends, or ask all the "
    "same: --include inconclusive.",
    "not-tested": "Nobody could look: see what the run says of these flows.",
}
_UNKNOWN_ADDRESS = "{host} has no address of this family in the run: which one does it send from?"
_UNRESOLVED = "{host} is known by name only ({address}), and rules need addresses"
_SEVERAL = "{host} has several addresses, and its kernel chooses: all of them are asked for"


@dataclass(frozen=True, slots=True)
class RequestWishes:
    """What the user wants; ``at`` keeps the rules of one place, or of one router by its address."""

    by: By = "device"
    include: frozenset[str] = frozenset()
    at: str | None = None
    stateless: bool = False
    one_per_row: bool = False
    until: str = PERMANENT
    ticket: Mapping[str, str] = field(default_factory=dict)
    into: Mapping[str, str] = field(default_factory=dict)


class AskedFlow(NamedTuple):
    """One flow that somebody must open (or close), with all that decides which rule it joins."""

    source: str
    destination: str
    address: str
    protocol: str
    ports: Ports
    enforcers: tuple[Enforcer, ...]
    need: RuleNeed
    action: Action = "allow"
    answers: bool = False
    finding: int = 0
    # What a run saw of it; None before any run.
    result: Result | None = None


class _RuleKey(NamedTuple):
    """What flows of one rule have in common; ``part`` is what ``--by`` keeps apart."""

    action: Action
    enforcers: tuple[Enforcer, ...]
    answers: bool
    family: Family
    protocol: str
    part: tuple[object, ...]


def request_of_run(
    info: RunInfo,
    findings: Sequence[Finding],
    doubtful: Iterable[Result],
    path: str,
    wishes: RequestWishes,
) -> FirewallRequest:
    """Ask for what a run found blocked; ``findings`` are those of its report, in their order.

    ``doubtful`` are its results without a finding, which are asked for only where it is wished.
    """
    asked: list[AskedFlow] = []
    results: list[Result] = []
    unmended: list[Unmended] = []
    documents = documents_of(info)
    for finding in findings:
        found = list(_ask_for_finding(finding, wishes))
        members = [one for one in finding.members if not one.is_excused]
        if found:
            asked += found
            results += members if _is_wished(found[0].enforcers, wishes) else []
        elif members and (finding.verdict != "exposed" or "exposed" in wishes.include):
            flows = sum(one.port_count for one in members)
            unmended.append(Unmended(finding.title, finding.advice, flows))
    for one in _choose_doubtful(doubtful, unmended, wishes):
        asking = _ask_for_result(one, 0, enforcers_of(one))
        asked.append(asking)
        if _is_wished(asking.enforcers, wishes):
            results.append(one)
    asked = [one._replace(need=_add_document(one.need, documents)) for one in asked]
    return finish_request(info, asked, unmended, path, wishes, tuple(results))


def _is_wished(enforcers: Iterable[Enforcer], wishes: RequestWishes) -> bool:
    """Tell whether it is for the place that ``--at`` names."""
    at = wishes.at
    return at is None or any(at in (who.place, who.router) for who in enforcers)


def documents_of(info: RunInfo) -> Mapping[str, str]:
    """Give the title of the document that each matrix was written from."""
    return {one.name: one.document.get("title", "") for one in info.matrices}


def _add_document(need: RuleNeed, documents: Mapping[str, str]) -> RuleNeed:
    return replace(need, document=documents.get(need.matrix, ""))


def _choose_doubtful(
    doubtful: Iterable[Result], unmended: list[Unmended], wishes: RequestWishes
) -> Iterator[Result]:
    """Give the inconclusive results that are asked for; count what is left out."""
    left: dict[str, int] = {}
    for one in doubtful:
        wished = one.verdict == "inconclusive" and "inconclusive" in wishes.include
        if wished and not one.is_excused and may_mend(one) and enforcers_of(one):
            yield one
        elif one.verdict in _LEFT_OUT:
            left[one.verdict] = left.get(one.verdict, 0) + one.port_count
    for verdict, flows in left.items():
        unmended.append(Unmended(f"not asked for: {verdict}", _LEFT_OUT[verdict], flows))


def finish_request(
    info: RunInfo,
    asked: Iterable[AskedFlow],
    unmended: Iterable[Unmended],
    of: str,
    wishes: RequestWishes,
    results: tuple[Result, ...] = (),
) -> FirewallRequest:
    """Make the rules, and name the request by them: on a device two requests never mix theirs.

    Rules that are left out keep their numbers, so that tickets and devices name the same ones.
    """
    addresses = {host.name: host.addresses for host in info.hosts}
    rules, unknown = _make_rules(asked, addresses, wishes)
    return FirewallRequest(
        id=digest_of(map(_word_match, rules)),
        of=of,
        started_at=info.started_at,
        matrices=info.matrices,
        roles={host.name: host.roles for host in info.hosts},
        rules=tuple(rule for rule in rules if _is_wished(rule.enforcers, wishes)),
        unmended=(*unmended, *unknown),
        asked=results,
        ticket=wishes.ticket,
        into=wishes.into,
        one_per_row=wishes.one_per_row,
    )


def _word_match(rule: FirewallRule) -> str:
    """Give what a rule lets through and where, without what is only told about it."""
    parts = (rule.id, rule.action, rule.protocol, rule.ports, rule.sources, rule.destinations)
    return repr((*parts, rule.answers, rule.enforcers))


def _ask_for_finding(finding: Finding, wishes: RequestWishes) -> Iterator[AskedFlow]:
    """Ask for the members of a finding; nothing where no rule would help."""
    speaker = speaker_of(finding)
    if finding.verdict == "exposed":
        if "exposed" in wishes.include:
            closing = (Enforcer("destination"),)
            yield from (
                _ask_for_result(one, finding.number, closing, action="deny")
                for one in _skip_excused(finding.members)
            )
        return
    if not may_mend(speaker):
        return
    answers = is_of_answers(speaker)
    enforcers = enforcers_of(speaker)
    if not enforcers and not (answers and wishes.stateless):
        return
    for one in _skip_excused(finding.members):
        yield _ask_for_result(
            one, finding.number, enforcers or (Enforcer("path"),), answers=answers
        )


def _skip_excused(members: Iterable[Result]) -> Iterator[Result]:
    return (one for one in members if not one.is_excused)


def _ask_for_result(
    result: Result,
    number: int,
    enforcers: tuple[Enforcer, ...],
    *,
    action: Action = "allow",
    answers: bool = False,
) -> AskedFlow:
    return AskedFlow(
        source=result.source,
        destination=result.destination,
        address=result.address,
        protocol=result.protocol,
        ports=((result.port or 0, result.end_port or 0),),
        enforcers=enforcers,
        need=RuleNeed(result.matrix, result.requirement, purpose=result.purpose, row=result.row),
        action=action,
        answers=answers,
        finding=number,
        result=result,
    )


def _make_rules(
    asked: Iterable[AskedFlow], addresses: Mapping[str, Sequence[str]], wishes: RequestWishes
) -> tuple[tuple[FirewallRule, ...], tuple[Unmended, ...]]:
    """Give the rules for these flows, and those that no rule can be written for.

    ``addresses`` are those that the probes of each host start from.
    """
    groups: dict[_RuleKey, list[AskedFlow]] = {}
    unknown: dict[str, int] = {}
    for one in asked:
        family = _family_of(one.address)
        why = _why_unwritable(one, family, addresses)
        if why is not None:
            unknown[why] = unknown.get(why, 0) + count_ports(one.ports)
        elif family is not None:
            groups.setdefault(_key_of(one, family, wishes.by), []).append(one)
    rules = [
        rule
        for key, some in groups.items()
        for rule in _rules_of_group(key, some, addresses, wishes)
    ]
    numbered = tuple(replace(rule, id=f"R{place}") for place, rule in enumerate(rules, 1))
    words = "Give the inventory its addresses, or run netprobe, which resolves names."
    return numbered, tuple(
        Unmended(title, words, flows) for title, flows in sorted(unknown.items())
    )


def _key_of(one: AskedFlow, family: Family, by: By) -> _RuleKey:
    parts: dict[By, tuple[object, ...]] = {
        "device": (),
        "finding": (one.finding,),
        "requirement": (one.need.matrix, one.need.requirement),
    }
    return _RuleKey(one.action, one.enforcers, one.answers, family, one.protocol, parts[by])


def _family_of(address: str) -> Family | None:
    """Give the family; None for a name, and with a scope, which may hold any text."""
    try:
        if "%" in address:
            return None
        return 6 if ipaddress.ip_address(address).version == 6 else 4
    except ValueError:
        return None


def _why_unwritable(
    one: AskedFlow, family: Family | None, addresses: Mapping[str, Sequence[str]]
) -> str | None:
    if family is None:
        return _UNRESOLVED.format(host=one.destination, address=one.address)
    if not any(_family_of(text) == family for text in addresses.get(one.source, ())):
        return _UNKNOWN_ADDRESS.format(host=one.source)
    return None


def _rules_of_group(
    key: _RuleKey,
    asked: Sequence[AskedFlow],
    addresses: Mapping[str, Sequence[str]],
    wishes: RequestWishes,
) -> Iterator[FirewallRule]:
    by_pair: dict[Pair, list[AskedFlow]] = {}
    for one in asked:
        pair = (one.source, f"{one.destination}{_AT}{one.address}")
        by_pair.setdefault(pair, []).append(one)
    flows = {
        pair: normalise(part for one in some for part in one.ports)
        for pair, some in by_pair.items()
    }
    # A rule that closes must not close a host to itself as well.
    free = _host_of_end if key.action == "allow" else str
    for box in cover(flows, free):
        pairs = [pair for pair in product(box.sources, box.destinations) if pair in flows]
        held = [
            one
            for pair in sorted(pairs)
            for one in by_pair[pair]
            if _has_common_ports(one, box.ports)
        ]
        count = sum(count_ports(intersect(flows[pair], box.ports)) for pair in pairs)
        yield from _rules_of_box(key, box, held, addresses, wishes, count)


def _host_of_end(end: str) -> str:
    return end.partition(_AT)[0]


def _has_common_ports(one: AskedFlow, ports: Ports) -> bool:
    return bool(intersect(one.ports, ports))


def _rules_of_box(
    key: _RuleKey,
    box: Box,
    held: Sequence[AskedFlow],
    addresses: Mapping[str, Sequence[str]],
    wishes: RequestWishes,
    flows: int,
) -> Iterator[FirewallRule]:
    """Give the rule, and where the device keeps no state the one for the answers."""
    results = [one.result for one in held if one.result is not None]
    notes = word_doubts(results) if key.action == "allow" else []
    sources = _source_ends(box.sources, key.family, addresses)
    names = [end.host for end in sources]
    notes += [_SEVERAL.format(host=host) for host in names if names.count(host) > 1]
    rule = FirewallRule(
        id="",
        action=key.action,
        family=key.family,
        protocol=key.protocol,
        ports=() if box.ports == PORTLESS else box.ports,
        sources=sources,
        destinations=_sort_ends(RuleEnd(*end.split(_AT)) for end in box.destinations),
        enforcers=key.enforcers,
        needs=tuple(dict.fromkeys(one.need for one in held)),
        findings=tuple(sorted({one.finding for one in held if one.finding})),
        evidence=word_evidence(results),
        notes=tuple(dict.fromkeys(notes)),
        until=wishes.until,
        flows=flows,
    )
    back = replace(rule, answers=True, sources=rule.destinations, destinations=rule.sources)
    if key.answers:
        yield back
        return
    yield rule
    if wishes.stateless and key.action == "allow" and not key.protocol.startswith("ipproto"):
        yield replace(back, flows=0, notes=("the answers, for a device that keeps no state",))


def _source_ends(
    hosts: Iterable[str], family: Family, addresses: Mapping[str, Sequence[str]]
) -> tuple[RuleEnd, ...]:
    return _sort_ends(
        RuleEnd(host, text)
        for host in hosts
        for text in addresses.get(host, ())
        if _family_of(text) == family
    )


def _sort_ends(ends: Iterable[RuleEnd]) -> tuple[RuleEnd, ...]:
    return tuple(sorted(ends, key=lambda end: end.order))

"""Flows that somebody must open or close → the fewest rules for them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.model.firewall import (
    PERMANENT,
    Action,
    Enforcer,
    FirewallRule,
    RuleEnd,
    RuleNeed,
    Unmended,
)
from netprobe.model.inventory import Family
from netprobe.model.ports import Ports, divide, intersect, union_by_key
from netprobe.model.ports import count as count_ports
from netprobe.model.result import PORTLESS, Result
from netprobe.request.boxes import Box, Pair, cover
from netprobe.request.mends import word_doubts, word_evidence

By = Literal["device", "finding", "requirement"]
BY: tuple[By, ...] = ("device", "finding", "requirement")

# Those that the probes of each host start from.
AddressesOfHosts = Mapping[str, Sequence[str]]
# Between host and address of a destination; no name holds it.
_AT = "\0"
_UNKNOWN_ADDRESS = "{host} has no address of this family in the run: which one does it send from?"
_UNRESOLVED = "{host} is known by name only ({address}), and rules need addresses"
_TRANSLATED = "{host} is translated on the way: {name} sees it as {address}"
_SEVERAL = "{host} has several addresses, and its kernel chooses: all of them are asked for"


class RequestWishes(Struct, frozen=True):
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
    # The file with packets of the finding.
    packets: str | None = None
    # What a run saw of it; None before any run.
    result: Result | None = None
    # Lines of other matrices that need the flow, too.
    also: tuple[RuleNeed, ...] = ()
    # What whoever applies the rule should know of the line.
    notes: tuple[str, ...] = ()


class _RuleKey(NamedTuple):
    """What flows of one rule have in common; ``part`` is what ``--by`` keeps apart."""

    action: Action
    enforcers: tuple[Enforcer, ...]
    answers: bool
    family: Family
    protocol: str
    part: tuple[object, ...]


def make_rules(
    asked: Iterable[AskedFlow], addresses: AddressesOfHosts, wishes: RequestWishes
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
    one: AskedFlow, family: Family | None, addresses: AddressesOfHosts
) -> str | None:
    if family is None:
        return _UNRESOLVED.format(host=one.destination, address=one.address)
    known = any(_family_of(text) == family for text in addresses.get(one.source, ()))
    if not known and _AT not in _name_source(one):
        return _UNKNOWN_ADDRESS.format(host=one.source)
    return None


def _rules_of_group(
    key: _RuleKey,
    asked: Sequence[AskedFlow],
    addresses: AddressesOfHosts,
    wishes: RequestWishes,
) -> Iterator[FirewallRule]:
    by_pair: dict[Pair, list[AskedFlow]] = {}
    for one in asked:
        pair = (_name_source(one), f"{one.destination}{_AT}{one.address}")
        by_pair.setdefault(pair, []).append(one)
    flows = union_by_key((pair, one.ports) for pair, some in by_pair.items() for one in some)
    # A rule that closes must not close a host to itself as well.
    free = _host_of_end if key.action == "allow" else str
    for box in cover(flows, free):
        pairs = [pair for pair in product(box.sources, box.destinations) if pair in flows]
        asked_of_box = (one for pair in sorted(pairs) for one in by_pair[pair])
        held = [one for one in asked_of_box if divide(one.ports, box.ports)[0]]
        count = sum(count_ports(intersect(flows[pair], box.ports)) for pair in pairs)
        yield from _rules_of_box(key, box, held, addresses, wishes, count)


def _name_source(one: AskedFlow) -> str:
    """Name the source, and the address under which the enforcer sees it, where a run found that and
    it is not one that its probes start from."""
    address = None
    if one.result is not None:
        near = all(enforcer.place == "destination" for enforcer in one.enforcers)
        address = (one.result.came_from if near else None) or one.result.sent_from
    is_usable = address is not None and _family_of(address) == _family_of(one.address)
    return f"{one.source}{_AT}{address}" if is_usable else one.source


def _host_of_end(end: str) -> str:
    return end.partition(_AT)[0]


def _rules_of_box(
    key: _RuleKey,
    box: Box,
    held: Sequence[AskedFlow],
    addresses: AddressesOfHosts,
    wishes: RequestWishes,
    flows: int,
) -> Iterator[FirewallRule]:
    """Give the rule, and where the device keeps no state the one for the answers."""
    results = [one.result for one in held if one.result is not None]
    notes = word_doubts(results, key.enforcers) if key.action == "allow" else []
    sources = _sort_ends(_list_sources(box, addresses, key.family))
    names = [end.host for end in sources]
    notes += [note for one in held for note in one.notes]
    notes += [_SEVERAL.format(host=host) for host in names if names.count(host) > 1]
    notes += [
        _TRANSLATED.format(host=one.source, name=one.destination, address=one.came_from)
        for one in results
        if one.came_from is not None
    ]
    rule = FirewallRule(
        id="",
        action=key.action,
        family=key.family,
        protocol=key.protocol,
        ports=() if box.ports == PORTLESS else box.ports,
        sources=sources,
        destinations=_sort_ends(RuleEnd(*end.split(_AT)) for end in box.destinations),
        enforcers=key.enforcers,
        needs=tuple(dict.fromkeys(need for one in held for need in (one.need, *one.also))),
        findings=tuple(sorted({one.finding for one in held if one.finding})),
        evidence=word_evidence(results),
        notes=tuple(dict.fromkeys(notes)),
        until=wishes.until,
        flows=flows,
        packets=tuple(sorted({one.packets for one in held if one.packets})),
    )
    back = replace(rule, answers=True, sources=rule.destinations, destinations=rule.sources)
    if key.answers:
        yield back
        return
    yield rule
    if wishes.stateless and key.action == "allow" and not key.protocol.startswith("ipproto"):
        yield replace(back, flows=0, notes=("the answers, for a device that keeps no state",))


def _list_sources(box: Box, addresses: AddressesOfHosts, family: Family) -> Iterator[RuleEnd]:
    """List the addresses of the sources: those that a run found, else all of a host."""
    for end in box.sources:
        host, _, seen = end.partition(_AT)
        for text in (seen,) if seen else addresses.get(host, ()):
            if _family_of(text) == family:
                yield RuleEnd(host, text)


def _sort_ends(ends: Iterable[RuleEnd]) -> tuple[RuleEnd, ...]:
    return tuple(sorted(ends, key=lambda end: end.order))

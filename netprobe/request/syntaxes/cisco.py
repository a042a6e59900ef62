"""Cisco IOS/IOS-XE and ASA: object groups, and permits above what an access list has already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.model.ports import PortRange
from netprobe.request.groups import address_groups, end_groups, port_group, port_groups
from netprobe.request.services import cidr_of, protocol_name
from netprobe.request.syntaxes.common import (
    PATH,
    forbid_whole_file,
    heading,
    left_out,
    remarks,
    rules_at,
    word_state,
    writable_rules,
    write_device,
)

_ACTIONS = {"allow": "permit", "deny": "deny"}
_DEFAULT = "NETPROBE_EDIT_ME"
# IOS: what is there begins behind this number, so that new lines fit before it.
_FIRST_OLD_LINE = 100_000


def asa(request: FirewallRequest) -> Iterator[str]:
    """Give the lines for configuration mode of an ASA; --into names the access list."""
    into = "cisco-asa=LIST"
    return write_device(request, _asa_objects, _asa_lines, _why_not_asa, into, "!")


def _asa_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    for group in address_groups(request, rules):
        yield f"object-group network {group.name}"
        yield from (f" network-object {_asa_host(end)}" for end in group.ends)
    for name, rule in port_groups(rules).items():
        yield f"object-group service {name} {rule.protocol}"
        yield from (f" port-object {_ports_words(entry)}" for entry in rule.ports)


def _asa_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    yield f"access-list {_list_of(request, 'cisco-asa')} line 1 {_asa_entry(request, rule)}"


def _why_not_asa(rule: FirewallRule) -> str | None:
    return word_state(rule, "an ASA keeps")


def asa_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the lines that take them away again."""
    yield from heading(request, "!", undo=True)
    rules = writable_rules(request, _why_not_asa)
    for rule in rules:
        yield f"no access-list {_list_of(request, 'cisco-asa')} {_asa_entry(request, rule)}"
    for name, rule in port_groups(rules).items():
        yield f"no object-group service {name} {rule.protocol}"
    for group in address_groups(request, rules):
        yield f"no object-group network {group.name}"


def _list_of(request: FirewallRequest, syntax: str) -> str:
    return request.into_of(syntax, _DEFAULT)


def _asa_host(end: RuleEnd) -> str:
    return cidr_of(end) if ":" in end.address else f"host {end.address}"


def _ports_words(entry: PortRange) -> str:
    first, last = entry
    return f"eq {first}" if first == last else f"range {first} {last}"


def _asa_entry(request: FirewallRequest, rule: FirewallRule) -> str:
    ends = " ".join(f"object-group {group.name}" for group in end_groups(request, rule))
    ports = f" object-group {port_group(rule)}" if rule.ports else ""
    service = protocol_name(rule, "icmp6")
    return f"extended {_ACTIONS[rule.action]} {service} {ends}{ports}{_echo_word(rule, 'echo')}"


def _echo_word(rule: FirewallRule, asked: str) -> str:
    """Give what stands behind the ends of a rule for ICMP."""
    if rule.protocol != "icmp":
        return ""
    return f" {'echo-reply' if rule.answers else asked}"


def ios(request: FirewallRequest) -> Iterator[str]:
    """Give the lines for configuration mode of IOS; --into names the access list.

    The list is renumbered first: so there is room before the line that drops. IPv6 goes into a list
    of the same name with ``-V6``, without groups, which few releases know there.
    """
    name = _list_of(request, "cisco-ios")
    rules = rules_at(request, PATH)
    yield from heading(request, "!", into="cisco-ios=LIST")
    yield from forbid_whole_file(request, PATH, "!")
    yield from left_out(request, PATH, "!")
    for group in address_groups(request, [rule for rule in rules if rule.family == 4]):
        yield f"object-group network {group.name}"
        yield from (f" host {end.address}" for end in group.ends)
    for family in (4, 6):
        entries = [
            (rule, entry)
            for rule in rules
            if rule.family == family
            for entry in _ios_entries(request, rule)
        ]
        if entries:
            yield from _ios_list(name, family, entries)


def _ios_list(name: str, family: int, entries: list[tuple[FirewallRule, str]]) -> Iterator[str]:
    for rule in dict.fromkeys(rule for rule, _ in entries):
        yield from remarks(rule, "!")
    if family == 4:
        yield f"ip access-list resequence {name} {_FIRST_OLD_LINE} 10"
        yield f"ip access-list extended {name}"
        yield from (f" {number} {entry}" for number, (_, entry) in enumerate(entries, 1))
    else:
        yield f"! make room first if the list's own lines begin below {len(entries) + 1}"
        yield f"ipv6 access-list {name}-V6"
        yield from (f" sequence {number} {entry}" for number, (_, entry) in enumerate(entries, 1))


def ios_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the lines that take them away again."""
    name = _list_of(request, "cisco-ios")
    rules = rules_at(request, PATH)
    yield from heading(request, "!", undo=True)
    for family, line in (
        (4, f"ip access-list extended {name}"),
        (6, f"ipv6 access-list {name}-V6"),
    ):
        of_family = [rule for rule in rules if rule.family == family]
        if of_family:
            yield line
            for rule in of_family:
                yield from (f" no {entry}" for entry in _ios_entries(request, rule))
    for group in address_groups(request, [rule for rule in rules if rule.family == 4]):
        yield f"no object-group network {group.name}"


def _ios_entries(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    """Give an entry for each range of ports: releases differ in how many ``eq`` takes."""
    service = protocol_name(rule, "icmp")
    end = _echo_word(rule, "echo" if rule.family == 4 else "echo-request")
    for source, destination in _ios_ends(request, rule):
        for entry in rule.ports or (None,):
            words = f" {_ports_words(entry)}" if entry else ""
            ends = (
                f"{source}{words} {destination}"
                if rule.answers
                else f"{source} {destination}{words}"
            )
            state = " established" if rule.answers and rule.protocol == "tcp" else ""
            yield f"{_ACTIONS[rule.action]} {service} {ends}{end}{state}"


def _ios_ends(request: FirewallRequest, rule: FirewallRule) -> Iterator[tuple[str, str]]:
    if rule.family == 4:
        sources, destinations = end_groups(request, rule)
        yield f"object-group {sources.name}", f"object-group {destinations.name}"
        return
    for source, destination in product(rule.sources, rule.destinations):
        if source.host != destination.host:
            yield f"host {source.address}", f"host {destination.address}"

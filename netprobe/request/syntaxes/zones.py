"""Firewalls between zones: FortiOS, Junos (SRX) and PAN-OS; --into is ``FROM/TO``.

FortiOS: objects and policies between interfaces or zones; ``edit 0`` takes the next free number and
overwrites nothing. Junos: ``set`` commands; without zones the policies are global. Palo Alto
Networks: ``set`` commands of PAN-OS (configure mode).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import (
    AddressGroup,
    address_groups,
    end_groups,
    object_name,
    port_group,
    port_groups,
    service_name,
)
from netprobe.request.safe import plain
from netprobe.request.services import cidr_of, protocol_number, range_text
from netprobe.request.syntaxes.common import heading, word_state, writable_rules, write_device

_BOOK = "set security address-book global"
_fortios_why_not = partial(word_state, who="FortiOS keeps")
_junos_why_not = partial(word_state, who="an SRX keeps")


def fortios(request: FirewallRequest) -> Iterator[str]:
    """Give the configuration. New policies stand last: ``move`` them before the one that denies."""
    into = "fortios=FROM/TO"
    return write_device(request, _fortios_objects, _fortios_policy_lines, _fortios_why_not, into)


def _fortios_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    yield "# New policies stand last: move them before the policy that denies."
    for group in address_groups(request, rules):
        yield from _fortios_group_lines(group)
    services = {service_name(rule): rule for rule in rules}
    if services:
        yield "config firewall service custom"
        for name, rule in services.items():
            yield f'    edit "{name}"'
            yield from (f"        {line}" for line in _fortios_service_lines(rule))
            yield "    next"
        yield "end"


def _fortios_group_lines(group: AddressGroup) -> Iterator[str]:
    six = "6" if group.family == 6 else ""
    yield f"config firewall address{six}"
    for end in group.ends:
        yield f'    edit "{object_name(end.address)}"'
        yield (
            f"        set ip6 {end.address}/128"
            if six
            else f"        set subnet {end.address} 255.255.255.255"
        )
        yield "    next"
    yield "end"
    yield f"config firewall addrgrp{six}"
    yield f'    edit "{group.name}"'
    members = (f'"{object_name(end.address)}"' for end in group.ends)
    yield f"        set member {' '.join(members)}"
    yield "    next"
    yield "end"


def _fortios_service_lines(rule: FirewallRule) -> Iterator[str]:
    number = protocol_number(rule)
    if number is not None:
        yield "set protocol IP"
        yield f"set protocol-number {number}"
    elif rule.protocol == "icmp":
        yield f"set protocol ICMP{'6' if rule.family == 6 else ''}"
        yield f"set icmptype {128 if rule.family == 6 else 8}"
    else:
        yield "set protocol TCP/UDP/SCTP"
        yield f"set {rule.protocol}-portrange {' '.join(range_text(one) for one in rule.ports)}"


def _fortios_policy_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    zones = request.into_of("fortios", "any/any").split("/")
    six = "6" if rule.family == 6 else ""
    sources, destinations = end_groups(request, rule)
    yield "config firewall policy"
    yield "    edit 0"
    for words in (
        f'name "NP-{request.id}-{rule.id}"',
        f'srcintf "{zones[0]}"',
        f'dstintf "{zones[1]}"',
        f'srcaddr{six} "{sources.name}"',
        f'dstaddr{six} "{destinations.name}"',
        f"action {'accept' if rule.action == 'allow' else 'deny'}",
        'schedule "always"',
        f'service "{service_name(rule)}"',
        "logtraffic all",
        f'comments "{request.mark(rule)}"',
    ):
        yield f"        set {words}"
    yield "    next"
    yield "end"


def junos(request: FirewallRequest) -> Iterator[str]:
    """Give the commands. New policies stand last: ``insert`` them before the one that denies."""
    into = "junos=FROM/TO"
    return write_device(request, _junos_objects, _junos_policy_lines, _junos_why_not, into)


def _junos_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    yield "# New policies stand last: insert them before the policy that denies."
    for group in address_groups(request, rules):
        for end in group.ends:
            yield f"{_BOOK} address {object_name(end.address)} {cidr_of(end)}"
            yield f"{_BOOK} address-set {group.name} address {object_name(end.address)}"
    for name, rule in {service_name(rule): rule for rule in rules}.items():
        for number, words in enumerate(_junos_terms(rule), 1):
            yield f"set applications application {name} term t{number} {words}"


def junos_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the commands that delete them."""
    yield from heading(request, undo=True)
    rules = writable_rules(request, _junos_why_not)
    yield from (f"delete {_junos_policy_of(request, rule)}" for rule in rules)
    for name in dict.fromkeys(map(service_name, rules)):
        yield f"delete applications application {name}"
    for group in address_groups(request, rules):
        yield f"delete security address-book global address-set {group.name}"


def _junos_terms(rule: FirewallRule) -> Iterator[str]:
    number = protocol_number(rule)
    if number is not None:
        yield f"protocol {number}"
    elif rule.protocol == "icmp":
        name = "icmp6" if rule.family == 6 else "icmp"
        yield f"protocol {name} {name}-type echo-request"
    for entry in rule.ports:
        yield f"protocol {rule.protocol} destination-port {range_text(entry)}"


def _junos_policy_of(request: FirewallRequest, rule: FirewallRule) -> str:
    zones = request.into_of("junos", "").split("/")
    between = f"from-zone {zones[0]} to-zone {zones[1]}" if len(zones) == 2 else "global"
    return f"security policies {between} policy NP-{request.id}-{rule.id}"


def _junos_policy_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    policy = f"set {_junos_policy_of(request, rule)}"
    sources, destinations = end_groups(request, rule)
    yield f"{policy} match source-address {sources.name}"
    yield f"{policy} match destination-address {destinations.name}"
    yield f"{policy} match application {service_name(rule)}"
    yield f"{policy} then {'permit' if rule.action == 'allow' else 'deny'}"
    yield f'{policy} description "{request.mark(rule)} {plain(" ".join(rule.why), 150)}"'


def paloalto(request: FirewallRequest) -> Iterator[str]:
    """Give the commands; the rules move to the top."""
    into = "paloalto=FROM/TO"
    return write_device(request, _paloalto_objects, _paloalto_rule_lines, _paloalto_why_not, into)


def _paloalto_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    for group in address_groups(request, rules):
        for end in group.ends:
            yield f"set address {_paloalto_object_of(end.address)} ip-netmask {cidr_of(end)}"
        members = " ".join(_paloalto_object_of(end.address) for end in group.ends)
        yield f"set address-group {group.name} static [ {members} ]"
    for name, rule in port_groups(rules).items():
        texts = ",".join(range_text(entry) for entry in rule.ports)
        yield f"set service {name} protocol {rule.protocol} port {texts}"


def paloalto_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the commands that delete them; objects of addresses may be used by other requests."""
    yield from heading(request, undo=True)
    rules = writable_rules(request, _paloalto_why_not)
    for rule in rules:
        yield f"delete rulebase security rules {_paloalto_name_of(request, rule)}"
    yield from (f"delete service {name}" for name in port_groups(rules))
    for group in address_groups(request, rules):
        yield f"delete address-group {group.name}"


def _paloalto_name_of(request: FirewallRequest, rule: FirewallRule) -> str:
    return f"NP-{request.id}-{rule.id}"


def _paloalto_object_of(address: str) -> str:
    # Names of objects take no colon.
    return f"NP_{address.replace(':', '_')}"


def _paloalto_why_not(rule: FirewallRule) -> str | None:
    if protocol_number(rule) is not None and not rule.answers:
        return "PAN-OS knows no protocols by number, choose an application"
    return word_state(rule, "PAN-OS keeps")


def _paloalto_rule_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    name = _paloalto_name_of(request, rule)
    zones = request.into_of("paloalto", "any/any").split("/")
    sources, destinations = end_groups(request, rule)
    if rule.ports:
        service = f"application any service {port_group(rule)}"
    else:
        application = "ipv6-icmp" if rule.family == 6 else "ping"
        service = f"application {application} service any"
    action = "allow" if rule.action == "allow" else "drop"
    yield (
        f"set rulebase security rules {name} from {zones[0]} to {zones[1]} "
        f"source {sources.name} destination {destinations.name} {service} action {action} "
        f'description "{request.mark(rule)} {plain(" ".join(rule.why), 150)}"'
    )
    yield f"move rulebase security rules {name} top"

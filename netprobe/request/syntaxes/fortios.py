"""FortiOS: objects and policies; ``edit 0`` takes the next free number and overwrites nothing.

--into is ``FROM/TO``, the interfaces or zones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import (
    AddressGroup,
    address_groups,
    end_groups,
    object_name,
    service_name,
)
from netprobe.request.services import protocol_number, range_text
from netprobe.request.syntaxes.common import word_state, write_device


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the configuration. New policies stand last: ``move`` them before the one that denies."""
    return write_device(request, _write_objects, _policy_lines, _why_not)


def _why_not(rule: FirewallRule) -> str | None:
    return word_state(rule, "FortiOS keeps")


def _write_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    yield "# New policies stand last: move them before the policy that denies."
    for group in address_groups(request, rules):
        yield from _group_lines(group)
    services = {service_name(rule): rule for rule in rules}
    if services:
        yield "config firewall service custom"
        for name, rule in services.items():
            yield f'    edit "{name}"'
            yield from (f"        {line}" for line in _service_lines(rule))
            yield "    next"
        yield "end"


def _group_lines(group: AddressGroup) -> Iterator[str]:
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


def _service_lines(rule: FirewallRule) -> Iterator[str]:
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


def _policy_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
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

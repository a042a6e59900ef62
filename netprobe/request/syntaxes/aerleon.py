"""aerleon: definitions and terms as YAML, for shops that compile whole policies from them.

Its generators replace what a device has; only who keeps the policy can put these terms into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import (
    AddressGroup,
    PortGroup,
    address_group,
    address_groups,
    port_group,
)
from netprobe.request.groups import port_groups as groups_of_ports
from netprobe.request.safe import plain
from netprobe.request.services import protocol_number, range_text
from netprobe.request.syntaxes.common import heading

# aerleon names protocols.
_PROTOCOLS = {4: "ipip", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 89: "ospf", 112: "vrrp"}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give networks and services for the definitions, and filters for the policy."""
    yield from heading(request)
    yield "# networks and services belong into a file of definitions, the terms into your policy."
    yield "networks:"
    for group in address_groups(request, request.rules):
        yield from _network_lines(group)
    ports = list(groups_of_ports(request.rules))
    if ports:
        yield "services:"
        for one in ports:
            yield from _service_lines(one)
    yield "filters:"
    yield "  - header:"
    yield f"      comment: {json.dumps(f'netprobe request {request.id}')}"
    yield "      targets:"
    target = request.into_of("aerleon", "cisco NETPROBE_EDIT_ME extended")
    name, _, options = target.partition(" ")
    yield f"        {json.dumps(name)}: {json.dumps(options)}"
    yield "    terms:"
    for rule in request.rules:
        yield from _term_lines(request, rule)


def _network_lines(group: AddressGroup) -> Iterator[str]:
    yield f"  {group.name}:"
    yield "    values:"
    for end in group.ends:
        bits = 128 if group.family == 6 else 32
        yield f"      - address: {json.dumps(f'{end.address}/{bits}')}"
        yield f"        comment: {json.dumps(plain(end.host))}"


def _service_lines(group: PortGroup) -> Iterator[str]:
    yield f"  {group.name}:"
    for entry in group.ports:
        yield f"    - {{protocol: {group.protocol}, port: {json.dumps(range_text(entry))}}}"


def _term_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    source, destination = (
        address_group(request, rule.family, ends).name for ends in (rule.sources, rule.destinations)
    )
    yield f"      - name: np-{request.id}-{rule.id.lower()}"
    yield f"        comment: {json.dumps(plain(' '.join(rule.why)))}"
    yield f"        source-address: {source}"
    yield f"        destination-address: {destination}"
    yield f"        protocol: {_name_protocol(rule)}"
    if rule.ports:
        yield f"        {'source' if rule.answers else 'destination'}-port: {port_group(rule).name}"
    if rule.answers and rule.protocol == "tcp":
        yield "        option: tcp-established"
    if rule.protocol == "icmp":
        yield f"        icmp-type: [echo-{'reply' if rule.answers else 'request'}]"
    yield f"        action: {'accept' if rule.action == 'allow' else 'deny'}"


def _name_protocol(rule: FirewallRule) -> str:
    number = protocol_number(rule)
    if number is not None:
        return _PROTOCOLS.get(number, str(number))
    return "icmpv6" if rule.protocol == "icmp" and rule.family == 6 else rule.protocol

"""aerleon: definitions and terms as YAML, for shops that compile whole policies from them.

Its generators replace what a device has; only who keeps the policy can put these terms into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import address_groups, end_groups, port_group, port_groups
from netprobe.request.safe import plain
from netprobe.request.services import cidr_of, protocol_name, protocol_number, range_text
from netprobe.request.syntaxes.common import forbid_whole_file, heading

# aerleon names protocols.
_PROTOCOLS = {4: "ipip", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 89: "ospf", 112: "vrrp"}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give networks and services for the definitions, and filters for the policy."""
    yield from heading(request, into="aerleon=TARGET")
    yield from forbid_whole_file(request)
    yield "# networks and services belong into a file of definitions, the terms into your policy."
    yield "networks:"
    for group in address_groups(request, request.rules):
        yield f"  {group.name}:"
        yield "    values:"
        for end in group.ends:
            yield f"      - address: {json.dumps(cidr_of(end))}"
            yield f"        comment: {json.dumps(plain(end.host))}"
    services = port_groups(request.rules)
    if services:
        yield "services:"
    for name, rule in services.items():
        yield f"  {name}:"
        for entry in rule.ports:
            yield f"    - {{protocol: {rule.protocol}, port: {json.dumps(range_text(entry))}}}"
    yield "filters:"
    yield "  - header:"
    yield f"      comment: {json.dumps(f'netprobe request {request.id}')}"
    yield "      targets:"
    target = request.into_of("aerleon", "cisco NETPROBE_EDIT_ME extended")
    generator, _, options = target.partition(" ")
    yield f"        {json.dumps(generator)}: {json.dumps(options)}"
    yield "    terms:"
    for rule in request.rules:
        yield from _term_lines(request, rule)


def _term_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    source, destination = end_groups(request, rule)
    protocol = _PROTOCOLS.get(protocol_number(rule) or 0, protocol_name(rule, "icmpv6"))
    yield f"      - name: np-{request.id}-{rule.id.lower()}"
    comment = f"on {rule.who}: {' '.join(rule.why)}"
    yield f"        comment: {json.dumps(plain(comment))}"
    yield f"        source-address: {source.name}"
    yield f"        destination-address: {destination.name}"
    yield f"        protocol: {protocol}"
    if rule.ports:
        yield f"        {'source' if rule.answers else 'destination'}-port: {port_group(rule)}"
    if rule.answers and rule.protocol == "tcp":
        yield "        option: tcp-established"
    if rule.protocol == "icmp":
        yield f"        icmp-type: [echo-{'reply' if rule.answers else 'request'}]"
    yield f"        action: {'accept' if rule.action == 'allow' else 'deny'}"

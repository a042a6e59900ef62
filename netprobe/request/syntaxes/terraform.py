"""Terraform for AWS and OpenStack: rules of security groups, never a whole group.

A security group holds for all of its machines: the variable must name one whose members are exactly
the hosts that stand above it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.model.ports import PortRange
from netprobe.request.groups import AddressGroup, end_groups
from netprobe.request.safe import plain
from netprobe.request.services import cidr_of, protocol_name, protocol_number
from netprobe.request.syntaxes.common import (
    direction,
    heading,
    remarks,
    sections,
    word_state,
    write_unless,
)

# The hosts whose security group it is, the hosts at the other end, and which way.
_Sides = tuple[AddressGroup, AddressGroup, str]


def aws(request: FirewallRequest) -> Iterator[str]:
    """Give resources of the AWS provider (5 or later)."""
    return _write_resources(request, _aws_lines)


def openstack(request: FirewallRequest) -> Iterator[str]:
    """Give resources of the OpenStack provider."""
    return _write_resources(request, _openstack_lines)


def _write_resources(
    request: FirewallRequest,
    write: Callable[[FirewallRequest, FirewallRule, _Sides, set[str]], Iterator[str]],
) -> Iterator[str]:
    yield from heading(request)
    made: set[str] = set()
    for rule, place in _choose_writable(request):
        yield ""
        yield from remarks(rule)
        lines = write(request, rule, _find_sides(request, rule, place), made)
        yield from write_unless(rule, _why_not(rule), lines)


def _aws_lines(
    request: FirewallRequest, rule: FirewallRule, sides: _Sides, made: set[str]
) -> Iterator[str]:
    own, other, way = sides
    yield from _write_once(made, f"variable {own.name}", _variable_lines(own))
    yield from _write_once(made, other.name, _prefix_list_lines(other))
    for number, (first, last) in enumerate(_aws_ports(rule), 1):
        name = f"np_{request.id}_{rule.id}_{way}_{number}"
        yield f'resource "aws_vpc_security_group_{way}_rule" "{name}" {{'
        yield f"  security_group_id = var.{own.name}"
        yield f"  prefix_list_id    = aws_ec2_managed_prefix_list.{other.name}.id"
        yield f"  ip_protocol       = {_quote_text(protocol_name(rule, 'icmpv6'))}"
        if protocol_number(rule) is None:
            yield f"  from_port         = {first}"
            yield f"  to_port           = {last}"
        yield f"  description       = {_quote_text(request.mark(rule))}"
        yield "}"


def _openstack_lines(
    request: FirewallRequest, rule: FirewallRule, sides: _Sides, made: set[str]
) -> Iterator[str]:
    own, other, way = sides
    yield from _write_once(made, f"variable {own.name}", _variable_lines(own))
    for number, entry in enumerate(rule.ports or (None,), 1):
        name = f"np_{request.id}_{rule.id}_{way}_{number}"
        cidrs = ", ".join(_quote_text(cidr_of(end)) for end in other.ends)
        yield f'resource "openstack_networking_secgroup_rule_v2" "{name}" {{'
        yield f"  for_each          = toset([{cidrs}])"
        yield f"  security_group_id = var.{own.name}"
        yield f"  direction         = {_quote_text(way)}"
        yield f"  ethertype         = {_quote_text(f'IPv{rule.family}')}"
        yield f"  protocol          = {_quote_text(protocol_name(rule, 'ipv6-icmp'))}"
        yield from _openstack_ports(rule, entry)
        yield "  remote_ip_prefix  = each.value"
        yield f"  description       = {_quote_text(request.mark(rule))}"
        yield "}"


def undo(request: FirewallRequest) -> Iterator[str]:
    """Say how: what Terraform made it takes away again."""
    yield from heading(request, undo=True)
    yield "# Delete the file that made these rules, and run terraform apply."


def _choose_writable(request: FirewallRequest) -> Iterator[tuple[FirewallRule, RulePlace]]:
    """Each rule once for each side that a security group can stand at."""
    known = set()
    for section in sections(request):
        for rule in section.rules:
            place: RulePlace = "source" if section.enforcer.place == "source" else "destination"
            if (rule.id, place) not in known:
                known.add((rule.id, place))
                yield rule, place


def _why_not(rule: FirewallRule) -> str | None:
    if rule.action == "deny":
        return "a security group only allows: take the rule away that lets it in"
    return word_state(rule, "security groups keep")


def _find_sides(request: FirewallRequest, rule: FirewallRule, place: RulePlace) -> _Sides:
    source, destination = end_groups(request, rule)
    if direction(rule, place) == "output":
        return source, destination, "egress"
    return destination, source, "ingress"


def _write_once(made: set[str], name: str, lines: Iterator[str]) -> Iterator[str]:
    if name not in made:
        made.add(name)
        yield from lines


def _variable_lines(group: AddressGroup) -> Iterator[str]:
    yield f'variable "{group.name}" {{'
    yield "  type        = string"
    members = ", ".join(dict.fromkeys(plain(end.host, 60) for end in group.ends))
    yield f"  description = {_quote_text(f'Security group of exactly: {members}')}"
    yield "}"


def _prefix_list_lines(group: AddressGroup) -> Iterator[str]:
    yield f'resource "aws_ec2_managed_prefix_list" "{group.name}" {{'
    yield f"  name           = {_quote_text(group.name)}"
    yield f"  address_family = {_quote_text(f'IPv{group.family}')}"
    yield f"  max_entries    = {len(group.ends)}"
    for end in group.ends:
        yield "  entry {"
        yield f"    cidr        = {_quote_text(cidr_of(end))}"
        yield f"    description = {_quote_text(plain(end.host))}"
        yield "  }"
    yield "}"


def _quote_text(text: str) -> str:
    """Quote a text without ``${`` and ``%{``: none of those that come here has them."""
    return json.dumps(text)


def _aws_ports(rule: FirewallRule) -> Iterator[tuple[int, int]]:
    """Give the ranges of ports; for ICMP they are type and code."""
    if rule.protocol == "icmp":
        yield (128, 0) if rule.family == 6 else (8, 0)
    elif protocol_number(rule) is not None:
        yield (-1, -1)
    yield from rule.ports


def _openstack_ports(rule: FirewallRule, entry: PortRange | None) -> Iterator[str]:
    if rule.protocol == "icmp":
        entry = (128 if rule.family == 6 else 8, 0)
    if entry is not None:
        yield f"  port_range_min    = {entry[0]}"
        yield f"  port_range_max    = {entry[1]}"

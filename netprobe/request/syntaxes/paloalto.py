"""Palo Alto Networks: ``set`` commands of PAN-OS (configure mode); --into is ``FROM/TO``, zones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import address_groups, end_groups, port_group, port_groups
from netprobe.request.safe import plain
from netprobe.request.services import cidr_of, protocol_number, range_text
from netprobe.request.syntaxes.common import heading, word_state, writable_rules, write_device


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the commands; the rules move to the top."""
    return write_device(request, _write_objects, _rule_lines, _why_not)


def _write_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    for group in address_groups(request, rules):
        for end in group.ends:
            yield f"set address {_object_of(end.address)} ip-netmask {cidr_of(end)}"
        members = " ".join(_object_of(end.address) for end in group.ends)
        yield f"set address-group {group.name} static [ {members} ]"
    for name, rule in port_groups(rules).items():
        texts = ",".join(range_text(entry) for entry in rule.ports)
        yield f"set service {name} protocol {rule.protocol} port {texts}"


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the commands that delete them; objects of addresses may be used by other requests."""
    yield from heading(request, undo=True)
    rules = writable_rules(request, _why_not)
    for rule in rules:
        yield f"delete rulebase security rules {_name_of(request, rule)}"
    yield from (f"delete service {name}" for name in port_groups(rules))
    for group in address_groups(request, rules):
        yield f"delete address-group {group.name}"


def _name_of(request: FirewallRequest, rule: FirewallRule) -> str:
    return f"NP-{request.id}-{rule.id}"


def _object_of(address: str) -> str:
    # Names of objects take no colon.
    return f"NP_{address.replace(':', '_')}"


def _why_not(rule: FirewallRule) -> str | None:
    if protocol_number(rule) is not None and not rule.answers:
        return "PAN-OS knows no protocols by number, choose an application"
    return word_state(rule, "PAN-OS keeps")


def _rule_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    name = _name_of(request, rule)
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

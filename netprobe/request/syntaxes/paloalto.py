"""Palo Alto Networks: ``set`` commands of PAN-OS (configure mode); --into is ``FROM/TO``, zones."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.request.groups import address_group, address_groups, port_group, port_groups
from netprobe.request.safe import plain
from netprobe.request.services import protocol_number, range_text
from netprobe.request.syntaxes.common import cannot, heading, left_out, remarks, rules_at

_PLACES: tuple[RulePlace, ...] = ("path",)


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the commands; the rules move to the top."""
    yield from heading(request)
    yield from left_out(request, _PLACES)
    rules = [rule for rule in rules_at(request, _PLACES) if _why_not(rule) is None]
    for group in address_groups(request, rules):
        for end in group.ends:
            bits = 128 if group.family == 6 else 32
            yield f"set address {_object_of(end.address)} ip-netmask {end.address}/{bits}"
        members = " ".join(_object_of(end.address) for end in group.ends)
        yield f"set address-group {group.name} static [ {members} ]"
    for ports in port_groups(rules):
        texts = ",".join(range_text(entry) for entry in ports.ports)
        yield f"set service {ports.name} protocol {ports.protocol} port {texts}"
    for rule in rules_at(request, _PLACES):
        yield from remarks(rule)
        why = _why_not(rule)
        if why is not None:
            yield cannot(rule, why)
        else:
            yield from _rule_lines(request, rule)


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the commands that delete them; objects of addresses may be used by other requests."""
    yield from heading(request, undo=True)
    rules = [rule for rule in rules_at(request, _PLACES) if _why_not(rule) is None]
    for rule in rules:
        yield f"delete rulebase security rules {_name_of(request, rule)}"
    for ports in port_groups(rules):
        yield f"delete service {ports.name}"
    for group in address_groups(request, rules):
        yield f"delete address-group {group.name}"


def _name_of(request: FirewallRequest, rule: FirewallRule) -> str:
    return f"NP-{request.id}-{rule.id}"


def _object_of(address: str) -> str:
    # Names of objects take no colon.
    return f"NP_{address.replace(':', '_')}"


def _why_not(rule: FirewallRule) -> str | None:
    if rule.answers:
        return "PAN-OS keeps state, answers need no rule"
    if protocol_number(rule) is not None:
        return "PAN-OS knows no protocols by number, choose an application"
    return None


def _rule_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    name = _name_of(request, rule)
    zones = request.into_of("paloalto", "any/any").split("/")
    sides = [
        address_group(request, rule.family, ends).name for ends in (rule.sources, rule.destinations)
    ]
    if rule.ports:
        service = f"application any service {port_group(rule).name}"
    else:
        application = "ipv6-icmp" if rule.family == 6 else "ping"
        service = f"application {application} service any"
    action = "allow" if rule.action == "allow" else "drop"
    yield (
        f"set rulebase security rules {name} from {zones[0]} to {zones[1]} source {sides[0]} "
        f"destination {sides[1]} {service} action {action} "
        f'description "{request.mark(rule)} {plain(" ".join(rule.why), 150)}"'
    )
    yield f"move rulebase security rules {name} top"

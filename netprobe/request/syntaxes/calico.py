"""Calico: a GlobalNetworkPolicy for host endpoints, as YAML for ``calicoctl apply``.

A policy isolates every endpoint that it selects: what no other policy allows is dropped there from
then on. So the selector matches nothing until the user labels the endpoints that have policies
already, or gives another one by --into.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.request.services import cidr_of, echo_type, protocol_name
from netprobe.request.syntaxes.common import direction, heading, remarks, sections

_SELECTOR = "netprobe == 'asked'"


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give one policy for what comes in and one for what goes out."""
    yield from heading(request, into="calico=SELECTOR")
    yield "# A policy isolates what it selects: only host endpoints that have policies already."
    sides: dict[str, dict[str, FirewallRule]] = {}
    for section in sections(request):
        for rule in section.rules:
            way = "Egress" if direction(rule, section.enforcer.place) == "output" else "Ingress"
            sides.setdefault(way, {})[rule.id] = rule
    for way, rules in sides.items():
        yield "---"
        yield from _policy_lines(request, way, list(rules.values()))


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the same file: it is for ``calicoctl delete -f``."""
    yield "# calicoctl delete -f THIS_FILE"
    yield from lines(request)


def _policy_lines(request: FirewallRequest, way: str, rules: list[FirewallRule]) -> Iterator[str]:
    yield "apiVersion: projectcalico.org/v3"
    yield "kind: GlobalNetworkPolicy"
    yield "metadata:"
    yield f"  name: netprobe-{request.id}-{way.lower()}"
    yield "spec:"
    yield "  order: 1"
    yield f"  selector: {json.dumps(request.into_of('calico', _SELECTOR))}"
    yield f"  types: [{way}]"
    yield f"  {way.lower()}:"
    for rule in rules:
        name = protocol_name(rule, "ICMPv6")
        ports = _write_ports(rule)
        yield from (f"    {line}" for line in remarks(rule))
        yield f"    - action: {'Allow' if rule.action == 'allow' else 'Deny'}"
        yield f"      ipVersion: {rule.family}"
        yield f"      protocol: {name if name == 'ICMPv6' else name.upper()}"
        if rule.protocol == "icmp":
            yield f"      icmp: {{type: {echo_type(rule)}, code: 0}}"
        yield from _end_lines("source", rule.sources, ports if rule.answers else "")
        yield from _end_lines("destination", rule.destinations, "" if rule.answers else ports)
        yield f"      metadata: {{annotations: {{netprobe: {json.dumps(request.mark(rule))}}}}}"


def _end_lines(side: str, ends: tuple[RuleEnd, ...], ports: str) -> Iterator[str]:
    yield f"      {side}:"
    yield f"        nets: {json.dumps([cidr_of(end) for end in ends])}"
    if ports:
        yield f"        ports: {ports}"


def _write_ports(rule: FirewallRule) -> str:
    """Give a list of ports; Calico writes ranges with a colon, as texts."""
    entries = [first if first == last else f"{first}:{last}" for first, last in rule.ports]
    return json.dumps(entries) if entries else ""

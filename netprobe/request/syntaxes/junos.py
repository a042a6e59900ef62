"""Junos (SRX): ``set`` commands; --into is ``FROM/TO``, zones, else the policies are global."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import address_groups, end_groups, object_name, service_name
from netprobe.request.safe import plain
from netprobe.request.services import cidr_of, protocol_number, range_text
from netprobe.request.syntaxes.common import heading, word_state, writable_rules, write_device

_BOOK = "set security address-book global"


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the commands. New policies stand last: ``insert`` them before the one that denies."""
    return write_device(request, _write_objects, _policy_lines, _why_not)


def _why_not(rule: FirewallRule) -> str | None:
    return word_state(rule, "an SRX keeps")


def _write_objects(request: FirewallRequest, rules: Sequence[FirewallRule]) -> Iterator[str]:
    yield "# New policies stand last: insert them before the policy that denies."
    for group in address_groups(request, rules):
        for end in group.ends:
            yield f"{_BOOK} address {object_name(end.address)} {cidr_of(end)}"
            yield f"{_BOOK} address-set {group.name} address {object_name(end.address)}"
    for name, rule in {service_name(rule): rule for rule in rules}.items():
        for number, words in enumerate(_write_terms(rule), 1):
            yield f"set applications application {name} term t{number} {words}"


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the commands that delete them."""
    yield from heading(request, undo=True)
    rules = writable_rules(request, _why_not)
    yield from (f"delete {_policy_of(request, rule)}" for rule in rules)
    for name in dict.fromkeys(map(service_name, rules)):
        yield f"delete applications application {name}"
    for group in address_groups(request, rules):
        yield f"delete security address-book global address-set {group.name}"


def _write_terms(rule: FirewallRule) -> Iterator[str]:
    number = protocol_number(rule)
    if number is not None:
        yield f"protocol {number}"
    elif rule.protocol == "icmp":
        name = "icmp6" if rule.family == 6 else "icmp"
        yield f"protocol {name} {name}-type echo-request"
    for entry in rule.ports:
        yield f"protocol {rule.protocol} destination-port {range_text(entry)}"


def _policy_of(request: FirewallRequest, rule: FirewallRule) -> str:
    zones = request.into_of("junos", "").split("/")
    between = f"from-zone {zones[0]} to-zone {zones[1]}" if len(zones) == 2 else "global"
    return f"security policies {between} policy NP-{request.id}-{rule.id}"


def _policy_lines(request: FirewallRequest, rule: FirewallRule) -> Iterator[str]:
    policy = f"set {_policy_of(request, rule)}"
    sources, destinations = end_groups(request, rule)
    yield f"{policy} match source-address {sources.name}"
    yield f"{policy} match destination-address {destinations.name}"
    yield f"{policy} match application {service_name(rule)}"
    yield f"{policy} then {'permit' if rule.action == 'allow' else 'deny'}"
    yield f'{policy} description "{request.mark(rule)} {plain(" ".join(rule.why), 150)}"'

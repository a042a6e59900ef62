"""ufw 0.36 or later: a shell script; ``prepend`` puts a rule before those of its own family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.request.services import protocol_number, range_text, split_ports
from netprobe.request.syntaxes.common import direction, word_state, write_script, write_unless

# ufw takes so many ports in a rule; a range counts as two.
_MOST_PORTS = 15
# The IP protocols that ufw knows, beside tcp and udp.
_PROTOCOLS = {2: "igmp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 112: "vrrp"}
# The direction is not written for what comes in.
_VERBS = {"forward": ("route ", ""), "input": ("", ""), "output": ("", "out ")}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the script."""
    return write_script(request, partial(_write_rule, request, "prepend "))


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that deletes the same rules."""
    return write_script(request, partial(_write_rule, request, "delete "), undo=True)


def _write_rule(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    return write_unless(rule, _why_not(rule), _write_commands(request, verb, rule, place))


def _why_not(rule: FirewallRule) -> str | None:
    number = protocol_number(rule)
    if rule.answers:
        return word_state(rule, "ufw keeps")
    if rule.protocol == "icmp":
        return "ufw has no words for ICMP: it stands in /etc/ufw/before.rules"
    if number is not None and number not in _PROTOCOLS:
        return "ufw does not know this protocol: write it into /etc/ufw/before.rules"
    return None


def _write_commands(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    before, way = _VERBS[direction(rule, place)]
    action = "allow" if rule.action == "allow" else "deny"
    for part in split_ports(rule, _MOST_PORTS):
        protocol, ports = _write_service(part)
        for source, destination in product(rule.sources, rule.destinations):
            if source.host != destination.host:
                yield (
                    f"ufw {before}{verb}{action} {way}proto {protocol} "
                    f"from {source.address} to {destination.address}{ports} "
                    f"comment '{request.mark(rule)}'"
                )


def _write_service(rule: FirewallRule) -> tuple[str, str]:
    number = protocol_number(rule)
    if number is not None:
        return _PROTOCOLS[number], ""
    return rule.protocol, f" port {','.join(range_text(entry, ':') for entry in rule.ports)}"

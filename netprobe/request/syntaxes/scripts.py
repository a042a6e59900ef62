"""Shell scripts of iptables and ip6tables, which insert rules (iptables-extensions(8)), and of ufw.

ufw 0.36 or later: ``prepend`` puts a rule before those of its own family.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.request.services import echo_type, protocol_number, range_text, split_ports
from netprobe.request.syntaxes.common import (
    choose_chain,
    direction,
    word_state,
    write_script,
    write_unless,
)

# A multiport match, and a rule of ufw, takes so many ports; a range counts as two.
_MOST_PORTS = 15
_VERDICTS = {"allow": "ACCEPT", "deny": "DROP"}
# The IP protocols that ufw knows, beside tcp and udp.
_PROTOCOLS = {2: "igmp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 112: "vrrp"}
# The direction is not written for what comes in.
_VERBS = {"forward": ("route ", ""), "input": ("", ""), "output": ("", "out ")}


def iptables(request: FirewallRequest) -> Iterator[str]:
    """Give the script."""
    return write_script(request, partial(_write_iptables, request, "-I"), into="iptables=CHAIN")


def iptables_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that deletes the same rules."""
    return write_script(request, partial(_write_iptables, request, "-D"), undo=True)


def _write_iptables(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    """Give commands; the lists of addresses of one become a rule for each pair."""
    program = "ip6tables" if rule.family == 6 else "iptables"
    own = direction(rule, place).upper()
    chain = choose_chain(request, rule, place, request.into_of("iptables", ""), own)
    sources = ",".join(end.address for end in rule.sources)
    destinations = ",".join(end.address for end in rule.destinations)
    end = f'-m comment --comment "{request.mark(rule)}" -j {_VERDICTS[rule.action]}'
    for part in split_ports(rule, _MOST_PORTS):
        match = f"-s {sources} -d {destinations} {_match_service(part)}"
        yield f"{program} -w {verb} {chain} {match} {end}"


def _match_service(rule: FirewallRule) -> str:
    number = protocol_number(rule)
    if number is not None:
        return f"-p {number}"
    if rule.protocol == "icmp":
        name, option = (
            ("ipv6-icmp", "--icmpv6-type") if rule.family == 6 else ("icmp", "--icmp-type")
        )
        return f"-p {name} {option} {echo_type(rule)}"
    side = "--sports" if rule.answers else "--dports"
    ports = ",".join(range_text(entry, ":") for entry in rule.ports)
    state = " -m conntrack --ctstate ESTABLISHED" if rule.answers else ""
    return f"-p {rule.protocol} -m multiport {side} {ports}{state}"


def ufw(request: FirewallRequest) -> Iterator[str]:
    """Give the script."""
    return write_script(request, partial(_write_ufw, request, "prepend "))


def ufw_undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that deletes the same rules."""
    return write_script(request, partial(_write_ufw, request, "delete "), undo=True)


def _write_ufw(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    return write_unless(rule, _why_not_ufw(rule), _write_ufw_commands(request, verb, rule, place))


def _why_not_ufw(rule: FirewallRule) -> str | None:
    number = protocol_number(rule)
    if rule.answers:
        return word_state(rule, "ufw keeps")
    if rule.protocol == "icmp":
        return "ufw has no words for ICMP: it stands in /etc/ufw/before.rules"
    if number is not None and number not in _PROTOCOLS:
        return "ufw does not know this protocol: write it into /etc/ufw/before.rules"
    return None


def _write_ufw_commands(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    before, way = _VERBS[direction(rule, place)]
    action = "allow" if rule.action == "allow" else "deny"
    for part in split_ports(rule, _MOST_PORTS):
        protocol, ports = _name_service(part)
        for source, destination in product(rule.sources, rule.destinations):
            if source.host != destination.host:
                yield (
                    f"ufw {before}{verb}{action} {way}proto {protocol} "
                    f"from {source.address} to {destination.address}{ports} "
                    f"comment '{request.mark(rule)}'"
                )


def _name_service(rule: FirewallRule) -> tuple[str, str]:
    number = protocol_number(rule)
    if number is not None:
        return _PROTOCOLS[number], ""
    return rule.protocol, f" port {','.join(range_text(entry, ':') for entry in rule.ports)}"

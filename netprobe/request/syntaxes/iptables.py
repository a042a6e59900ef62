"""iptables and ip6tables: a shell script that inserts rules (iptables-extensions(8))."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.request.services import echo_type, protocol_number, range_text, split_ports
from netprobe.request.syntaxes.common import direction, write_script

# A multiport match takes so many ports; a range counts as two.
_MOST_PORTS = 15
_VERDICTS = {"allow": "ACCEPT", "deny": "DROP"}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the script."""
    return write_script(request, partial(_write_commands, request, "-I"))


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that deletes the same rules."""
    return write_script(request, partial(_write_commands, request, "-D"), undo=True)


def _write_commands(
    request: FirewallRequest, verb: str, rule: FirewallRule, place: RulePlace
) -> Iterator[str]:
    """Give commands; the lists of addresses of one become a rule for each pair."""
    program = "ip6tables" if rule.family == 6 else "iptables"
    chain = request.into_of("iptables", direction(rule, place).upper())
    sources = ",".join(end.address for end in rule.sources)
    destinations = ",".join(end.address for end in rule.destinations)
    end = f'-m comment --comment "{request.mark(rule)}" -j {_VERDICTS[rule.action]}'
    for part in split_ports(rule, _MOST_PORTS):
        match = f"-s {sources} -d {destinations} {_write_service(part)}"
        yield f"{program} -w {verb} {chain} {match} {end}"


def _write_service(rule: FirewallRule) -> str:
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

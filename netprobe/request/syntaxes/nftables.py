"""nftables: rules that are inserted into the chain that drops (nft(8)).

A chain of its own that accepts would open nothing: the packet still meets the chain that drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd, RulePlace
from netprobe.request.safe import plain
from netprobe.request.services import echo_type, protocol_number, range_text
from netprobe.request.syntaxes.common import (
    cannot,
    choose_chain,
    direction,
    heading,
    sections,
    write_sections,
)

_DEFAULT = "inet/filter"
_INTO = "FAMILY/TABLE[/CHAIN]"
_VERDICTS = {"allow": "accept", "deny": "drop"}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give a file for ``nft -f``."""

    def write(rule: FirewallRule, place: RulePlace) -> Iterator[str]:
        chain = _chain_of(request, rule, place)
        if chain.split()[0] == ("ip" if rule.family == 6 else "ip6"):
            yield cannot(rule, f"a table of family {chain.split()[0]} does not hold it")
        else:
            end = f'counter {_VERDICTS[rule.action]} comment "{request.mark(rule)}"'
            yield f"insert rule {chain} {_write_match(rule)} {end}"

    family, table, *_ = request.into_of("nftables", _DEFAULT).split("/", 2)
    yield from heading(request, into=f"nftables={_INTO}")
    yield f"# the rules go into table {plain(family)} {plain(table)}; nft list tables lists all"
    yield from write_sections(request, write)


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give a shell script: nft deletes by handles, which only the device knows."""
    yield "# Run it by: sh FILE (nft -f takes no such file). It asks nft for the rules' handles."
    yield from heading(request, undo=True)
    places = [
        (_chain_of(request, rule, section.enforcer.place), request.mark(rule))
        for section in sections(request)
        for rule in section.rules
    ]
    for chain, mark in dict.fromkeys(places):
        yield f"nft -a list chain {chain} 2>/dev/null |"
        yield f"    sed -n 's/.*comment \"{mark}\".* # handle \\([0-9]*\\)$/\\1/p' |"
        yield f'    while read -r handle; do nft delete rule {chain} handle "$handle"; done'


def _chain_of(request: FirewallRequest, rule: FirewallRule, place: RulePlace) -> str:
    """``inet filter forward``; --into may leave the chain to the place of the rule."""
    family, table, *chain = request.into_of("nftables", _DEFAULT).split("/", 2)
    own = direction(rule, place)
    return " ".join((family, table, choose_chain(request, rule, place, "".join(chain), own)))


def _write_match(rule: FirewallRule) -> str:
    version = "ip6" if rule.family == 6 else "ip"
    ends = f"{version} saddr {_set_of(rule.sources)} {version} daddr {_set_of(rule.destinations)}"
    return f"{ends} {_write_service(rule)}"


def _set_of(ends: Sequence[RuleEnd]) -> str:
    return _write_list([end.address for end in ends])


def _write_list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{{ {', '.join(items)} }}"


def _write_service(rule: FirewallRule) -> str:
    number = protocol_number(rule)
    if number is not None:
        return f"meta l4proto {number}"
    if rule.protocol == "icmp":
        return f"{'icmpv6' if rule.family == 6 else 'icmp'} type {echo_type(rule)}"
    ports = _write_list([range_text(entry) for entry in rule.ports])
    if not rule.answers:
        return f"{rule.protocol} dport {ports}"
    # An answer has ACK or RST; a new connection from this port has neither.
    flags = " tcp flags & (ack | rst) != 0" if rule.protocol == "tcp" else ""
    return f"{rule.protocol} sport {ports}{flags}"

"""Object groups: what the two ends of rules are called on a device.

A name holds the role and a digest of the members. A group of another request never gets the same
name, so that adding members to it can open nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.model.inventory import Family
from netprobe.model.ports import text as ports_text
from netprobe.request.safe import digest_of, symbol
from netprobe.request.services import protocol_number


@dataclass(frozen=True, slots=True)
class AddressGroup:
    """The addresses of one end of a rule, all of one family."""

    name: str
    family: Family
    ends: tuple[RuleEnd, ...]


def address_group(
    request: FirewallRequest, family: Family, ends: Sequence[RuleEnd]
) -> AddressGroup:
    """Give the group of these addresses, named by the role that its hosts share."""
    role = _common_role([end.host for end in ends], request.roles)
    version = "_V6" if family == 6 else ""
    digest = digest_of(end.address for end in ends)
    return AddressGroup(f"NP_{symbol(role, 16)}{version}_{digest}", family, tuple(ends))


def end_groups(request: FirewallRequest, rule: FirewallRule) -> tuple[AddressGroup, AddressGroup]:
    """Give the groups of a rule's sources and of its destinations."""
    source = address_group(request, rule.family, rule.sources)
    return source, address_group(request, rule.family, rule.destinations)


def _common_role(hosts: Sequence[str], roles: Mapping[str, Sequence[str]]) -> str:
    """Give the role that all of them have and the fewest others do; a host's own name if alone."""
    if len(set(hosts)) == 1:
        return hosts[0]
    shared = set.intersection(*(set(roles.get(host, ())) for host in hosts))
    sizes = {role: sum(role in some for some in roles.values()) for role in shared}
    return min(sorted(shared), key=sizes.__getitem__) if shared else "hosts"


def address_groups(request: FirewallRequest, rules: Iterable[FirewallRule]) -> list[AddressGroup]:
    """Give every group that these rules use, each once, in their order."""
    groups = (group for rule in rules for group in end_groups(request, rule))
    return list({group.name: group for group in groups}.values())


def port_group(rule: FirewallRule) -> str:
    """Name the group of a rule's ports."""
    digest = digest_of([rule.protocol, ports_text(rule.ports)])
    return f"NP_{rule.protocol.upper()}_{digest}"


def port_groups(rules: Iterable[FirewallRule]) -> Mapping[str, FirewallRule]:
    """Give the names of these rules' groups of ports, each with a rule that has these ports."""
    return {port_group(rule): rule for rule in rules if rule.ports}


def object_name(address: str) -> str:
    """Give the name of one address, for devices whose groups hold named objects."""
    return f"NP_{address}"


def service_name(rule: FirewallRule) -> str:
    """Give the name of a rule's service, for devices that name each of them."""
    if rule.ports:
        return port_group(rule)
    number = protocol_number(rule)
    return f"NP_IP_{number}" if number is not None else f"NP_ECHO{rule.family}"

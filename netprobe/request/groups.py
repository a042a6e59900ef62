"""Object groups: what the two ends of rules are called on a device.

A name holds the role and a digest of the members. A group of another request never gets the same
name, so that adding members to it can open nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.model.inventory import Family
from netprobe.model.ports import text as ports_text
from netprobe.request.safe import digest_of, symbol
from netprobe.request.services import protocol_number


class AddressGroup(Struct, frozen=True):
    """The addresses of one end of a rule, all of one family."""

    name: str
    family: Family
    ends: tuple[RuleEnd, ...]


def address_group(
    request: FirewallRequest, family: Family, ends: Sequence[RuleEnd]
) -> AddressGroup:
    """Give the group of these addresses, named by what its hosts are."""
    name = _name_hosts([end.host for end in ends], request.roles)
    version = "_V6" if family == 6 else ""
    digest = digest_of(end.address for end in ends)
    return AddressGroup(f"NP_{symbol(name, 16)}{version}_{digest}", family, tuple(ends))


def end_groups(request: FirewallRequest, rule: FirewallRule) -> tuple[AddressGroup, AddressGroup]:
    """Give the groups of a rule's sources and of its destinations."""
    source = address_group(request, rule.family, rule.sources)
    return source, address_group(request, rule.family, rule.destinations)


def _name_hosts(hosts: Sequence[str], roles: Mapping[str, Sequence[str]]) -> str:
    """Name hosts by the role that these and no others have, else by what each of them is itself.

    A role that others have too would name more than there is; a host alone has its own name.
    """
    if len(set(hosts)) == 1:
        return hosts[0]
    known = [role for host in hosts for role in roles.get(host, ())]
    of_role = {role: {host for host, some in roles.items() if role in some} for role in known}
    exact = next((role for role in known if of_role[role] == set(hosts)), None)
    own = dict.fromkeys(roles[host][0] for host in hosts if roles.get(host))
    return exact or "_".join(own) or "hosts"


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

"""Zones: hosts that firewalls are supposed to treat alike."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_network

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Address, Family, Host, Inventory
from netprobe.model.matrix import fold_role

# Of a host without a zone of its own, its network is one.
NETWORK_BITS = {4: 24, 6: 64}


def zone_by_groups(inventory: Inventory, patterns: Sequence[str]) -> Inventory:
    """Give the inventory whose hosts have the group that a pattern matches as their zone.

    Groups are those of Ansible, and roles of any inventory. Raises RequestError where a pattern
    matches no group, or two groups of one host.
    """
    if not patterns:
        return inventory
    problems = [
        f"--zone-groups {pattern}: no group or role of any host matches it"
        for pattern in patterns
        if not any(_match_groups(host, [pattern]) for host in inventory.hosts)
    ]
    hosts = []
    for host in inventory.hosts:
        found = _match_groups(host, patterns)
        if len(found) > 1:
            problems.append(
                f"--zone-groups: {host.name} is in {' and '.join(found)}, expected one zone a host"
            )
        hosts.append(replace(host, zone=found[0]) if found else host)
    if problems:
        raise RequestError("\n".join(problems))
    return replace(inventory, hosts=tuple(hosts))


def _match_groups(host: Host, patterns: Sequence[str]) -> list[str]:
    folded = [fold_role(pattern) for pattern in patterns]
    return [
        role
        for role in dict.fromkeys(host.roles)
        if any(fnmatchcase(fold_role(role), pattern) for pattern in folded)
    ]


def zone_of_end(host: Host, address: Address) -> str:
    """Give the zone of a destination: its own, else its network; a name is a zone of its own."""
    return host.zone or _network_of(address) or host.name


def zone_of_source(host: Host, family: Family | None) -> str:
    """Give the zone that probes of this family start in."""
    if host.zone:
        return host.zone
    known = (*host.source_addresses, *host.addresses)
    some = [one for one in known if one.family and family in (None, one.family)]
    return next(filter(None, map(_network_of, some)), None) or host.name


def _network_of(address: Address) -> str | None:
    if address.family is None:
        return None
    bits = NETWORK_BITS[address.family]
    return str(ip_network(f"{address.text.partition('%')[0]}/{bits}", strict=False))

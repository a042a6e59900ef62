"""Address families: which a requirement asks for, and which hosts have."""

from __future__ import annotations

from netprobe.model.inventory import Family, Host
from netprobe.model.matrix import Requirement

FAMILIES: tuple[Family | None, ...] = (4, 6, None)


def list_families(requirement: Requirement) -> tuple[Family | None, ...]:
    """List the families of its flows; which a name has is not known before it is resolved."""
    return FAMILIES if requirement.family is None else (requirement.family, None)


def speaks_family(host: Host, family: Family) -> bool:
    """A host known by name only may speak both; then its own routing table decides."""
    families = {address.family for address in (*host.addresses, *host.source_addresses)}
    return family in families or families == {None}


def group_by_families(hosts: tuple[Host, ...]) -> dict[frozenset[Family | None], list[str]]:
    """Group hosts, by their names, by the families of their addresses."""
    groups: dict[frozenset[Family | None], list[str]] = {}
    for host in hosts:
        key = frozenset(address.family for address in host.addresses)
        groups.setdefault(key, []).append(host.name)
    return groups

"""Which hosts have which roles, implied ones included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import Matrix, Role


def closure(roles: Iterable[str], known: Mapping[str, Role]) -> frozenset[str]:
    """These roles and everything they imply, transitively; unknown ones are left out."""
    found: set[str] = set()
    todo = [role for role in roles if role in known]
    while todo:
        role = todo.pop()
        if role not in found:
            found.add(role)
            todo.extend(name for name in known[role].implies if name in known)
    return frozenset(found)


def hosts_by_role(matrix: Matrix, inventory: Inventory) -> dict[str, tuple[Host, ...]]:
    """For every role of the matrix its hosts, in inventory order."""
    members: dict[str, list[Host]] = {name: [] for name in matrix.roles}
    for host in inventory.hosts:
        for role in closure(host.roles, matrix.roles):
            members[role].append(host)
    return {role: tuple(hosts) for role, hosts in members.items()}


def hosts_of(roles: Iterable[str], members: Mapping[str, tuple[Host, ...]]) -> tuple[Host, ...]:
    """The hosts that have any of the roles, each once, in the order of the first role's hosts."""
    unique = {host.name: host for role in roles for host in members[role]}
    return tuple(unique.values())

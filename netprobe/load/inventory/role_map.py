"""Roles by other names: ``roles_map:`` of inventories and ``--role`` on the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from netprobe.errors import Problem
from netprobe.load.yaml.wording import unknown
from netprobe.model.inventory import Inventory, RolesMap
from netprobe.model.matrix import fold_role


def map_roles(inventory: Inventory, texts: Sequence[str], problems: list[Problem]) -> Inventory:
    """Give every host the roles that its own stand for; ``--role`` wins over the inventory."""
    known = sorted({role for host in inventory.hosts for role in host.roles})
    wanted = {**inventory.roles_map, **_read_options(texts, known, problems)}
    if not wanted:
        return inventory
    hosts = (
        replace(host, roles=tuple(dict.fromkeys(_translate_roles(host.roles, wanted))))
        for host in inventory.hosts
    )
    return replace(inventory, hosts=tuple(hosts))


def check_role_options(
    texts: Sequence[str], words: Collection[str], roles: Sequence[str]
) -> Iterator[Problem]:
    """Give a problem for every role that ``--role`` maps to and no matrix knows by a word."""
    for text in texts:
        for target in filter(None, text.partition("=")[2].split(",")):
            if fold_role(target) not in words:
                yield Problem(f"--role {text}", 0, 0, unknown("role", target, roles))


def _translate_roles(roles: Sequence[str], wanted: RolesMap) -> Iterator[str]:
    for role in roles:
        yield from wanted.get(fold_role(role), (role,))


def _read_options(
    texts: Sequence[str], known: Sequence[str], problems: list[Problem]
) -> Mapping[str, tuple[str, ...]]:
    """Read ``ROLE=ROLE[,ROLE]``; several of one role add up."""
    found: dict[str, tuple[str, ...]] = {}
    roles = {fold_role(role) for role in known}
    for text in texts:
        name, _, given = text.partition("=")
        targets = tuple(part for part in given.split(",") if part)
        words = ""
        if not name or not targets:
            words = "this maps nothing, expected ROLE=ROLE, such as kube_node=node"
        elif fold_role(name) not in roles:
            words = f"no host of the inventory has it: {unknown('role', name, known)}"
        if words:
            problems.append(Problem(f"--role {text}", 0, 0, words))
        else:
            found[fold_role(name)] = (*found.get(fold_role(name), ()), *targets)
    return found

"""Whether the inventory's roles are those of the chosen matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from netprobe.errors import FileErrors, Problem
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, nearest, quoted, unknown
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix


def check_roles(chosen: Sequence[ChosenMatrix], inventory: Inventory) -> tuple[str, ...]:
    """Notes on roles that no chosen matrix knows, and the inventory's own notes.

    Raises FileErrors for hosts of a YAML inventory that have no known role at all.
    """
    problems: list[Problem] = []
    notes = read_roles(chosen, inventory, problems)
    if problems:
        raise FileErrors(problems)
    return notes


def read_roles(
    chosen: Sequence[ChosenMatrix], inventory: Inventory, problems: list[Problem]
) -> tuple[str, ...]:
    """As :func:`check_roles`, but problems are added to a list."""
    known = {role for one in chosen for role in one.matrix.roles}
    names = listed(one.matrix.name for one in chosen)
    useless = [host for host in inventory.hosts if not known & set(host.roles)]
    problems.extend(_no_role(host, known, names) for host in useless if host.place)
    refused = {host.name for host in useless if host.place}
    ours = [host for host in inventory.hosts if host.name not in refused]
    return (*inventory.notes, *_note_unknown_roles(ours, known, names))


def _no_role(host: Host, known: Collection[str], names: str) -> Problem:
    if len(host.roles) == 1:
        words = unknown("role", host.roles[0], sorted(known))
    else:
        roles = listed(quoted(role) for role in host.roles)
        words = f"none of its roles {roles} is known, expected one of: {listed(sorted(known))}"
    return problem_at(host.place, f"host {quoted(host.name)} has no role of {names}: {words}")


def _note_unknown_roles(hosts: Sequence[Host], known: Collection[str], names: str) -> Iterator[str]:
    """A sentence for each role that looks misspelt, and one for all others."""
    others: dict[str, int] = {}
    for host in hosts:
        for role in host.roles:
            if role not in known:
                others[role] = others.get(role, 0) + 1
    far: list[str] = []
    for role, count in others.items():
        near = nearest(role, known)
        if near:
            hosts_word = "host" if count == 1 else "hosts"
            meant = " or ".join(quoted(name) for name in near)
            yield (
                f"role {quoted(role)} of {count} {hosts_word} is unknown to {names}; "
                f"did you mean {meant}?"
            )
        else:
            far.append(role)
    if far:
        yield f"roles of the inventory that {names} does not know: {listed(far)}"

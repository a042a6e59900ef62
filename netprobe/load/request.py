"""Everything that a run reads: one error holds the problems of all its files and options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventory.discover import read_inventories
from netprobe.load.inventory.loopback import loopback_problems
from netprobe.load.matrix.chosen_settings import notes_of_settings, read_settings_of_run
from netprobe.load.matrix.file import read_matrices
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, nearest, quoted, unknown
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix


def load_request(
    matrices: Sequence[str], inventories: Sequence[str], sets: Sequence[str]
) -> tuple[tuple[ChosenMatrix, ...], Inventory, tuple[str, ...]]:
    """Load the chosen matrices, the inventory and the notes; FileErrors with every problem of all.

    Roles and settings are compared only where all matrices could be read: those of a broken matrix
    would all be called unknown.
    """
    problems: list[Problem] = []
    read = read_matrices(matrices, problems)
    whole = not problems
    inventory = read_inventories(inventories, problems)
    if not whole:
        raise FileErrors(problems)
    chosen = read_settings_of_run(read, inventory, sets, problems)
    notes = (*notes_of_settings(read, inventory), *check_roles(chosen, inventory, problems))
    roles = {role for matrix in read for role in matrix.roles}
    of_ansible = (host for host in inventory.hosts if not host.place and roles & set(host.roles))
    problems.extend(loopback_problems(inventory.hosts, of_ansible))
    if problems:
        raise FileErrors(problems)
    return chosen, inventory, notes


def check_roles(
    chosen: Sequence[ChosenMatrix], inventory: Inventory, problems: list[Problem]
) -> tuple[str, ...]:
    """Notes, also on unknown roles; a host of a YAML inventory must have a known one."""
    known = sorted({role for one in chosen for role in one.matrix.roles})
    names = listed(one.matrix.name for one in chosen)
    unknown_roles: Counter[str] = Counter()
    for host in inventory.hosts:
        if host.place and not set(known) & set(host.roles):
            words = f"host {quoted(host.name)} has no role of {names}"
            problems.append(problem_at(host.place, f"{words}: {_word_no_role(host.roles, known)}"))
        else:
            unknown_roles.update(role for role in host.roles if role not in known)
    return (*inventory.notes, *_note_unknown_roles(unknown_roles, known, names))


def _word_no_role(roles: Sequence[str], known: Collection[str]) -> str:
    if len(roles) == 1:
        return unknown("role", roles[0], known)
    given = listed(quoted(role) for role in roles)
    return f"none of its roles {given} is known, expected one of: {listed(known)}"


def _note_unknown_roles(
    counts: Mapping[str, int], known: Collection[str], names: str
) -> Iterator[str]:
    """Give a sentence for each role that looks misspelt, and one for all others."""
    far: list[str] = []
    for role, count in counts.items():
        near = nearest(role, known)
        if not near:
            far.append(role)
            continue
        words = f"role {quoted(role)} of {count} {'host' if count == 1 else 'hosts'} is unknown"
        meant = " or ".join(quoted(name) for name in near)
        yield f"{words} to {names}; did you mean {meant}?"
    if far:
        yield f"roles of the inventory that {names} does not know: {listed(far)}"

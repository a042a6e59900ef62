"""Everything that a run reads: one error holds the problems of all its files and options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventory.discover import check_role_options, read_inventories
from netprobe.load.inventory.suspects import (
    address_problems,
    placeholder_notes,
    placeholder_problems,
)
from netprobe.load.layer_roles import follow_platform, note_apart
from netprobe.load.manifest.manifests import (
    NO_MANIFESTS,
    GivenManifests,
    apply_manifests,
    read_manifests,
)
from netprobe.load.matrix.bundled import bundled_names
from netprobe.load.matrix.chosen_settings import notes_of_settings, read_settings_of_run
from netprobe.load.matrix.file import read_matrices
from netprobe.load.role_vantages import apply_role_vantages
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, quoted, unknown
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix, Matrix, fold_role
from netprobe.model.names import nearest

_WAY = " (`roles_map:` or --role says what another name stands for)"


def load_request(
    matrices: Sequence[str],
    inventories: Sequence[str],
    sets: Sequence[str],
    role_options: Sequence[str] = (),
    *,
    manifests: GivenManifests = NO_MANIFESTS,
    probing: bool = False,
) -> tuple[tuple[ChosenMatrix, ...], Inventory, tuple[str, ...]]:
    """Load the chosen matrices, the inventory and the notes; FileErrors with every problem of all.

    ``probing``: packets will be sent, so that addresses must be those of real hosts.
    Roles and settings are compared only where all matrices could be read: those of a broken matrix
    would all be called unknown.
    """
    problems: list[Problem] = []
    as_given = read_matrices(matrices, problems)
    read = follow_platform(as_given)
    whole = not problems
    inventory = read_inventories(inventories, problems, role_options)
    given = read_manifests(manifests, problems)
    if not whole:
        raise FileErrors(problems)
    inventory, said = apply_manifests(given, read, inventory, sets, problems)
    inventory = apply_role_vantages(read, inventory)
    chosen = read_settings_of_run(read, inventory, sets, problems, said)
    notes = (
        *notes_of_settings(read, inventory),
        *check_roles(chosen, inventory, problems),
        *note_apart(as_given, inventory),
    )
    words = {word for matrix in read for word in matrix.role_words()}
    names = sorted({role for matrix in read for role in matrix.roles})
    problems.extend(check_role_options(role_options, words, names))
    of_ansible = [
        host
        for host in inventory.hosts
        if not host.place and words.intersection(map(fold_role, host.roles))
    ]
    problems.extend(address_problems(inventory.hosts, of_ansible))
    if probing:
        problems.extend(placeholder_problems(inventory.hosts))
    if problems:
        raise FileErrors(problems)
    return chosen, inventory, (*notes, *placeholder_notes(inventory.hosts))


def check_roles(
    chosen: Sequence[ChosenMatrix], inventory: Inventory, problems: list[Problem]
) -> tuple[str, ...]:
    """Notes, also on unknown roles; a host of a YAML inventory must have a known one, or balance.

    Where `roles_map:` gave it an unknown one, that line is told once, and not every host.
    """
    known = sorted({role for one in chosen for role in one.matrix.roles})
    words = {word for one in chosen for word in one.matrix.role_words()}
    names = listed(one.matrix.name for one in chosen)
    mapped = {role: name for name, roles in inventory.roles_map.items() for role in roles}
    told: set[str] = set()
    unknown_roles: Counter[str] = Counter()
    for host in inventory.hosts:
        strange = [role for role in host.roles if fold_role(role) not in words]
        lines = [mapped[role] for role in strange if mapped.get(role) in inventory.map_places]
        if host.place and len(strange) == len(host.roles) and lines:
            if lines[0] not in told:
                told.add(lines[0])
                who = f"roles_map gives {quoted(host.name)} no role of {names}"
                place = inventory.map_places[lines[0]]
                problems.append(problem_at(place, f"{who}: {_word_no_role(strange, known, '')}"))
        elif host.place and len(strange) == len(host.roles) and not host.balances and not host.free:
            who = f"host {quoted(host.name)} has no role of {names}"
            why = f"{_word_no_role(host.roles, known)}{_name_layers(host.roles)}"
            problems.append(problem_at(host.place, f"{who}: {why}"))
        else:
            unknown_roles.update(strange)
    return (*inventory.notes, *_note_unknown_roles(unknown_roles, known, names))


def _word_no_role(roles: Sequence[str], known: Collection[str], way: str = _WAY) -> str:
    if len(roles) == 1:
        return f"{unknown('role', roles[0], known)}{way}"
    words = f"none of its roles {listed(quoted(role) for role in roles)} is known"
    near = dict.fromkeys(name for role in roles for name in nearest(role, known))
    if near:
        return f"{words}, did you mean {' or '.join(map(quoted, near))}?{way}"
    return f"{words}, expected one of: {listed(known)}{way}"


@cache
def _read_layers() -> tuple[Matrix, ...]:
    return tuple(one for one in read_matrices(bundled_names(), []) if one.layer)


def _name_layers(roles: Sequence[str]) -> str:
    """Name the bundled layers that have a role of the host: one of them may be forgotten."""
    found = [
        one.name
        for one in _read_layers()
        for role in [one.role_words().get(fold_role(word), "") for word in roles]
        if role and one.roles[role].common is None
    ]
    names = " or ".join(dict.fromkeys(found))
    return f"; the layer {names} has it: choose that matrix, too" if names else ""


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

"""Everything that a run reads: one error holds the problems of all its files and options."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventory.discover import read_inventories
from netprobe.load.inventory.loopback import loopback_problems
from netprobe.load.inventory.roles import read_roles
from netprobe.load.matrix.chosen_settings import notes_of_settings, read_settings_of_run
from netprobe.load.matrix.file import read_matrices
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix


def load_request(
    matrices: Sequence[str], inventories: Sequence[str], sets: Sequence[str]
) -> tuple[tuple[ChosenMatrix, ...], Inventory, tuple[str, ...]]:
    """The chosen matrices, the inventory and the notes; FileErrors with every problem of all.

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
    notes = (*notes_of_settings(read, inventory), *read_roles(chosen, inventory, problems))
    problems.extend(loopback_problems(inventory.hosts, _of_ansible(chosen, inventory)))
    if problems:
        raise FileErrors(problems)
    return chosen, inventory, notes


def _of_ansible(chosen: Sequence[ChosenMatrix], inventory: Inventory) -> list[Host]:
    """The hosts of Ansible's that take part."""
    known = {role for one in chosen for role in one.matrix.roles}
    return [host for host in inventory.hosts if not host.place and known & set(host.roles)]

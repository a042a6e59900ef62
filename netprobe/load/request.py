"""Everything that a run reads: one error holds the problems of all its files and options."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventories import read_inventories
from netprobe.load.matrix_file import read_matrices
from netprobe.load.roles import read_roles
from netprobe.load.settings import notes_of_settings, read_settings_of_run
from netprobe.model.inventory import Inventory
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
    if problems:
        raise FileErrors(problems)
    return chosen, inventory, notes

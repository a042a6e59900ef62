"""Loads manifests beside a small inventory, as a run does.

Matrices are read once for all tests: they do not change, and are most of what a run reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventory.discover import read_inventories
from netprobe.load.manifest.manifests import GivenManifests, apply_manifests, read_manifests
from netprobe.load.matrix.chosen_settings import read_settings_of_run
from netprobe.load.matrix.file import load_matrices
from netprobe.load.request import check_roles
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix, Matrix, SettingValue

SAMPLES = Path(__file__).parent / "samples"
WORKERS = """\
schema: netprobe.inventory/1
hosts:
  worker-0: {address: 10.0.0.20, roles: [worker]}
  worker-1: {address: 10.0.0.21, roles: [worker]}
"""

NODES = """\
schema: netprobe.inventory/1
hosts:
  n: {address: 10.9.9.2, roles: [node]}
"""


@cache
def read_bundled(name: str) -> Matrix:
    """A bundled matrix."""
    (matrix,) = load_matrices([name])
    return matrix


def inventory_of(matrix: str) -> str:
    """One host whose role the matrix knows."""
    of_nodes = ("openshift-host-ports", "openshift-upi", "dce", "deckhouse-nodes")
    return NODES if matrix in of_nodes else WORKERS


@dataclass(frozen=True)
class Loaded:
    """What a run would have: the matrix's settings, the inventory, and the notes."""

    chosen: ChosenMatrix
    inventory: Inventory
    notes: tuple[str, ...]

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """The matrix's settings."""
        return self.chosen.settings

    @property
    def gives(self) -> list[str]:
        """What was made of each thing that was taken."""
        return [one.gives for one in self.inventory.taken]

    def host(self, name: str) -> Host:
        """The host of this name."""
        (found,) = (host for host in self.inventory.hosts if host.name == name)
        return found

    def addresses(self) -> dict[str, tuple[list[str], tuple[str, ...]]]:
        """Addresses and roles of the hosts that no inventory has an agent for."""
        return {
            host.name: ([one.text for one in host.addresses], host.roles)
            for host in self.inventory.hosts
            if host.vantage.kind == "none"
        }


@dataclass(frozen=True)
class Desk:
    """A folder for files; the working folder, so that places are short."""

    folder: Path

    def write(self, name: str, text: str) -> str:
        """Write a file and give its name."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def sample(self, name: str, *changes: tuple[str, str]) -> str:
        """Copy a sample with these texts replaced, each of which must be there."""
        text = (SAMPLES / name).read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return self.write(name, text)

    def load(
        self,
        matrix: str,
        *files: str,
        inventory: str = WORKERS,
        sets: Iterable[str] = (),
        networks: tuple[str, ...] = (),
    ) -> Loaded:
        """Load as a run does. Raises FileErrors."""
        problems: list[Problem] = []
        matrices = [read_bundled(matrix)]
        hosts = read_inventories([self.write("inventory.yaml", inventory)], problems)
        manifests = read_manifests(GivenManifests(files, networks), problems)
        found, said = apply_manifests(manifests, matrices, hosts, list(sets), problems)
        (chosen,) = read_settings_of_run(matrices, found, list(sets), problems, said)
        notes = check_roles((chosen,), found, problems)
        if problems:
            raise FileErrors(problems)
        return Loaded(chosen, found, notes)

    def problems(self, matrix: str, *files: str, **more: object) -> list[str]:
        """The problems of files that must have some, as they are printed."""
        with pytest.raises(FileErrors) as caught:
            self.load(matrix, *files, **more)  # type: ignore[arg-type]  # as load takes them
        assert caught.value.exit_status == 2
        return [str(problem) for problem in caught.value.problems]

"""The matrices of docs/write-a-matrix.md: the one to copy, and the one that the page tried."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from netprobe.load.matrix.file import load_matrices
from tests.cli.command import netprobe

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
HOSTS = {"cp-0": "control-plane", "cp-1": "control-plane", "worker-0": "worker"}


def test_every_example_is_a_matrix() -> None:
    """Both load, and neither is a bundled one."""
    files = sorted(EXAMPLES.glob("*.yaml"))
    names = [matrix.name for matrix in load_matrices([str(path) for path in files])]

    assert names == ["canonical-kubernetes", "my-platform"]


def test_the_one_to_copy_has_what_a_matrix_needs() -> None:
    """Whoever copies it finds an example of each key that documents ask for."""
    (matrix,) = load_matrices([str(EXAMPLES / "matrix-to-copy.yaml")])
    rows = matrix.requirements

    assert all(one.stops and one.row and one.purpose for one in rows)
    for key in ("when", "probe", "process", "binds", "family", "optional", "warnings"):
        assert any(getattr(one, key) for one in rows if key != "when" or one.when.terms), key
    assert {one.expect for one in rows} == {"allowed", "denied"}
    assert {bool(one.icmp) for one in rows} == {True, False}


@pytest.mark.slow
def test_the_count_of_the_page(tmp_path: Path) -> None:
    """The page counts by hand what the command counts, and shows its line."""
    hosts = {
        name: {"address": f"10.0.0.{number}", "roles": [role]}
        for number, (name, role) in enumerate(HOSTS.items(), start=10)
    }
    text = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
    (tmp_path / "inventory.yaml").write_text(text)
    matrix = str(EXAMPLES / "canonical-kubernetes.yaml")
    done = netprobe("plan", "-m", matrix, "--count", cwd=tmp_path)

    # Eight rows of all nodes, eight of control planes: six from all, two of etcd; path MTU.
    assert done.stdout.startswith(f"{8 * 6 + 6 * 4 + 2 * 2 + 4} flows, ")
    assert done.stdout in (DOCS / "write-a-matrix.md").read_text(encoding="utf-8")

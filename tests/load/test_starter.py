"""What ``netprobe init`` prints is an inventory that works as it is."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from netprobe.load.matrix.bundled import bundled_names
from netprobe.load.matrix.file import load_matrices
from netprobe.load.request import load_request
from netprobe.load.starter import starter_inventory
from netprobe.model.matrix import choose_settings
from netprobe.plan.expand import make_plan

BASE = str(Path(__file__).parent / "good" / "base.yaml")


@pytest.mark.parametrize("name", [*bundled_names(), BASE])
def test_loads_and_plans(name: str, tmp_path: Path) -> None:
    """The printed inventory has no problems, keeps the defaults, and plans."""
    (matrix,) = load_matrices([name])
    path = tmp_path / "inventory.yaml"
    path.write_text(starter_inventory([matrix]))

    chosen, inventory, notes = load_request([name], [str(path)], [])

    assert ["`netprobe run` refuses them" in note for note in notes] == [True]
    assert chosen[0].settings == choose_settings(matrix, {}).settings
    assert {role for host in inventory.hosts for role in host.roles} == set(matrix.roles)
    plan = make_plan(chosen, inventory, date(2026, 11, 20), notes)
    assert plan.flow_count() > 0


def test_says_what_there_is() -> None:
    """Roles and settings stand there with their descriptions and values."""
    text = starter_inventory(load_matrices([BASE]))

    assert "#   master: A master. Is also: node.\n" in text
    assert "  # The CNI.\n  # one of: cilium, flannel\n  cni: cilium\n" in text
    assert '  version: "4.20"' in text or "  version: '4.20'" in text
    assert "  modules: [openvpn, metallb]\n" in text
    assert "netprobe run --matrix FILE -i inventory.yaml" in text


def test_several_matrices(tmp_path: Path) -> None:
    """An inventory for several matrices has all roles once; where they differ stands a comment."""
    names = ["hypershift-hcp", "okd-hcp"]
    path = tmp_path / "inventory.yaml"
    path.write_text(starter_inventory(load_matrices(names)))

    chosen, _, notes = load_request(names, [str(path)], [])

    assert ["`netprobe run` refuses them" in note for note in notes] == [True]
    assert [one.settings["platform"] for one in chosen] == ["aws", "aws"]
    assert "  # platform: aws   # as in hypershift-hcp\n" in path.read_text()
    assert path.read_text().count("  hcp-0:\n") == 1

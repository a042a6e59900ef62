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


PLATFORM = """\
schema: netprobe.matrix/1
name: platform
title: A platform
claims: {cni: {setting: cni}}
roles: {server: {common: control-plane}, agent: {common: worker}, bmc: {vantage: none}}
settings: {cni: {values: [canal, none], default: canal}}
requirements:
  - {id: api, from: agent, to: server, tcp: [6443]}
  - {id: media, from: bmc, to: server, tcp: [6180]}
"""
LAYER = """\
schema: netprobe.matrix/1
name: layer
title: Its network
layer: true
claims: {cni: cilium}
roles:
  control-plane: {common: control-plane, implies: [node]}
  worker: {common: worker, implies: [node]}
  node: {common: node}
  witness: {}
requirements:
  - {id: etcd, from: [worker, witness], to: control-plane, tcp: [2379]}
"""


def test_a_platform_with_its_layer(tmp_path: Path) -> None:
    """One host plays the parts of both, and is a node by them; what only the layer has gets a host,
    also alone."""
    for name, text in (("platform", PLATFORM), ("layer", LAYER)):
        (tmp_path / f"{name}.yaml").write_text(text)
    path = tmp_path / "inventory.yaml"
    files = [str(tmp_path / f"{name}.yaml") for name in ("platform", "layer")]
    path.write_text(starter_inventory(load_matrices(files)))
    chosen, inventory, notes = load_request(files, [str(path)], [])
    plan = make_plan(chosen, inventory, date(2026, 11, 20), notes)

    assert [host.name for host in inventory.hosts] == ["server-0", "agent-0", "bmc-0", "witness-0"]
    assert sorted((flow.source.name, flow.block.requirement.id) for flow in plan.flows()) == [
        ("agent-0", "api"), ("agent-0", "etcd"), ("witness-0", "etcd"),
    ]  # fmt: skip
    assert [one.source for one in plan.skipped] == ["bmc-0"]
    assert "  cni: none\n" in path.read_text()
    assert not any("contradiction" in note for note in plan.notes)

    path.write_text(starter_inventory(load_matrices(files[1:])))
    chosen, inventory, notes = load_request(files[1:], [str(path)], [])
    alone = make_plan(chosen, inventory, date(2026, 11, 20), notes)
    assert alone.flow_count() == 2
    assert inventory.hosts[2].name == "node-0"
    assert any(
        "layer is a layer: the rows of the platform are missing" in one for one in alone.notes
    )

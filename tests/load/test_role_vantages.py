"""Roles on whose hosts nothing can run, and hosts that say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.pipeline import make_plan
from netprobe.plan.select import Selection

MATRIX = """\
schema: netprobe.matrix/1
name: metal
title: Bare metal
roles:
  bmc: {vantage: none}
  board: {implies: [bmc]}
  node: {common: node}
requirements:
  - {id: media, from: bmc, to: node, tcp: [6180]}
  - {id: redfish, from: node, to: bmc, tcp: [443]}
  - {id: vrrp, from: node, to: node, ipproto: 112, multicast: 224.0.0.18}
"""
INVENTORY = """\
schema: netprobe.inventory/1
defaults: {vantage: local, become: sudo}
hosts:
  node-0: {address: 10.0.0.1, roles: [node]}
  node-1: {address: 10.0.0.2, roles: [k8s_cluster]}
  bmc-0: {address: 10.0.1.1, roles: [bmc]}
  bmc-1: {address: 10.0.1.2, roles: [board]}
  bmc-2: {address: 10.0.1.3, roles: [bmc], vantage: local}
  lb: {address: 10.0.1.4, roles: [node], vantage: none}
"""
REASON = "nothing can run on the source: its role bmc is vantage: none"


def test_nothing_runs_on_hosts_of_such_a_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A default of the inventory gives them no vantage, a word of their own does."""
    monkeypatch.chdir(tmp_path)
    Path("metal.yaml").write_text(MATRIX)
    Path("inventory.yaml").write_text(INVENTORY)
    plan = make_plan(["./metal.yaml"], ["inventory.yaml"], [], Selection())

    kinds = {name: host.vantage.kind for name, host in plan.hosts().items()}
    assert kinds == {
        **{"node-0": "local", "node-1": "local", "lb": "none"},
        **{"bmc-0": "none", "bmc-1": "none", "bmc-2": "local"},
    }
    media = [flow.source.name for flow in plan.flows() if flow.block.requirement.id == "media"]
    assert media == ["bmc-2"] * 3
    skipped = {one.source: one.reason for one in plan.skipped if one.requirement == "media"}
    assert skipped == {"bmc-0": REASON, "bmc-1": REASON}
    others = {one.source: one.reason for one in plan.skipped if one.requirement == "redfish"}
    assert others == {"lb": "the source is declared vantage: none"}
    (vrrp,) = [block for block in plan.blocks if block.requirement.id == "vrrp"]
    assert "the multicast group 224.0.0.18" in vrrp.warnings[0]

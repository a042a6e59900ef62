"""Several matrices in one run, as a user sees it: one flow, and all of its names."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import netprobe
from tests.ports import free_ports

# Ports of this test process.
SHARED = free_ports("127.0.0.1", socket.SOCK_STREAM, 3)
ALONE, CLOSED = SHARED + 1, SHARED + 2
ROLES = "roles: {node: {common: node}}"
BASE = f"""\
schema: netprobe.matrix/1
name: base
title: A platform
{ROLES}
requirements:
  - {{id: api, from: node, to: node, tcp: [{SHARED}], purpose: "the API", optional: true}}
"""
LAYER = f"""\
schema: netprobe.matrix/1
name: layer
title: Its network
layer: true
{ROLES}
requirements:
  - {{id: peers, from: node, to: node, tcp: ["{SHARED}-{ALONE}"], purpose: routes of pods}}
"""
HEALTH = f"""\
schema: netprobe.matrix/1
name: health
title: One of both
{ROLES}
requirements:
  - {{id: open, from: node, to: node, tcp: [{SHARED}], any_of: health}}
  - {{id: closed, from: node, to: node, tcp: [{CLOSED}], any_of: health}}
"""
INVENTORY = """\
schema: netprobe.inventory/1
defaults: {vantage: local}
hosts:
  a: {address: 127.0.0.1, roles: [k8s_cluster]}
  b: {address: 127.0.0.2, roles: [node]}
"""
BOTH = ("-m", "./base.yaml", "-m", "./layer.yaml")
Run = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A platform and a layer, and two hosts on loopback."""
    texts = {"base": BASE, "layer": LAYER, "health": HEALTH, "inventory": INVENTORY}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def run(folder: Path, *words: str, status: int = 0) -> Run:
    """The JSON report of a run, kept in ``run.json``."""
    done = netprobe("run", *words, "-o", "json", cwd=folder)
    assert done.returncode == status, done.stderr
    (folder / "run.json").write_text(done.stdout)
    found: Run = json.loads(done.stdout)
    return found


def names(found: Run, key: str = "results") -> set[tuple[str, ...]]:
    """Requirement, port and the names of other matrices of each result, or of each planned flow."""
    return {
        (one["matrix"], one["requirement"], *(also["requirement"] for also in one.get("also", ())))
        for one in found[key]
    }


@pytest.mark.slow
def test_one_flow_of_two_matrices(folder: Path) -> None:
    """It is counted once, required because one demands it, and found by any of its names."""
    planned = json.loads(netprobe("plan", *BOTH, "-o", "json", cwd=folder).stdout)
    assert planned["totals"]["flows"] == 4
    both, alone = ("base", "api", "peers"), ("layer", "peers")
    assert names(planned, "flows") == {both, alone}
    assert {one["optional"] for one in planned["flows"]} == {False}

    found = run(folder, *BOTH)
    assert found["summary"]["pass"] == 4
    assert names(found) == {both, alone}
    few = json.loads(netprobe("plan", *BOTH, "--only", "api", "-o", "json", cwd=folder).stdout)
    assert (few["totals"]["flows"], names(few, "flows")) == (2, {both})

    later = netprobe(
        "run", "-m", "./layer.yaml", "--baseline", "run.json", "-o", "json", cwd=folder
    )
    changes = json.loads(later.stdout)["changes"]
    assert (changes["unchanged"], changes["only_later"], changes["only_earlier"]) == (4, 0, 0)
    text = netprobe("report", "run.json", "-o", "wide", cwd=folder).stdout
    assert "the API; also: routes of pods (layer, peers)" in text


@pytest.mark.slow
def test_a_retry_asks_by_any_name(folder: Path) -> None:
    """Of a run of 0.1.0, which has the flow under both names, it is asked and told once."""
    first = run(folder, *BOTH, "--live", status=1)
    assert first["summary"]["blocked"] == 4
    twice = [
        {**one, "matrix": also["matrix"], "requirement": also["requirement"]}
        for one in first["results"]
        for also in one.pop("also", ())
    ]
    first["results"] += twice
    del first["requirements"], first["findings"]
    (folder / "old.json").write_text(json.dumps(first))

    again = run(folder, *BOTH, "--retry", "old.json")
    assert again["summary"]["pass"] == 4
    assert again["changes"]["fixed"] == 4
    assert again["changes"]["only_earlier"] == 0


@pytest.mark.slow
def test_one_row_is_enough(folder: Path) -> None:
    """What fails beside a row that passes is told, and decides nothing; alone it decides."""
    with socket.create_server(("127.0.0.1", SHARED)), socket.create_server(("127.0.0.2", SHARED)):
        found = run(folder, "-m", "./health.yaml", "--live")
        fates = {
            (one["requirement"], one["verdict"], one.get("spared")) for one in found["results"]
        }
        assert fates == {("open", "pass", None), ("closed", "blocked", "open")}
        assert (found["summary"]["blocked"], found["summary"]["spared"]) == (2, 2)
        text = netprobe("report", "run.json", cwd=folder).stdout
        assert "spared: open passes, and one of health is enough" in text
        alone = run(folder, "-m", "./health.yaml", "--live", "--only", "closed", status=1)
        assert alone["summary"]["spared"] == 0
    none = run(folder, "-m", "./health.yaml", "--live", status=1)
    assert [one["count"] for one in none["findings"]] == [4]

"""What the page of rehearsals prints is true: a network whose ports are open, with three faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lab.balancers import PORT, start_haproxy
from tests.lab.cli import ROOT, netprobe
from tests.lab.netlab import Lab
from tests.lab.printed import check_output, read_commands
from tests.lab.segments import Switch

PAGE = ROOT / "docs" / "rehearsal.md"
PROMPT = "lab$ netprobe "
NODES = {"cp1": 1, "cp2": 2, "cp3": 3, "worker": 11}
BALANCER, VIRTUAL = "10.96.0.50", "10.96.0.100"
# Full segments of TCP inside of VXLAN that the worker sends; netprobe's own large packets pass.
LOSES_LARGE = """
table bridge f {
  chain c {
    type filter hook forward priority 0;
    iifname p-worker ether type ip udp dport 8472 udp length > 1300 @th,312,8 6 drop
  }
}
"""
MATRIX = {
    "schema": "netprobe.matrix/1", "name": "site", "title": "A site",
    "roles": {"node": {}, "control-plane": {}, "api-lb": {"existing": True}},
    "requirements": [
        {"id": "vxlan", "from": "node", "to": "node", "udp": [8472], "probe": "vxlan",
         "purpose": "Pods of different nodes", "row": "1"},
        {"id": "api", "from": "node", "to": "api-lb", "tcp": [PORT],
         "purpose": "Kubernetes API", "row": "2"},
    ],
}  # fmt: skip


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def build(lab: Lab) -> None:
    """One switch: it loses large segments of one host's tunnels, the balancer's pool lacks a back
    end, and somebody has the address that will be the virtual one."""
    switch = Switch(lab, hosts=0)
    for name, number in (NODES | {"lb": 50, "stranger": 100}).items():
        switch.plug(name, number)
    lab.wait_until_ready()
    switch.switch.nft(LOSES_LARGE)
    servers = [f"{one} 10.96.0.{NODES[one]}:{PORT}" for one in ("cp1", "cp2")]
    start_haproxy(lab, lab["lb"], BALANCER, servers)


def write_files(lab: Lab) -> None:
    """The matrix and the inventory of the network."""
    roles = {one: ["node"] if one == "worker" else ["node", "control-plane"] for one in NODES}
    hosts: dict[str, Any] = {
        name: {
            "address": lab[name].address(4), "roles": roles[name],
            "vantage": {"command": lab[name].enter},
        }
        for name in NODES
    }  # fmt: skip
    hosts["lb"] = {
        "address": BALANCER, "roles": ["api-lb"], "vantage": "none", "balances": ["control-plane"],
    }  # fmt: skip
    hosts["vip"] = {"address": VIRTUAL, "roles": [], "vantage": "none", "free": True}
    lab.write("matrix.yaml", json.dumps(MATRIX))
    lab.write("inventory.yaml", yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts}))


@pytest.mark.full
@pytest.mark.lab
@pytest.mark.needs("haproxy")
def test_the_session_of_the_page_is_true(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rehearsals all passes; with them each fault is a finding, and all else passes."""
    build(lab)
    write_files(lab)
    monkeypatch.chdir(lab.folder)
    commands = read_commands(PAGE, PROMPT)

    assert len(commands) == 3
    for command, shown in commands:
        done = netprobe(*command.split(), limit_s=200)
        check_output(command, shown, done.stdout + done.stderr)

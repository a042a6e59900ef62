"""Packets without ports, which firewalls take for answers to those that went the other way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab
from tests.lab.test_truth import INPUT, table

pytestmark = pytest.mark.lab


def test_a_forgotten_rule_is_found_although_the_state_of_a_firewall_helps() -> None:
    """Each host's own firewall lets in only what it answers; its own probes are such."""
    with Lab() as lab:
        left, right = lab.namespace("left"), lab.namespace("right")
        lab.cable(left, "eth0", right, "eth0")
        hosts: dict[str, Any] = {}
        for last, part in enumerate((left, right), 2):
            part.ip(f"address add 10.1.0.{last}/24 dev eth0")
            part.nft(table(INPUT, "wall", "ct state established accept", "meta l4proto 4 drop"))
            vantage = {"command": part.enter}
            hosts[f"h{last}"] = {
                "addresses": [f"10.1.0.{last}"], "roles": ["node"], "vantage": vantage,
            }  # fmt: skip
        results = _run(lab, hosts)

    assert [one["verdict"] for one in results] == ["blocked", "pass"]
    assert results[0]["where"] == ["destination"]
    assert any("as answers" in text for text in results[1]["warnings"])


def _run(lab: Lab, hosts: dict[str, Any]) -> list[Any]:
    row = {"id": "ipip", "from": "node", "to": "node", "ipproto": [4], "purpose": "p", "row": "r"}
    matrix = {
        "schema": "netprobe.matrix/1", "name": "m", "title": "M", "roles": {"node": {}},
        "requirements": [row],
    }  # fmt: skip
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
    lab.wait_until_ready()
    paths: list[Path] = [
        lab.write("m.yaml", json.dumps(matrix)), lab.write("i.yaml", json.dumps(inventory)),
    ]  # fmt: skip
    done = netprobe("run", "-o", "json", "-m", str(paths[0]), "-i", str(paths[1]), "--retries", "2")
    return [one for one in done.results if one["requirement"] == "ipip"]

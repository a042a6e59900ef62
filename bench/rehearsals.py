"""Rehearsals of ten hosts on one switch: how long each takes, without the run around it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.command import best_row, make_entry, run_command
from bench.table import Row
from tests.lab.balancers import HTTPS_CHECK, PORT, start_haproxy
from tests.lab.netlab import Lab
from tests.lab.segments import VIP, Switch

HOSTS = 10
GOALS_S = {"overlay": 15.0, "balancer": 100.0, "segment": 8.0}
BALANCER = "10.96.0.50"
MATRIX = f"""\
schema: netprobe.matrix/1
name: rehearsed
title: What is rehearsed between ten hosts
roles: {{node: {{}}, api: {{}}, api-lb: {{existing: true}}}}
requirements:
  - {{id: vxlan, from: node, to: node, udp: [8472], probe: vxlan, purpose: bench}}
  - {{id: api, from: node, to: api-lb, tcp: [{PORT}], purpose: bench}}
"""
CHECK = "check check-ssl verify none inter 1s fall 3 rise 2"
# How HAProxy checks each of three back ends, and what is right to say of them.
POOLS = {
    "all go out and come in again": ((CHECK, CHECK, CHECK), "balancer-pool"),
    "one never goes out": ((CHECK, CHECK, ""), "balancer-never-removes"),
    "none goes out": (("", "", ""), "balancer-never-removes"),
}


def overlay(repeats: int) -> list[Row]:
    """A tunnel from each host to each other one."""
    with Lab() as lab:
        hosts = _list_hosts(Switch(lab, HOSTS), families=1)
        pairs = HOSTS * (HOSTS - 1)
        right = {"tunnel-transfer": pairs}
        return [_measure(lab, hosts, "overlay", f"{pairs} tunnels", right, repeats)]


def segment(repeats: int) -> list[Row]:
    """All addresses of the hosts, and a free one of each family."""
    with Lab() as lab:
        hosts = _list_hosts(Switch(lab, HOSTS), families=2)
        hosts["vip"] = {
            "addresses": [*VIP.values()], "roles": [], "vantage": "none", "free": True,
        }  # fmt: skip
        right = {"one-machine": 2 * HOSTS, "address-free": 2}
        work = f"{2 * len(hosts)} addresses"
        return [_measure(lab, hosts, "segment", work, right, repeats)]


def balancer() -> list[Row]:
    """A HAProxy that takes out each back end that fails, and two that do not."""
    rows = []
    for words, (checks, reason) in POOLS.items():
        with Lab() as lab:
            switch = Switch(lab, HOSTS)
            hosts = _list_hosts(switch, families=1)
            servers = []
            for host, check in zip(switch.hosts, checks, strict=False):
                hosts[host.name]["roles"].append("api")
                servers.append(f"{host.name} {host.address(4)}:{PORT} {check}")
            hosts["lb"] = {
                "addresses": [BALANCER], "roles": ["api-lb"], "vantage": "none",
                "balances": ["api"], "health": {PORT: {"https": "/readyz"}},
            }  # fmt: skip
            start_haproxy(lab, switch.plug("lb", 50), BALANCER, servers, back=HTTPS_CHECK)
            work = f"{len(servers)} back ends, {words}"
            rows.append(_measure(lab, hosts, "balancer", work, {reason: HOSTS}, 1))
    return rows


def _list_hosts(switch: Switch, families: int) -> dict[str, Any]:
    return {
        host.name: make_entry(host, "node") | {"addresses": host.addresses[:families]}
        for host in switch.hosts
    }


def _measure(
    lab: Lab, hosts: Mapping[str, Any], word: str, work: str, right: Mapping[str, int], repeats: int
) -> Row:
    """The seconds of the phase alone; wrong is how many flows lack to the right number of each
    reason."""
    runs = []
    for _ in range(repeats):
        run = run_command(lab.folder, MATRIX, hosts, lambda _: 0, options=[f"--rehearse={word}"])
        read = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
        told = [one["reason"] for one in read["results"] if one["requirement"].endswith(word)]
        wrong = (Counter(right) - Counter(told)).total()
        runs.append(replace(run, wall_s=read["phases"]["rehearsals"], wrong=wrong))
    return best_row(f"`--rehearse={word}`, {HOSTS} hosts, {work}", runs, GOALS_S[word])

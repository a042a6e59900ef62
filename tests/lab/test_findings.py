"""As many findings as the firewalls have rules, whatever each pair of roles requires."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

HOSTS = {"m0": "10.95.1.10", "w0": "10.95.1.20", "m1": "10.95.2.10", "w1": "10.95.2.20"}
ZONES = {"m0": "a", "w0": "a", "m1": "b", "w1": "b"}
ROLES = {"m0": ["master"], "m1": ["master"], "w0": ["node"], "w1": ["node"]}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "walls",
    "title": "Walls",
    "roles": {"master": {"implies": ["node"]}, "node": {}},
    "requirements": [
        {"id": "etcd", "from": "master", "to": "master", "tcp": [2379, 2380], "purpose": "p"},
        {"id": "api", "from": "node", "to": "master", "tcp": [6443], "purpose": "p"},
        {"id": "kubelet", "from": "master", "to": "node", "tcp": [10250], "purpose": "p"},
        {"id": "overlay", "from": "node", "to": "node", "udp": [8472], "purpose": "p"},
        {"id": "echo", "from": "node", "to": "node", "icmp": "echo", "purpose": "p"},
    ],
}
A, B = "10.95.1.0/24", "10.95.2.0/24"
THERE, BACK = f"ip saddr {A} ip daddr {B}", f"ip saddr {B} ip daddr {A}"
FROM_M0 = f"ip saddr {HOSTS['m0']} ip daddr {HOSTS['m1']}"


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two zones with a master and a worker each, and a router between them."""
    with Lab() as lab:
        router = lab.router("router", "10.95.0.1")
        for name, address in HOSTS.items():
            lab.host(name, router, address)
        lab.wait_until_ready()
        lab.write("matrix.yaml", json.dumps(MATRIX))
        lab.inventory(ROLES, overrides={name: {"zone": zone} for name, zone in ZONES.items()})
        yield lab


def set_filter(lab: Lab, host: str, hook: str, *rules: str) -> None:
    """Give a host these rules and no others."""
    chain = f"type filter hook {hook} priority 0; {'; '.join(rules)}"
    lab[host].nft(f"table ip f; delete table ip f; table ip f {{ chain c {{ {chain}; }}; }}")


def findings_of(lab: Lab) -> list[tuple[str, list[str]]]:
    """Title and places of every finding; each blocked flow is in one of them, no other is."""
    folder = lab.folder
    files = ("-m", f"{folder}/matrix.yaml", "-i", f"{folder}/inventory.yaml")
    done = netprobe("run", *files, "-o", "json")
    document: dict[str, Any] = done.document
    blocked = [one for one in document["results"] if one["verdict"] == "blocked"]

    assert done.status == 1, done.stderr
    assert sum(len(one["members"]) for one in document["findings"]) == len(blocked)
    assert document["summary"]["inconclusive"] == document["summary"]["not_tested"] == 0
    return [(one["title"], one["where"]) for one in document["findings"]]


def test_findings_are_rules(lab: Lab) -> None:
    """A wall is one finding; then a host, a rejected port and a dropped one are three."""
    set_filter(lab, "router", "forward", f"{THERE} drop", f"{BACK} drop")

    assert findings_of(lab) == [(
        "everything that was probed between zone a (2 hosts) and zone b (2 hosts) is dropped on "
        "the path, in both directions: tcp 2379-2380, 6443, 10250; udp 8472; icmp echo (28 flows)",
        ["path"],
    )]  # fmt: skip

    reject = "reject with icmp type admin-prohibited"
    dropped = (f"{THERE} udp dport 8472 drop", f"{BACK} udp dport 8472 drop")
    set_filter(lab, "router", "forward", *dropped, f"{FROM_M0} tcp dport 2379-2380 {reject}")
    set_filter(lab, "w1", "input", "meta l4proto { tcp, icmp } ct state new drop")

    assert findings_of(lab) == [
        ("10.95.0.1 rejects tcp 2379-2380 from m0 to m1 (2 flows)", ["path"]),
        ("tcp 10250; icmp echo from m0, m1, w0 to w1 (each where it is required) is dropped by the "
         "destination's own firewall (5 flows)", ["destination"]),
        ("udp 8472 between zone a (2 hosts) and zone b (2 hosts) is dropped on the path, in both "
         "directions (8 flows)", ["path"]),
    ]  # fmt: skip

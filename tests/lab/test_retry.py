"""``--retry`` after a firewall was changed: some is done, some is still blocked, some otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab

pytestmark = pytest.mark.lab

MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "change",
    "title": "A firewall that is changed",
    "roles": {"client": {}, "server": {}},
    "requirements": [
        {"id": "range", "from": "client", "to": "server", "tcp": ["3000-3099"], "purpose": "p"},
        {"id": "udp", "from": "client", "to": "server", "udp": [53], "purpose": "q"},
    ],
}
# Counts what the client still sends to ports that passed before.
COUNT = "tcp dport {3000-3009,3040-3099} counter name passed"
BEFORE = "tcp dport 3010-3039 drop; udp dport 53 drop"
# 3010-3019 are open now, 3020-3029 still dropped, 3030-3039 rejected.
AFTER = "tcp dport 3020-3029 drop; tcp dport 3030-3039 reject with icmp type admin-prohibited"


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A client and a server with a router between them, and the files of a run."""
    with Lab() as lab:
        router = lab.router("router", "10.96.1.1")
        client = lab.host("client", router, "10.96.1.2", "10.96.1.3")
        server = lab.host("server", router, "10.96.2.2")
        lab.wait_until_ready()
        hosts = {
            name: {"address": address, "roles": [name], "vantage": {"command": host.enter}}
            for name, address, host in (
                ("client", "10.96.1.2", client),
                ("server", "10.96.2.2", server),
            )
        }
        lab.write("matrix.yaml", json.dumps(MATRIX))
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        lab.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))
        yield lab


def filter_on_router(lab: Lab, rules: str) -> None:
    """Give the router these rules and no others."""
    lab["router"].nft(
        "table ip f; delete table ip f; table ip f { counter passed { }; "
        f"chain c {{ type filter hook forward priority 0; {COUNT}; {rules}; }}; }}"
    )


def run_netprobe(lab: Lab, *words: str) -> Finished:
    """Run the matrix over the inventory of the lab."""
    folder = lab.folder
    files = ("-m", f"{folder}/matrix.yaml", "-i", f"{folder}/inventory.yaml")
    return netprobe("run", *files, *words)


def blocked_ports(path: Path) -> dict[tuple[str, int, int], str]:
    """The blocked ranges of a JSON report, and why."""
    results = json.loads(path.read_text())["results"]
    return {
        (one["protocol"], one["port"], one["end_port"]): one["reason"]
        for one in results
        if one["verdict"] == "blocked"
    }


def test_a_source_that_has_moved(lab: Lab) -> None:
    """Its old address passed; the router rejects what comes from where it is now."""
    folder = Path(lab.folder)
    filter_on_router(lab, "tcp dport 1 drop")
    before = run_netprobe(lab, "--only", "udp", "-o", f"json={folder / 'a.json'}")
    assert before.status == 0, before.stderr

    filter_on_router(lab, "ip saddr 10.96.1.3 reject with icmp type admin-prohibited")
    inventory = yaml.safe_load((folder / "inventory.yaml").read_text())
    inventory["hosts"]["client"]["source_addresses"] = ["10.96.1.3"]
    lab.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))
    words = ("--only", "udp", "-o", f"json={folder / 'b.json'}")
    after = run_netprobe(lab, *words, "--retry", f"{folder}/a.json")

    assert after.status == 1, after.stderr
    assert blocked_ports(folder / "b.json") == {("udp", 53, 53): "admin-prohibited"}


def test_a_firewall_that_was_changed_in_part(lab: Lab) -> None:
    """Each flow that failed is told apart; what passed is not sent again; the truth is nft's."""
    first, second = Path(lab.folder) / "a.json", Path(lab.folder) / "b.json"
    filter_on_router(lab, BEFORE)
    before = run_netprobe(lab, "-o", f"json={first}")
    assert before.status == 1, before.stderr
    assert set(blocked_ports(first)) == {("tcp", 3010, 3039), ("udp", 53, 53)}

    filter_on_router(lab, AFTER)
    after = run_netprobe(lab, "--retry", str(first), "-o", "text", "-o", f"json={second}")
    line = after.stdout.splitlines()[0]

    assert after.status == 1, after.stderr
    assert blocked_ports(second) == {
        ("tcp", 3020, 3029): "no-response",
        ("tcp", 3030, 3039): "admin-prohibited",
    }
    assert line.startswith(f"RETRIED: 70 pass of {first} (begun ")
    assert line.endswith("31 failed before: 11 pass now, 20 still blocked or exposed")
    assert "\nFIXED (11 flows)\n" in after.stdout
    moved = after.stdout.partition(
        "\nMOVED: STILL BLOCKED OR EXPOSED, AT ANOTHER PLACE (10 flows)\n"
    )[2]
    assert "tcp 3030-3039" in moved
    assert "before    filtered, no-response" in moved
    assert "packets 0" in lab["router"].run("nft", "list", "counter", "ip", "f", "passed")

    filter_on_router(lab, "tcp dport 1 drop")
    last = run_netprobe(lab, "--retry", str(second))
    assert last.status == 0, last.stderr
    assert last.stdout.splitlines()[0].endswith("20 failed before: 20 pass now")
    assert "\nPASS: all 101 required flows are as they should be\n" in last.stdout

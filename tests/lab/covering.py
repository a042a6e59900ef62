"""Zones of network namespaces around one router that stops what a list of faults says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import yaml

from netprobe.model.codec import info_from_json
from netprobe.model.coverage import Coverage
from tests.lab.cli import Finished, flows_of, netprobe
from tests.lab.netlab import Lab
from tests.plan.covering import Fault, Simulation, Wires

ROUTER = "10.97.255.1"
RANGE = (7000, 7099)
WIRES: Wires = [("tcp", 6443, 6443), ("tcp", *RANGE), ("udp", 8472, 8472), ("icmp", 0, 0)]
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "zones",
    "title": "Everybody to everybody",
    "roles": {"node": {}},
    "requirements": [
        {"id": "api", "from": "node", "to": "node", "tcp": [6443], "purpose": "API"},
        {"id": "range", "from": "node", "to": "node", "tcp": ["7000-7099"], "purpose": "storage"},
        {"id": "overlay", "from": "node", "to": "node", "udp": [8472], "purpose": "overlay"},
        {"id": "ping", "from": "node", "to": "node", "icmp": "echo", "purpose": "monitoring"},
    ],
}


def build_zones(lab: Lab, zones: int, size: int) -> None:
    """Build hosts ``z0-0`` ... on cables of their own to one router, and the files of a run."""
    router = lab.router("router", ROUTER)
    names = {
        f"z{zone}-{number}": f"10.97.{zone}.{number + 1}"
        for zone in range(zones)
        for number in range(size)
    }
    hosts = {
        name: {
            "address": address,
            "roles": ["node"],
            "zone": name.partition("-")[0],
            "vantage": {"command": lab.host(name, router, address).enter},
        }
        for name, address in names.items()
    }
    lab.wait_until_ready()
    lab.write("matrix.yaml", json.dumps(MATRIX))
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
    lab.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))


def stop_on_router(lab: Lab, faults: Iterable[Fault], action: str = "drop") -> None:
    """Give the router these faults and no others."""
    rules = "; ".join(f"{_rule_of(lab, fault)} {action}" for fault in faults)
    lab["router"].nft(
        "table ip f; delete table ip f; table ip f { "
        f"chain c {{ type filter hook forward priority 0; {rules}; }}; }}"
    )


def _rule_of(lab: Lab, fault: Fault) -> str:
    sides = [
        ", ".join(sorted(lab[name].addresses[0] for name in names))
        for names in (fault.sources, fault.destinations)
    ]
    wire = "icmp type echo-request"
    if fault.protocol != "icmp":
        wire = f"{fault.protocol} dport {fault.first}-{fault.last}"
    return f"ip saddr {{ {sides[0]} }} ip daddr {{ {sides[1]} }} {wire}"


def run_covering(lab: Lab, *words: str, output: Sequence[str] = ("-o", "json")) -> Finished:
    """Run netprobe over the lab's files."""
    files = ("-m", str(lab.folder / "matrix.yaml"), "-i", str(lab.folder / "inventory.yaml"))
    return netprobe("run", *files, *output, *words)


def read_found(done: Finished) -> tuple[int, Simulation]:
    """Read a JSON report: how many flows are required, and what was found of each."""
    document = done.document
    info = info_from_json(document)
    found = Simulation(coverage=info.coverage or Coverage())
    for result in done.results:
        for flow in flows_of(result):
            key = (flow.source, flow.destination, flow.protocol, flow.port or 0)
            assert key not in found.probed
            found.probed[key] = result["verdict"]
    found.flows = len(found.probed)
    return info.planned_flows, found

"""A made-up estate of any size, with failures of several kinds, as a finished run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from netprobe.judge.findings import fold
from netprobe.model.plan import PlannedRequirement, Skipped
from netprobe.model.result import HostReport, Result
from netprobe.report.collector import Report, collect
from tests.report.samples import BLOCKED, INFO, PASSED

# Requirement, protocol, port: between all hosts.
WIRES = (
    ("kube-apiserver", "tcp", 6443), ("etcd", "tcp", 2379), ("etcd-peer", "tcp", 2380),
    ("kubelet", "tcp", 10250), ("vxlan", "udp", 8472), ("bgp", "tcp", 179),
    ("node-exporter", "tcp", 9100), ("csi", "tcp", 9808), ("drbd", "tcp", 7000),
    ("ntp", "udp", 123), ("registry", "tcp", 5000),
)  # fmt: skip
SEED = 14


def make_hosts(count: int) -> list[HostReport]:
    """Hosts of three roles in three zones."""
    return [
        HostReport(
            f"{role}-{number}",
            "agent",
            roles=(role, "node") if role != "node" else ("node",),
            addresses=(f"10.{number // 250}.{number % 3}.{number % 250 + 1}",),
            zone="abc"[number % 3],
        )
        for number in range(count)
        for role in ("master" if number < 3 else "frontend" if number < 8 else "node",)
    ]


def walk_estate(hosts: list[HostReport], noise: float) -> Iterator[Result]:
    """Every flow: VXLAN from zone a to c is dropped, one router refuses, one host is silent."""
    chance = random.Random(SEED)
    for block, (requirement, protocol, port) in enumerate(WIRES):
        base = {"requirement": requirement, "protocol": protocol, "port": port, "end_port": port,
                "purpose": f"{requirement} between nodes", "row": "Nodes to nodes traffic"}  # fmt: skip
        passed, dropped = replace(PASSED, **base), replace(BLOCKED, **base)
        for row, source in enumerate(hosts):
            for column, destination in enumerate(hosts):
                if source is destination:
                    continue
                ends = {"order": (block, row, column), "source": source.name,
                        "destination": destination.name, "address": destination.addresses[0]}  # fmt: skip
                name = destination.name
                if requirement == "vxlan" and (source.zone, destination.zone) == ("a", "c"):
                    yield replace(
                        dropped, **ends, where=("path",),
                        because=f"9 datagrams, no error; {name}'s packet capture never saw them",
                    )  # fmt: skip
                elif requirement == "etcd" and column == 1 and row % 3 == 1:
                    yield replace(
                        dropped, **ends, reason="admin-prohibited", rejected_by="10.9.0.1",
                        where=("path",), because="10.9.0.1 answered with ICMP 3/13",
                    )  # fmt: skip
                elif requirement == "ntp" and column == 7:
                    yield replace(
                        dropped, **ends, verdict="inconclusive", state="open|filtered",
                        because=f"2 NTP requests, no answer; no agent at {name}",
                    )  # fmt: skip
                elif chance.random() < noise:
                    yield replace(dropped, **ends, because=f"{chance.randint(3, 9)} SYNs, no answer")
                else:
                    yield replace(
                        passed, **ends, because=f"our listener on {name} answered our nonce"
                    )


def make_estate(count: int, noise: float = 0.0) -> Report:
    """A run over so many hosts: 200 of them are 437,800 flows."""
    hosts = make_hosts(count)
    requirements = tuple(
        PlannedRequirement(
            matrix="deckhouse-nodes",
            id=requirement,
            from_=("master", "frontend", "node"),
            to=("master", "frontend", "node"),
            protocol=protocol,
            ports=((port, port),),
            purpose=f"{requirement} between nodes",
            row="Nodes to nodes traffic",
        )
        for requirement, protocol, port in WIRES
    )
    flows = count * (count - 1) * len(WIRES)
    info = replace(
        INFO,
        hosts=tuple(hosts),
        requirements=requirements,
        planned_flows=flows,
        skipped=(Skipped("deckhouse-nodes", "vcd", "setting modules lacks cloud-provider-vcd"),),
        notes=("inventory.yaml: no matrix knows the role balancer; nearest: frontend",),
    )
    collector = collect(walk_estate(hosts, noise))
    zones = {host.name: host.zone for host in hosts if host.zone}
    return Report(info, collector, fold(collector.failures(), collector.passes(), zones))

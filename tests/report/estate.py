"""A made-up estate of any size, with failures of several kinds, as a finished run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.plan import PlannedRequirement, Skipped
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Report, collect
from tests.report.samples import BLOCKED, INFO, PASSED

# Requirement, protocol, port: between all hosts.
WIRES = (
    ("kube-apiserver", "tcp", 6443), ("etcd", "tcp", 2379), ("etcd-peer", "tcp", 2380),
    ("kubelet", "tcp", 10250), ("vxlan", "udp", 8472), ("bgp", "tcp", 179),
    ("node-exporter", "tcp", 9100), ("csi", "tcp", 9808), ("drbd", "tcp", 7000),
    ("ntp", "udp", 123), ("registry", "tcp", 5000),
)  # fmt: skip
SEED = 14
DROPPED = {
    key: getattr(BLOCKED, key)
    for key in ("verdict", "state", "reason", "proof", "where", "last_hop", "rtt_ms", "attempts")
}


def make_hosts(count: int) -> list[HostReport]:
    """Hosts of three roles in three zones."""
    return [
        HostReport(
            name=f"{role}-{number}",
            state="agent",
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
        words = {"requirement": requirement, "purpose": f"{requirement} between nodes"}
        wire = {"protocol": protocol, "port": port, "end_port": port}
        base = replace(PASSED, row="Nodes to nodes traffic", **words, **wire)
        for row, source in enumerate(hosts):
            for column, end in enumerate(hosts):
                if source is not end:
                    yield replace(
                        base,
                        order=(block, row, column),
                        source=source.name,
                        destination=end.name,
                        address=end.addresses[0],
                        **_tell_fate(requirement, (row, source), (column, end), chance, noise),
                    )


def _tell_fate(
    requirement: str,
    source: tuple[int, HostReport],
    end: tuple[int, HostReport],
    chance: random.Random,
    noise: float,
) -> dict[str, Any]:
    """What became of one flow, as the fields of its result."""
    name = end[1].name
    if requirement == "vxlan" and (source[1].zone, end[1].zone) == ("a", "c"):
        words = f"9 datagrams, no error; {name}'s packet recorder never saw them"
        return {**DROPPED, "where": ("path",), "because": words}
    if requirement == "etcd" and end[0] == 1 and source[0] % 3 == 1:
        words = "10.9.0.1 answered with ICMP 3/13"
        fate = {**DROPPED, "reason": "admin-prohibited", "rejected_by": "10.9.0.1"}
        return {**fate, "last_hop": None, "where": ("path",), "because": words}
    if requirement == "ntp" and end[0] == 7:
        words = f"2 NTP requests, no answer; no agent at {name}"
        return {**DROPPED, "verdict": "inconclusive", "state": "open|filtered", "because": words}
    if chance.random() < noise:
        return {**DROPPED, "because": f"{chance.randint(3, 9)} SYNs, no answer"}
    return {"because": f"our listener on {name} answered our nonce"}


def estate_info(count: int) -> RunInfo:
    """What the run knows of so many hosts."""
    everybody = ("master", "frontend", "node")
    requirements = tuple(
        PlannedRequirement(
            matrix="deckhouse-nodes",
            id=requirement,
            # All hosts are nodes, and only here that is what counts.
            from_=("node",) if requirement == "node-exporter" else everybody,
            to=everybody,
            protocol=protocol,
            ports=((port, port),),
            purpose=f"{requirement} between nodes",
            row="Nodes to nodes traffic",
        )
        for requirement, protocol, port in WIRES
    )
    return replace(
        INFO,
        hosts=tuple(make_hosts(count)),
        requirements=requirements,
        planned_flows=count * (count - 1) * len(WIRES),
        skipped=(Skipped("deckhouse-nodes", "vcd", "setting modules lacks cloud-provider-vcd"),),
        notes=("inventory.yaml: no matrix knows the role balancer; nearest: frontend",),
    )


def make_estate(count: int, noise: float = 0.0) -> Report:
    """A run over so many hosts: 200 of them are 437,800 flows."""
    hosts = make_hosts(count)
    collector = collect(walk_estate(hosts, noise))
    zones = {host.name: host.zone for host in hosts if host.zone}
    findings = fold(collector.failures(), collector.passes(), zones)
    return Report(estate_info(count), collector, findings)

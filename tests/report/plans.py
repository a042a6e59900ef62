"""Small plans, made by hand."""

from __future__ import annotations

from netprobe.model.inventory import Address, Family, Host, Vantage
from netprobe.model.matrix import Requirement, Waiver
from netprobe.model.plan import Block, Plan, PlannedMatrix, Skipped

ETCD = Requirement(
    id="etcd",
    sources=("master",),
    destinations=("master",),
    tcp=((2379, 2379), (2380, 2380)),
    purpose="etcd replication",
    row="Master to master nodes traffic",
)
DRBD = Requirement(
    id="drbd", sources=("node",), destinations=("node",), tcp=((7000, 7999),), optional=True
)
NTP = Requirement(id="ntp", sources=("node",), destinations=("ntp",), icmp=True, expect="denied")


def host(name: str, address: str, family: Family | None = 4) -> Host:
    """A host with one address, local vantage."""
    return Host(name, (Address(address, family),), ("master",), Vantage("local"))


MASTERS = tuple(host(f"master-{index}", f"10.0.0.{10 + index}") for index in range(3))
ENDS = tuple((one, one.addresses[0]) for one in MASTERS)
SERVER = host("time", "ntp.example.com", None)

PLAN = Plan(
    matrices=(
        PlannedMatrix(
            "deckhouse-nodes", {"cni": "cilium", "modules": ("sds", "cloud"), "ha": True}
        ),
    ),
    blocks=(
        Block(0, "deckhouse-nodes", ETCD, "tcp", ((2379, 2379), (2380, 2380)), 4, MASTERS, ENDS),
        Block(1, "deckhouse-nodes", DRBD, "tcp", ((7000, 7999),), 4, MASTERS[:1], ENDS),
        Block(
            2,
            "deckhouse-nodes",
            NTP,
            "icmp",
            (),
            None,
            MASTERS[:1],
            ((SERVER, SERVER.addresses[0]),),
            waiver=Waiver("ntp", "on Monday"),
        ),
    ),
    skipped=(
        Skipped("deckhouse-nodes", "vcd-webhook", "setting modules lacks cloud-provider-vcd"),
        Skipped("deckhouse-nodes", "capcd", "setting modules lacks cloud-provider-vcd"),
    ),
    notes=("a note",),
)

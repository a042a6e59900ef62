"""The tables of the exactness test: kinds of firewall rules, and clusters to try them on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.lab.expected import ANY_PORT, Line, Override, Rule

PIECE = 40


@dataclass(frozen=True)
class Kind:
    """A kind of rule to draw: for which protocols, and for which part of the ports.

    ``part``: ``whole`` a whole entry of a requirement, ``piece`` the middle of a range, ``half``
    one protocol of a port that is required under both, ``all`` everything between two hosts.
    """

    place: str
    action: str
    protocols: tuple[str, ...] = ("tcp", "udp")
    part: str = "whole"
    any_source: bool = False


ADMIN = "reject with icmpx admin-prohibited"
PORT = "reject with icmpx port-unreachable"
HOST = "reject with icmpx host-unreachable"
NET = "reject with icmpx no-route"
RESET = "reject with tcp reset"

KINDS = (
    Kind("path", "drop", ("tcp",)),
    Kind("path", "drop", ("udp",)),
    Kind("path", "drop", any_source=True),
    Kind("path", "drop", part="all"),
    Kind("path", "drop", ("tcp",), part="piece"),
    Kind("path", "drop", part="half"),
    Kind("path", "drop", ("icmp",)),
    Kind("path", "drop", ("ipproto/4",)),
    Kind("path", ADMIN),
    Kind("path", PORT),
    Kind("path", HOST),
    Kind("path", NET),
    Kind("path", ADMIN, ("icmp", "ipproto/4")),
    Kind("path", PORT, ("tcp",), part="piece"),
    Kind("path", RESET, ("tcp",)),
    Kind("path", RESET, ("tcp",), part="piece"),
    Kind("path", ADMIN, part="half"),
    Kind("back", "drop"),
    Kind("back", "drop", ("tcp",), part="piece"),
    Kind("back", "drop", ("icmp",)),
    Kind("back", ADMIN, ("tcp",)),
    Kind("destination", "drop"),
    Kind("destination", PORT),
    Kind("destination", RESET, ("tcp",)),
    Kind("destination", "drop", ("icmp", "ipproto/4")),
    Kind("destination-out", "drop"),
    Kind("source", "drop"),
    Kind("source", PORT),
    Kind("source-in", "drop"),
    # ESP and VRRP.
    Kind("path", "drop", ("ipproto/50", "ipproto/112")),
    Kind("destination", ADMIN, ("ipproto/50", "ipproto/112")),
)

OUTSIDE = ("external-https", "dns", "external-client")


@dataclass(frozen=True)
class Scenario:
    """A matrix on some hosts under some settings. ``dual`` hosts have both families.

    ``full``: it reads no row of the verdict tables that others do not read. ``override``: what it
    changes of the matrix. Ranges of thousands of ports, whole, are asked by the demo and by others
    that are ``full``.
    """

    name: str
    matrix: str
    hosts: Mapping[str, Sequence[str]]
    settings: Mapping[str, object] = field(default_factory=dict)
    dual: tuple[str, ...] = ()
    rules: bool = True
    full: bool = False
    override: Override = field(default_factory=dict)

    def addresses(self) -> dict[str, list[str]]:
        """IPv4 for all, IPv6 too for some."""
        found = {}
        for number, name in enumerate(self.hosts, start=10):
            found[name] = [f"10.88.0.{number}"]
            if name in self.dual:
                found[name].append(f"fd88::{number}")
        return found


OPENSHIFT = {
    "cp-0": ["control-plane"],
    "cp-1": ["control-plane"],
    "worker-0": ["node"],
    "router-0": ["router-node", "node"],
}
HOSTED = {
    "worker-0": ["worker"],
    "worker-1": ["worker"],
    "mgmt-0": ["management-cluster", "ocp-router"],
    "hcp-0": ["hcp"],
    "api-0": ["management-api"],
    "outside": list(OUTSIDE),
}
DCE = {
    "cp-0": ["control-plane", "global-node"],
    "node-0": ["node"],
    "node-1": ["node", "worker-cluster-node"],
    "boot": ["bootstrap", "registry"],
    "edge": ["istio-gateway-vip", "insight-vip", "web-client", "worker-cluster-api"],
}
DECKHOUSE = {
    "master-0": ["master"],
    "master-1": ["master"],
    "worker-0": ["node"],
    "front-0": ["frontend"],
    "outside": ["external", "external-dns", "external-ntp", "external-registry"],
}

SCENARIOS = (
    Scenario("openshift-ovn", "openshift-host-ports", OPENSHIFT, dual=("cp-0", "worker-0")),
    Scenario(
        "openshift-sdn-baremetal",
        "openshift-host-ports",
        OPENSHIFT,
        {
            "network": "openshift-sdn",
            "platform": "baremetal",
            "features": ["baremetal-provisioning", "metallb", "csi-drivers"],
        },
        dual=("cp-0", "router-0"),
        full=True,
    ),
    Scenario(
        "openshift-roles-without-hosts",
        "openshift-host-ports",
        {"node-0": ["node"], "node-1": ["node"]},
        {"features": ["ipsec", "windows-hybrid-networking"]},
        dual=("node-0", "node-1"),
        full=True,
    ),
    Scenario(
        "hypershift-nodeport",
        "hypershift-hcp",
        HOSTED,
        {"platform": "none", "publishing": "nodeport", "konnectivity-port": 30091},
        dual=("worker-0", "hcp-0"),
        full=True,
    ),
    Scenario(
        "hypershift-azure-private",
        "hypershift-hcp",
        {"worker-0": ["worker"], "all": ["hcp", "management-cluster", "management-api", *OUTSIDE]},
        {"platform": "azure", "private": True},
        dual=("worker-0", "all"),
        full=True,
    ),
    Scenario(
        "okd-agent",
        "okd-hcp",
        HOSTED,
        {"platform": "agent", "publishing": "nodeport"},
        dual=("worker-1", "hcp-0"),
        full=True,
    ),
    Scenario("okd-route", "okd-hcp", HOSTED, {"platform": "openstack"}, dual=("worker-0",)),
    Scenario(
        "dce-calico",
        "dce",
        DCE,
        {
            "calico-vxlan": True,
            "calico-ipip": True,
            "calico-wireguard-ipv4": True,
            "deployment-function": True,
            "kubevip": True,
        },
        dual=("cp-0", "node-0"),
        override={"node-ports": {"tcp": ["30000-30099"]}},
    ),
    Scenario("dce-cilium", "dce", DCE, {"cni": "cilium", "metallb": False}, full=True),
    Scenario(
        "deckhouse",
        "deckhouse-nodes",
        DECKHOUSE,
        dual=("master-0", "worker-0"),
        override={"node-ports": {"tcp": ["30000-30099"]}, "drbd": {"tcp": ["7000-7099"]}},
    ),
    Scenario(
        "deckhouse-flannel-cloud",
        "deckhouse-nodes",
        DECKHOUSE,
        {"nodes": "cloud", "cni": "flannel", "inlet": "HostPort", "modules": ["metallb"]},
        full=True,
    ),
    Scenario(
        "deckhouse-single-node",
        "deckhouse-nodes",
        {"only": ["master", "frontend"]},
        dual=("only",),
        rules=False,
    ),
    Scenario(
        "dce-nothing-blocked",
        "dce",
        {"cp-0": ["control-plane"], "node-0": ["node"], "node-1": ["node"]},
        {"calico-ipip": True, "calico-vxlan": True},
        dual=("cp-0", "node-1"),
        rules=False,
        full=True,
    ),
)


def draw_rules(lines: Sequence[Line], seed: str) -> list[Rule]:
    """One rule of every kind that fits these lines; the same seed draws the same rules."""
    chance = random.Random(seed)
    return [_draw(kind, chance.choice(fit), chance) for kind, fit in fitting(lines) if fit]


def fitting(lines: Sequence[Line]) -> list[tuple[Kind, list[Line]]]:
    """For every kind the lines that it can be drawn for."""
    crossing = [line for line in lines if line.source != line.destination and not line.denied]
    return [(kind, [x for x in crossing if _fits(kind, x, crossing)]) for kind in KINDS]


def _fits(kind: Kind, line: Line, lines: Sequence[Line]) -> bool:
    if line.protocol not in kind.protocols:
        return False
    if line.one_way and kind.place in Rule.ANSWER_PLACES:
        return False
    if kind.part == "piece":
        return any(b - a >= 3 for a, b in line.ports)
    if kind.part == "half":
        other = "udp" if line.protocol == "tcp" else "tcp"
        return any(
            (line.destination, other) == (x.destination, x.protocol)
            and line.source == x.source
            and set(line.ports) & set(x.ports)
            for x in lines
        )
    return True


def _draw(kind: Kind, line: Line, chance: random.Random) -> Rule:
    protocol: str | None = line.protocol
    ports = ANY_PORT
    if kind.part == "all":
        protocol = None
    elif line.ports:
        ports = chance.choice(line.ports)
        if kind.part == "piece":
            ports = _piece(max(line.ports, key=lambda entry: entry[1] - entry[0]), chance)
    source = None if kind.any_source else line.source
    return Rule(kind.place, kind.action, source, line.destination, line.family, protocol, ports)


def _piece(entry: tuple[int, int], chance: random.Random) -> tuple[int, int]:
    length = min(PIECE, (entry[1] - entry[0]) // 2)
    first = chance.randint(entry[0] + 1, entry[1] - length)
    return first, first + length - 1

"""The demo's cluster: machines, a firewall, and which flows that firewall is meant to stop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path

from demo import services
from tests.lab.expected import Flow, Hosts, Line, required
from tests.lab.netlab import Lab
from tests.lab.services import place

MATRIX = "deckhouse-nodes"
ROUTER = ("10.10.0.1", "fd10::1")
ZONE_A = ip_network("10.10.1.0/24")
ZONE_B = ip_network("10.10.2.0/24")

ROLES = {
    "master-0": ["master"],
    "master-1": ["master"],
    "master-2": ["master"],
    "worker-0": ["node"],
    "worker-1": ["node"],
    "worker-2": ["node"],
    "frontend-0": ["frontend"],
    "outside": ["external", "external-dns", "external-ntp", "external-registry"],
}
ADDRESSES = {
    "master-0": ["10.10.1.10"],
    "master-1": ["10.10.1.11"],
    "master-2": ["10.10.1.12"],
    "frontend-0": ["10.10.1.20"],
    "worker-0": ["10.10.1.30"],
    "worker-1": ["10.10.2.30"],
    "worker-2": ["10.10.2.31"],
    "outside": ["192.0.2.10"],
}


@dataclass(frozen=True)
class Cut:
    """One thing that the firewall does wrong on purpose, in words, as rules, and as flows."""

    words: str
    rules: tuple[str, ...]
    stops: Callable[[Line, Flow], bool]


def _crosses_zones(line: Line) -> bool:
    source = ip_address(ADDRESSES[line.source][0])
    destination = ip_address(line.address)
    return (source in ZONE_A and destination in ZONE_B) or (
        source in ZONE_B and destination in ZONE_A
    )


def _between_zones(match: str, action: str) -> tuple[str, str]:
    return (
        f"ip saddr {ZONE_A} ip daddr {ZONE_B} {match} {action}",
        f"ip saddr {ZONE_B} ip daddr {ZONE_A} {match} {action}",
    )


CUTS = (
    Cut(
        "VXLAN (udp 8472) between zone a and zone b: dropped",
        _between_zones("udp dport 8472", "drop"),
        lambda line, flow: _crosses_zones(line) and (flow.protocol, flow.port) == ("udp", 8472),
    ),
    Cut(
        "etcd's peer port (tcp 2380) from master-1 to master-0: rejected by the router",
        (
            f"ip saddr {ADDRESSES['master-1'][0]} ip daddr {ADDRESSES['master-0'][0]} "
            "tcp dport 2380 reject with icmp admin-prohibited",
        ),
        lambda line, flow: (
            (flow.source, flow.destination, flow.port) == ("master-1", "master-0", 2380)
        ),
    ),
    Cut(
        "a part of the DRBD range (tcp 7400-7499) between the zones: dropped",
        _between_zones("tcp dport 7400-7499", "drop"),
        lambda line, flow: (
            _crosses_zones(line) and flow.protocol == "tcp" and 7400 <= (flow.port or 0) <= 7499
        ),
    ),
    Cut(
        "ICMP echo between the zones: dropped",
        _between_zones("icmp type echo-request", "drop"),
        lambda line, flow: _crosses_zones(line) and flow.protocol == "icmp",
    ),
)

# The tunnel in which it drops full TCP segments, and what a rehearsal says of each port.
LOSSY = ("worker-0", "master-1")
TUNNELS = {8469: "pass", 8472: "blocked"}
LOSSES = (
    f"ip saddr {ADDRESSES[LOSSY[0]][0]} ip daddr {ADDRESSES[LOSSY[1]][0]} "
    "udp dport 8472 udp length > 1300 @th,312,8 6 drop"
)

ZONES = {
    name: zone
    for zone, network in (("a", ZONE_A), ("b", ZONE_B))
    for name, (address, *_) in ADDRESSES.items()
    if ip_address(address) in network
}

CUTS_IN_WORDS = "\n".join(f"    {number}. {cut.words}" for number, cut in enumerate(CUTS, start=1))
DESCRIPTION = f"""\
A small Deckhouse-like cluster of network namespaces, each with a cable of its own to one router.
  zone a   {ZONE_A!s:14} master-0 master-1 master-2 worker-0 frontend-0
  zone b   {ZONE_B!s:14} worker-1 worker-2
  outside  {"192.0.2.0/24":14} outside (clients, DNS, NTP and registry in one)
  router   {ROUTER[0]:14} with a firewall that does four things wrong on purpose:
{CUTS_IN_WORDS}
  It also drops full TCP segments in VXLAN tunnels from {LOSSY[0]} to {LOSSY[1]}: no port shows it.
"""


def build(lab: Lab) -> None:
    """The machines, their cables, the services outside, and the firewall."""
    router = lab.router("router", *ROUTER)
    for name, addresses in ADDRESSES.items():
        lab.host(name, router, *addresses)
    lab.wait_until_ready()
    outside, (address,) = lab["outside"], ADDRESSES["outside"]
    # A client may hang up before its answer: http.server would say so on the terminal.
    outside.spawn(sys.executable, services.__file__, address, stderr=subprocess.DEVNULL)
    outside.wait_until_listening(*(place(kind, address, port) for kind, port in services.PLACES))
    cuts = (rule for cut in CUTS for rule in cut.rules)
    rules = "\n".join(f"    {rule}" for rule in (*cuts, LOSSES))
    router.nft(
        f"table inet demo {{\n  chain forward {{\n"
        f"    type filter hook forward priority 0;\n{rules}\n  }}\n}}"
    )


def write_inventory(lab: Lab) -> Path:
    """The inventory of these machines, with their zones."""
    zones: dict[str, dict[str, object]] = {name: {"zone": zone} for name, zone in ZONES.items()}
    return lab.inventory(ROLES, overrides=zones)


def expected() -> tuple[set[Flow], set[Flow]]:
    """All flows that the matrix requires here, and those that the firewall stops."""
    every, stopped = set(), set()
    for line in required(MATRIX, Hosts(ROLES, ADDRESSES), {}):
        for flow in line.flows():
            every.add(flow)
            if any(cut.stops(line, flow) for cut in CUTS):
                stopped.add(flow)
    return every, stopped

"""A router between two zones that forgets silent connections and UDP flows, or forgets nothing.

The truth is the kernel's: ``conntrack -L`` lists what it remembers, and the counters of the rules
say how many packets of unknown connections they dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab

PORT = 7000
ADDRESSES = {
    "a": ("10.79.1.1", "fd79:1::1"),
    "b": ("10.79.2.1", "fd79:2::1"),
    "c": ("10.79.3.1", "fd79:3::1"),
}
ZONES = {"a": "office", "b": "cluster", "c": "open"}
# Connections to the port from anywhere; what is of the open zone nobody tracks.
FIREWALL = """
table inet memory {
  counter unknown {}
  chain raw {
    type filter hook prerouting priority raw;
    ip saddr 10.79.3.1 notrack
    ip daddr 10.79.3.1 notrack
    ip6 saddr fd79:3::1 notrack
    ip6 daddr fd79:3::1 notrack
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ct state untracked accept
    ct state invalid counter name unknown INVALID
    ct state established,related accept
    tcp dport PORT accept
    udp dport PORT accept
    meta l4proto { tcp, udp } counter name unknown UDP
  }
}
"""


class RememberedLab(Lab):
    """Three zones with a host each, and a router with a stateful firewall between two of them."""

    def build(self) -> None:
        """Build the hosts and the router, which has no firewall yet."""
        router = self.router("r", "10.79.0.1", "fd79::1")
        for name, addresses in ADDRESSES.items():
            self.host(name, router, *addresses)
        self.wait_until_ready()

    def start_firewall(
        self, forget_s: int, *, picks_up: bool = False, unknown: str = "drop"
    ) -> None:
        """Track connections to the cluster, and forget them after so many seconds of silence.

        ``picks_up``: packets of unknown connections to the port make new ones. ``unknown``: what
        happens to those of no connection.
        """
        # What the destination sends by itself begins a flow.
        refusal = "drop" if unknown == "drop" else "reject"
        rules = FIREWALL.replace("INVALID", unknown).replace("UDP", refusal)
        self["r"].nft(rules.replace("PORT", str(PORT)))
        self["r"].run(
            "sysctl", "-qw",
            f"net.netfilter.nf_conntrack_tcp_loose={int(picks_up)}",
            f"net.netfilter.nf_conntrack_tcp_timeout_established={forget_s}",
        )  # fmt: skip

    def forget_datagrams(self, exchange_s: int, conversation_s: int) -> None:
        """Forget UDP flows after so many seconds of silence: those of one question and its answer,
        and others."""
        self["r"].run(
            "sysctl", "-qw",
            f"net.netfilter.nf_conntrack_udp_timeout={exchange_s}",
            f"net.netfilter.nf_conntrack_udp_timeout_stream={conversation_s}",
        )  # fmt: skip

    def count_dropped(self) -> int:
        """Count the packets of connections that the firewall did not know."""
        listed = self["r"].run("nft", "list", "counter", "inet", "memory", "unknown")
        found = re.search(r"packets (\d+)", listed)
        assert found is not None, listed
        return int(found[1])

    def list_remembered(self, protocol: str = "tcp") -> list[str]:
        """List the connections to the port that the router remembers as established, or the UDP
        flows."""
        words = ("conntrack", "-L", "-p", protocol)
        lines = self["r"].run(*words, "-f", "ipv4", check=False).splitlines()
        lines += self["r"].run(*words, "-f", "ipv6", check=False).splitlines()
        state = "ESTABLISHED" if protocol == "tcp" else protocol
        return [one for one in lines if state in one and f"dport={PORT}" in one]

    def write_files(
        self,
        keepalive: str | Mapping[str, str] | None = None,
        hosts: Mapping[str, object] = MappingProxyType({}),
        protocol: str = "tcp",
    ) -> list[str]:
        """Write a matrix and an inventory, and give the words that name them.

        ``hosts``: further ones, or others of the same name; None: it is left out.
        """
        row = {"id": "api", "from": "client", "to": "server", protocol: [PORT], "purpose": "API"}
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"client": {}, "server": {}},
            "requirements": [row | ({"keepalive": keepalive} if keepalive else {})],
        }  # fmt: skip
        known = {name: self.describe(name) for name in ADDRESSES} | dict(hosts)
        left = {name: one for name, one in known.items() if one is not None}
        inventory = {"schema": "netprobe.inventory/1", "hosts": left}
        return [
            "-m", str(self.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.write("inventory.yaml", yaml.safe_dump(inventory))),
        ]  # fmt: skip

    def describe(self, name: str) -> dict[str, object]:
        """Describe a host for the inventory."""
        return {
            "addresses": list(ADDRESSES[name]), "zone": ZONES[name],
            "roles": ["client" if name == "a" else "server"],
            "vantage": {"command": self[name].enter},
        }  # fmt: skip

    def measure(
        self, up_to: str, *words: str, keepalive: str | Mapping[str, str] | None = None,
        hosts: Mapping[str, object] = MappingProxyType({}), protocol: str = "tcp",
    ) -> Finished:  # fmt: skip
        """Run ``netprobe measure idle`` between the zones."""
        files = self.write_files(keepalive, hosts, protocol)
        return netprobe(
            "measure", "idle", *files, "--up-to", up_to, "-o", "json", *words, limit_s=200
        )


def read_pairs(done: Finished) -> dict[tuple[str, int], dict[str, Any]]:
    """The pairs of zones by the zone that connections lead to, and the family."""
    pairs = done.document["pairs"]
    assert {one["from"] for one in pairs} == {"office"}, pairs
    found = {(one["to"], one["family"]): one for one in pairs}
    assert len(found) == len(pairs)
    return found

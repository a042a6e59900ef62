"""An estate for plays: machines with sshd behind one firewall, and what the firewall drops."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.lab.services import start_sshd

MATRIX = "openshift-host-ports"
CONTROL = "10.92.0.10"
# What the firewall may drop: ports that every host must reach at every other one.
PORTS = (("tcp", 9100), ("tcp", 10250), ("udp", 6081), ("tcp", 9001))
# The requirements that they belong to.
ONLY = ("node-exporter", "kubelet", "geneve", "machine-config-daemon-metrics")


class Lost(NamedTuple):
    """One flow that is blocked."""

    source: str
    destination: str
    protocol: str
    port: int | None


@dataclass(frozen=True)
class Estate:
    """A lab of machines; ``admin`` is the control node."""

    lab: Lab
    router: Namespace
    hosts: dict[str, str]

    @property
    def admin(self) -> Sequence[str]:
        """Words that start a program on the control node."""
        return self.lab["admin"].enter

    def inventory(self, more: str = "", variables: str = "") -> Path:
        """Write an inventory of Ansible: three masters, else workers."""
        names = list(self.hosts)
        lines = [f"{name} ansible_host={address}" for name, address in self.hosts.items()]
        options = f"-F /dev/null -o UserKnownHostsFile={self.lab.folder}/known -o BatchMode=yes"
        text = [
            "[master]", *lines[:3], "[worker]", *lines[3:], more,
            "[all:vars]", "ansible_user=root",
            f"ansible_ssh_private_key_file={self.lab.folder}/identity",
            f"ansible_ssh_common_args={options} -o StrictHostKeyChecking=no", variables,
        ]  # fmt: skip
        assert len(names) > 3
        return self.lab.write("hosts.ini", "\n".join(text) + "\n")

    def drop(self, count: int, seed: int) -> set[Lost]:
        """Drop so many flows between any two hosts, and give them."""
        choice = random.Random(seed)
        lost: set[Lost] = set()
        while len(lost) < count:
            source, destination = choice.sample(list(self.hosts), 2)
            lost.add(Lost(source, destination, *choice.choice(PORTS)))
        rules = "\n".join(
            f"ip saddr {self.hosts[one.source]} ip daddr {self.hosts[one.destination]} "
            f"{one.protocol} dport {one.port} drop"
            for one in sorted(lost)
        )
        hook = "type filter hook forward priority 0;"
        self.router.nft(f"table inet lab {{ chain forward {{ {hook}\n{rules}\n}}\n}}")
        return lost

    def run_live(self, *words: str) -> Finished:
        """Run netprobe itself from the control node, as the truth to compare with."""
        path = str(self.lab.folder / "hosts.ini")
        return netprobe(
            "run", "-m", MATRIX, "-i", path, "-o", "json", *words, within=self.admin, limit_s=900
        )


def build(lab: Lab, count: int) -> Estate:
    """Build so many machines, each with sshd, and a control node that may do anything."""
    router = lab.router("fw", "10.92.0.1")
    lab.host("admin", router, CONTROL)
    hosts = {f"host-{n}": f"10.92.{1 + n // 200}.{1 + n % 200}" for n in range(count)}
    for name, address in hosts.items():
        lab.host(name, router, address)
        start_sshd(lab, lab[name])
    return Estate(lab, router, hosts)


def lost_flows(results: Sequence[dict[str, Any]], verdict: str = "blocked") -> set[Lost]:
    """Give the flows of a verdict, from a JSON report's results."""
    return {flow for one in results if one["verdict"] == verdict for flow in _flows(one)}


def _flows(one: dict[str, Any]) -> Iterator[Lost]:
    ports = [None] if one["port"] is None else range(one["port"], one["end_port"] + 1)
    for port in ports:
        yield Lost(one["source"], one["destination"], one["protocol"], port)

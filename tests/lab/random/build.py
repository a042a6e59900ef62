"""Build an estate out of namespaces; ``faults`` does the rest to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.lab.netlab import Lab, LabError, Namespace
from tests.lab.random.estate import FAMILIES, Dead, Estate, router_name

TRAFFIC = Path(__file__).with_name("traffic.py")
# Loopback and neighbour discovery are never touched, as in every sane firewall.
_FIRST = ("icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept",)


class Built:
    """An estate that stands."""

    def __init__(self, lab: Lab, estate: Estate) -> None:
        self.lab, self.estate = lab, estate
        self._tables = 0
        for router in estate.routers:
            lab.namespace(router_name(router), router=True)
        for host in estate.hosts:
            lab.namespace(host.name)
        self._segments()
        self._links()
        self._routes()
        for namespace in lab.namespaces.values():
            namespace.run("sysctl", "-qw", "net.ipv4.conf.all.send_redirects=0",
                          "net.ipv4.conf.default.send_redirects=0")  # fmt: skip
        lab.wait_until_ready()

    @property
    def machines(self) -> list[Namespace]:
        """Everything but switches."""
        names = [router_name(one) for one in self.estate.routers]
        return [self.lab[name] for name in (*names, *(h.name for h in self.estate.hosts))]

    def address(self, machine: str, family: int) -> str:
        """An address of a machine; a router's first."""
        return self.lab[machine].address(family)

    def gateway(self, segment: int, family: int) -> str:
        """The router's address on a segment."""
        return f"10.77.{segment + 1}.1" if family == 4 else f"fd77:{segment + 1}::1"

    def _segments(self) -> None:
        for segment, router in enumerate(self.estate.segments):
            hosts = [host for host in self.estate.hosts if host.segment == segment]
            up = self.lab[router_name(router)]
            device = f"s{segment}"
            # The port of a router stays up when a host behind a switch dies.
            dead = any(isinstance(f, Dead) and f.machine == h.name
                       for f in self.estate.faults for h in hosts)  # fmt: skip
            if len(hosts) == 1 and not dead:
                self.lab.cable(self.lab[hosts[0].name], "eth0", up, device)
            elif hosts:
                self._switch(segment, up, [host.name for host in hosts])
            else:
                continue
            self._address(up, device, *(self.gateway(segment, family) for family in FAMILIES))
            for host in hosts:
                self._address(self.lab[host.name], "eth0", host.address(4), host.address(6))
                self.lab[host.name].ip(
                    *(
                        f"route add default via {self.gateway(segment, family)}"
                        for family in FAMILIES
                    )
                )

    def _switch(self, segment: int, up: Namespace, hosts: list[str]) -> None:
        switch = self.lab.namespace(f"sw{segment}")
        switch.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
                   "net.ipv6.conf.default.disable_ipv6=1")  # fmt: skip
        switch.ip("link add lan type bridge mcast_snooping 0", "link set lan up")
        self.lab.cable(up, f"s{segment}", switch, "uplink")
        for name in hosts:
            self.lab.cable(self.lab[name], "eth0", switch, f"to-{name}")
        switch.ip(
            *(
                f"link set {port} master lan"
                for port in ("uplink", *(f"to-{name}" for name in hosts))
            )
        )

    def _links(self) -> None:
        for number, (left, right) in enumerate(self.estate.links):
            a, b = self.lab[router_name(left)], self.lab[router_name(right)]
            self.lab.cable(a, f"l{number}", b, f"l{number}")
            for end, last in ((a, 1), (b, 2)):
                self._address(
                    end, f"l{number}", f"10.78.{number + 1}.{last}", f"fd78:{number + 1}::{last}"
                )

    def _address(self, part: Namespace, device: str, four: str, six: str) -> None:
        part.addresses += [four, six]
        part.ip(f"address add {four}/24 dev {device}", f"address add {six}/64 dev {device} nodad")

    def _routes(self) -> None:
        for router in self.estate.routers:
            lines = [
                f"route add {net} via {self.hop(router, near, family)}"
                for kind, number, near in self._nets(router)
                for family, net in self._net(kind, number)
            ]
            if lines:
                self.lab[router_name(router)].ip(*lines)

    def _nets(self, router: int) -> Iterator[tuple[str, int, int]]:
        """Every network that a router has no cable to, and the router that it is behind."""
        for segment, owner in enumerate(self.estate.segments):
            if owner != router:
                yield "77", segment, owner
        for number, ends in enumerate(self.estate.links):
            if router not in ends:
                yield "78", number, min(ends, key=lambda e: len(self.estate.path(router, e)))

    @staticmethod
    def _net(kind: str, number: int) -> Iterator[tuple[int, str]]:
        yield 4, f"10.{kind}.{number + 1}.0/24"
        yield 6, f"fd{kind}:{number + 1}::/64"

    def hop(self, router: int, towards: int, family: int) -> str:
        """The address of the next router on the way to another."""
        return self.end(router, self.estate.path(router, towards)[1], family)

    def end(self, router: int, neighbour: int, family: int) -> str:
        """The address of a neighbouring router on the cable to it."""
        for number, (left, right) in enumerate(self.estate.links):
            if {left, right} == {router, neighbour}:
                last = 1 if neighbour == left else 2
                return f"10.78.{number + 1}.{last}" if family == 4 else f"fd78:{number + 1}::{last}"
        raise LabError(f"no cable from r{router} to r{neighbour}")

    def filter(self, machine: str, hook: str, *rules: str) -> None:
        """Add rules to the firewall of a machine."""
        lo = {"input": ['iifname "lo" accept'], "output": ['oifname "lo" accept']}.get(hook, [])
        self.table(machine, "filter", hook, self._tables, [*lo, *_FIRST, *rules])

    def table(self, machine: str, kind: str, hook: str, priority: int, rules: list[str]) -> None:
        """Add a table of nft with one chain."""
        self._tables += 1
        lines = "\n".join((f"type {kind} hook {hook} priority {priority};", *rules))
        self.lab[machine].nft(f"table inet t{self._tables} {{ chain c {{\n{lines}\n}}\n}}")


def relay(router: Namespace, address: str, port: int) -> None:
    """Start a proxy on a router that forwards the port to an address; returns when it is up."""
    wildcard = "::" if ":" in address else "0.0.0.0"
    words = (sys.executable, "-I", "-S", str(TRAFFIC), "relay", wildcard, address, str(port))
    process = router.spawn(*words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        raise LabError(f"no proxy on {router.name} for {address}")


def serve(host: Namespace, places: Iterable[tuple[str, str, int]]) -> subprocess.Popen[bytes]:
    """Servers on a host; returns when they are up. The caller may end the process."""
    words = (sys.executable, "-I", "-S", str(TRAFFIC), "serve", host.name, json.dumps(list(places)))
    process = host.spawn(*words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        raise LabError(f"no servers on {host.name}: {places}")
    return process

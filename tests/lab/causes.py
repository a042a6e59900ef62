"""Nine hosts in three networks behind two routers, and one fault of each kind: cause by cause.

a1, a2, a3 hang on one switch, b1, b2, b3 on another one, both on the router r1; c1, c2, c3 hang on
the router r2, which hangs on r1. Switches let addresses be held twice and next hops be dead. The
nine know two more hosts, behind r1, by name alone: each router has a name server.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.lab.services import start_dns

NETS = {"a": 1, "b": 2, "c": 3}
ADDRESSES = {f"{net}{n}": f"10.96.{NETS[net]}.{n}" for net in NETS for n in (1, 2, 3)}
# Hosts that the nine know by name, and who asks which router for names.
NAMED = {"registry": "10.96.4.1", "mirror": "10.96.4.2"}
NAMES = {f"{name}.estate.test": address for name, address in NAMED.items()}
ASKERS = {"r1": ("a1", "b1", "b2", "b3"), "r2": ("a2", "a3", "c1", "c2", "c3")}
GATEWAYS = {net: f"10.96.{number}.254" for net, number in NETS.items()}
LINK = {"r1": "10.96.9.1", "r2": "10.96.9.2"}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "estate",
    "title": "Estate",
    "roles": {"node": {}, "registry": {}},
    "requirements": [
        {"id": "api", "from": "node", "to": "node", "tcp": [6443, 7000], "purpose": "p"},
        {"id": "kubelet", "from": "node", "to": "node", "tcp": [10250, 9100], "purpose": "p"},
        {"id": "vxlan", "from": "node", "to": "node", "udp": [8472], "purpose": "p",
         "probe": "vxlan"},
        {"id": "echo", "from": "node", "to": "node", "icmp": "echo", "purpose": "p"},
        {"id": "images", "from": "node", "to": "registry", "tcp": [5000], "purpose": "p"},
    ],
}  # fmt: skip


def _find_etc(host: Namespace) -> Path:
    """Find the folder that ``ip netns exec`` takes a machine's own files of /etc from."""
    return Path("/etc/netns", host.netns)


class Estate(Lab):
    """All nine hosts and both routers; faults are planted by nft and ip."""

    # What the inventory has for the nine.
    probed = ADDRESSES

    def build(self) -> None:
        """Build it healthy."""
        r1, r2 = (self.namespace(name, router=True) for name in ("r1", "r2"))
        self.cable(r1, "core", r2, "core")
        for router in (r1, r2):
            router.addresses.append(LINK[router.name])
            router.ip(f"address add {LINK[router.name]}/24 dev core")
            start_dns(router, NAMES)
        for net, number in NETS.items():
            router, other = (r2, r1) if net == "c" else (r1, r2)
            switch = self.namespace(f"s-{net}")
            switch.ip("link add br0 type bridge mcast_snooping 0", "link set br0 up")
            self.plug(switch, router, f"to-{net}", f"{GATEWAYS[net]}/24")
            other.ip(f"route add 10.96.{number}.0/24 via {LINK[router.name]}")
            for n in (1, 2, 3):
                host = self.namespace(f"{net}{n}")
                host.addresses.append(ADDRESSES[host.name])
                self.plug(switch, host, "eth0", f"{host.address(4)}/24")
                host.ip(f"route add default via {GATEWAYS[net]}")
        self._build_named(r1, r2)
        for server, hosts in ASKERS.items():
            for name in hosts:
                self.set_resolver(name, LINK[server])
        self.wait_until_ready()

    def _build_named(self, r1: Namespace, r2: Namespace) -> None:
        """Build the hosts that are known by name, on cables of their own to r1."""
        r2.ip(f"route add 10.96.4.0/24 via {LINK['r1']}")
        for name, address in NAMED.items():
            host = self.namespace(name)
            self.cable(host, "eth0", r1, f"to-{name}")
            host.addresses.append(address)
            host.ip(
                f"address add {address}/32 dev eth0",
                f"route add default via {LINK['r1']} dev eth0 onlink",
            )
            r1.ip(f"route add {address}/32 dev to-{name}")

    def set_resolver(self, host: str, server: str) -> None:
        """Let a host ask this name server."""
        path = _find_etc(self[host]) / "resolv.conf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"nameserver {server}\n")

    def close(self) -> None:
        """Remove everything, the resolv.conf files too."""
        for host in self.namespaces.values():
            shutil.rmtree(_find_etc(host), ignore_errors=True)
        super().close()

    def lose_names(self, router: str, *names: str) -> None:
        """Start the name server of a router anew, without the records of these names."""
        self.restart_names(router, NAMES | dict.fromkeys(names, ""))

    def restart_names(self, router: str, records: dict[str, str]) -> None:
        """Start the name server of a router anew, with these records."""
        (server,) = self[router].processes
        server.terminate()
        server.wait()
        self[router].processes.clear()
        start_dns(self[router], records)

    def plug(self, switch: Namespace, machine: Namespace, device: str, *addresses: str) -> None:
        """Hang a machine on a switch, with these addresses."""
        port = f"p-{machine.name}"
        self.cable(machine, device, switch, port)
        switch.ip(f"link set {port} master br0")
        machine.ip(*(f"address add {text} dev {device}" for text in addresses))

    def filter(self, machine: str, hook: str, *rules: str, family: str = "ip") -> None:
        """Give a machine these rules of a firewall."""
        lines = "\n".join((f"type filter hook {hook} priority 0;", *rules))
        self[machine].nft(f"table {family} f {{ chain {hook} {{\n{lines}\n}}\n}}")

    def run(
        self, *words: str, within: Sequence[str] = (), ssh: Sequence[str] = (),
    ) -> Finished:  # fmt: skip
        """Probe everything, from a host where that is said; these hosts are reached by ssh."""
        config = {"vantage": "ssh", "ssh": {"options": ["-F", f"{self.folder}/ssh_config"]}}
        hosts = {
            name: {"addresses": [address], "roles": ["node"],
                   "vantage": {"command": self[name].enter}} | (config if name in ssh else {})
            for name, address in self.probed.items()
        }  # fmt: skip
        hosts |= {
            name: {"address": f"{name}.estate.test", "roles": ["registry"],
                   "vantage": {"command": self[name].enter}}
            for name in NAMED
        }  # fmt: skip
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        return netprobe(
            "run", "-o", "json", *words,
            "-m", str(self.write("matrix.yaml", json.dumps(MATRIX))),
            "-i", str(self.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))),
            within=within,
        )  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One kind of fault: how it is planted, and the beginning of the title of each cause.

    ``rules``: how many firewall rules would mend it.
    """

    name: str
    plant: Callable[[Estate], None]
    titles: tuple[str, ...]
    rules: int = 0


def _narrow_way(lab: Estate) -> None:
    lab.filter("r2", "forward", "ip saddr 10.96.1.1 ip daddr 10.96.3.1 meta length > 1400 drop")


def _lose_route(lab: Estate) -> None:
    """r2 does not ration its errors: else the answers that it refuses may take all of them, and no
    request of a c hears any. Findings must not depend on that, but their words do."""
    lab["r2"].run("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
    lab["r2"].ip("route del 10.96.2.0/24")


def _reject_output(lab: Estate) -> None:
    lab.filter("b2", "output", "tcp dport 7000 reject with icmp type admin-prohibited")


def _kill_next_hop(lab: Estate) -> None:
    lab["a3"].ip("route add 10.96.3.0/24 via 10.96.1.77")


def hold_twice(lab: Estate, host: str, neighbour: str) -> None:
    """x has the address of this host, too, and is the one that the neighbour and r1 know."""
    x = lab.namespace("x")
    lab.plug(lab["s-b"], x, "eth0", f"{ADDRESSES[host]}/24")
    x.ip(f"route add default via {GATEWAYS['b']}")
    (link,) = json.loads(x.run("ip", "-j", "link", "show", "eth0"))
    for name, device in ((neighbour, "eth0"), ("r1", "to-b")):
        known = f"{ADDRESSES[host]} lladdr {link['address']} dev {device}"
        lab[name].ip(f"neigh replace {known} nud permanent")


def _hold_twice(lab: Estate) -> None:
    hold_twice(lab, "b3", "b1")


def _close_ports(lab: Estate) -> None:
    lab.filter("c2", "input", "tcp dport { 6443, 9100 } ct state new drop")


def _stop_a_chain(lab: Estate) -> None:
    """What ends at a2 and what begins there are two rules, though the port is one."""
    drop = "ip saddr 10.96.{} ip daddr 10.96.{} tcp dport 10250 drop"
    lab.filter("r1", "forward", drop.format("2.1", "1.2"), drop.format("1.2", "3.3"))


def _forget_name(lab: Estate) -> None:
    """The name server of five hosts was not updated."""
    lab.lose_names("r2", "registry.estate.test")


def _lose_resolver(lab: Estate) -> None:
    lab.set_resolver("a1", "10.96.9.77")


def _seal_host(lab: Estate) -> None:
    lab.filter("b2", "output", "reject with icmp type admin-prohibited")


def _lose_all_routes(lab: Estate) -> None:
    """r2 rations its errors: most of what it refuses, it refuses without a word."""
    lab["r2"].ip(*(f"route del 10.96.{number}.0/24" for number in (1, 2, 4)))


def _narrow_one_end(lab: Estate) -> None:
    """What r2 sends through it is too large for r1, which drops it as it comes in."""
    lab["r1"].ip("link set core mtu 1400")


def _stop_forwarding(lab: Estate) -> None:
    lab["a3"].ip("route add 10.96.3.0/24 via 10.96.1.2", "route add 10.96.2.0/24 via 10.96.1.2")
    lab["a1"].ip("route add 10.96.3.0/24 via 10.96.1.2", "route add 10.96.2.0/24 via 10.96.1.2")


FLOWS = "tcp 6443, 7000, 9100, 10250; udp 8472; icmp echo"
FAULTS = (
    Fault("mtu hole", _narrow_way, ("packets above 1400 bytes vanish from a1 to c1 (",)),
    Fault("missing route", _lose_route, (
        f"10.96.3.254 has no route for {FLOWS} from c1, c2, c3 to b1, b2, b3, and the answers "
        "from c1, c2, c3 to b1, b2, b3 (",
    )),
    Fault("output chain", _reject_output, ("b2 itself stops tcp 7000 to ",), rules=1),
    Fault("dead next hop", _kill_next_hop, (
        f"10.96.1.77, the next hop of a3, answers nothing: {FLOWS} to c1, c2, c3, and the answers "
        "from a3 to c1, c2, c3 (",
    )),
    Fault("held twice", _hold_twice, ("another machine answers for b3 (10.96.2.3), and the ",)),
    Fault("own firewall", _close_ports, ("tcp 6443, 9100 from ",), rules=1),
    Fault("a chain", _stop_a_chain, (
        "tcp 10250 from b1 to a2 is dropped on the path (1 flow)",
        "tcp 10250 from a2 to c3 is dropped on the path (1 flow)",
    ), rules=2),
    Fault("a name", _forget_name, (
        "a2, a3, c1, c2 and 1 more cannot resolve registry.estate.test (5 flows)",
    )),
    Fault("resolver", _lose_resolver, ("no configured name server of a1 resolves names (",)),
)  # fmt: skip
# What hides other faults, or is hidden by them.
ALONE = (
    Fault("nothing out", _seal_host, (
        f"b2 itself stops {FLOWS} to a1, a2, a3, b1 and 4 more, and the answers from b2 to a1, a2, "
        "a3, b1 and 4 more, and no names resolve on b2 (",
    ), rules=1),
    # The name server of two more hosts is on r2 itself, of which no host knows the other address.
    Fault("no route at all", _lose_all_routes, (
        "10.96.3.254 has no route for tcp 5000, 6443, 7000, 9100, 10250; udp 8472; icmp echo from "
        "c1, c2, c3 to a1, a2, a3, b1 and 4 more (each where it is required), and the answers ",
        "no configured name server of a2, a3 resolves names (",
    )),
    Fault("one end narrow", _narrow_one_end, (
        "10.96.1.254 and 10.96.2.254 carry only 1400 bytes between (a1, a2, a3, b1 and 2 more) and "
        "(c1, c2, c3) (",
    )),
    Fault("a hop that forwards nothing", _stop_forwarding, (
        f"10.96.1.2, the next hop of a1, a3, answers nothing: {FLOWS} to b1, b2, b3, c1 and 2 more",
    )),
)  # fmt: skip

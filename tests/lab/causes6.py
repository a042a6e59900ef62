"""The estate of ``causes`` over IPv6, and its faults that have a twin there.

The nine have IPv4 addresses, too, by which they ask for names; the inventory has the others.
"""

from __future__ import annotations

from tests.lab.causes import FLOWS, NAMED, NETS, Estate, Fault

ADDRESSES_6 = {
    f"{net}{n}": f"fd96:{number}::{n}" for net, number in NETS.items() for n in (1, 2, 3)
}
GATEWAYS_6 = {net: f"fd96:{number}::fe" for net, number in NETS.items()}
NAMED_6 = {name: f"fd96:4::{number}" for number, name in enumerate(NAMED, 1)}
LINK_6 = {"r1": "fd96:9::1", "r2": "fd96:9::2"}


class Estate6(Estate):
    """The same nine hosts; each packet between them is of IPv6."""

    probed = ADDRESSES_6

    def build(self) -> None:
        """Build it healthy, with both families."""
        super().build()
        for router, address in LINK_6.items():
            self[router].ip(f"address add {address}/64 dev core nodad")
        for net, number in NETS.items():
            router, other = ("r2", "r1") if net == "c" else ("r1", "r2")
            self[router].ip(f"address add {GATEWAYS_6[net]}/64 dev to-{net} nodad")
            self[other].ip(f"route add fd96:{number}::/64 via {LINK_6[router]}")
            for n in (1, 2, 3):
                host = self[f"{net}{n}"]
                host.addresses.append(ADDRESSES_6[host.name])
                host.ip(
                    f"address add {ADDRESSES_6[host.name]}/64 dev eth0 nodad",
                    f"route add default via {GATEWAYS_6[net]}",
                )
        self._build_named_6()
        self.wait_until_ready()

    def _build_named_6(self) -> None:
        """Give the hosts that are known by name addresses, and the name servers their records."""
        self["r2"].ip(f"route add fd96:4::/64 via {LINK_6['r1']}")
        for number, (name, address) in enumerate(NAMED_6.items(), 1):
            gateway = f"fd96:4::f{number}"  # each device of r1 answers for its own addresses alone
            self[name].addresses.append(address)
            self[name].ip(
                f"address add {address}/64 dev eth0 nodad", f"route add default via {gateway}"
            )
            self["r1"].ip(
                f"address add {gateway}/128 dev to-{name} nodad",
                f"route add {address}/128 dev to-{name}",
            )
        records = {f"{name}.estate.test": address for name, address in NAMED_6.items()}
        for router in LINK_6:
            self.restart_names(router, records)


def _narrow_way(lab: Estate) -> None:
    hole = "ip6 saddr fd96:1::1 ip6 daddr fd96:3::1 meta length > 1400 drop"
    lab.filter("r2", "forward", hole, family="ip6")


def _lose_route(lab: Estate) -> None:
    """r2 does not ration its errors, as in the twin."""
    lab["r2"].run("sysctl", "-q", "-w", "net.ipv6.icmp.ratelimit=0")
    lab["r2"].ip("route del fd96:2::/64")


def _kill_next_hop(lab: Estate) -> None:
    """All routes by it: over IPv6 a host's kernel takes a wider route, where it has one, as soon
    as it has given the next hop of the narrower one up."""
    lab["a3"].ip("route replace default via fd96:1::77")


def _stop_a_chain(lab: Estate) -> None:
    drop = "ip6 saddr fd96:{} ip6 daddr fd96:{} tcp dport 10250 drop"
    rules = drop.format("2::1", "1::2"), drop.format("1::2", "3::3")
    lab.filter("r1", "forward", *rules, family="ip6")


FAULTS_6 = (
    Fault("mtu hole", _narrow_way, ("packets above 1400 bytes vanish from a1 to c1 (",)),
    Fault("missing route", _lose_route, (
        f"fd96:3::fe has no route for {FLOWS} (IPv6) from c1, c2, c3 to b1, b2, b3, and the "
        "answers from c1, c2, c3 to b1, b2, b3 (",
    )),
    Fault("dead next hop", _kill_next_hop, (
        f"fd96:1::77, the next hop of a3, answers nothing: {FLOWS} (IPv6) to b1, b2, b3, c1 and 2 "
        "more and tcp 5000 (IPv6) to registry, mirror, and the answers from a3 to b1, b2, b3, c1 "
        "and 2 more (",
    )),
    Fault("a chain", _stop_a_chain, (
        "tcp 10250 (IPv6) from b1 to a2 is dropped on the path (1 flow)",
        "tcp 10250 (IPv6) from a2 to c3 is dropped on the path (1 flow)",
    ), rules=2),
)  # fmt: skip

"""Hosts that do not answer on a network: dead ones, dead gateways, wrong routes, wrong machines.

Hosts hang on switches (bridges), as they do in a rack, so that ARP and neighbour tables matter:
a and b with the router r, and behind it d and p.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace

pytestmark = [pytest.mark.lab, pytest.mark.slow]

# 26 flows of three protocols, as a control plane needs them.
FLOWS = {
    "tcp": [22, 2379, 2380, 4222, 6443, 9100, 10250, 10256, "7000-7007"],
    "udp": [53, 123, 500, 4789, 8472, "6000-6003"],
    "icmp": "echo",
}
COUNT = 26
DENIED = 9999


class Rack:
    """Two networks with a router between them, on switches; both families."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.left, self.right = self._switch("left"), self._switch("right")
        self.r = lab.namespace("r", router=True)
        self.plug(self.left, self.r, "10.97.1.254", "fd97:1::254")
        self.plug(self.right, self.r, "10.97.2.254", "fd97:2::254")
        self.a, self.b = self.host("a", self.left, 1, 1), self.host("b", self.left, 1, 2)
        self.d, self.p = self.host("d", self.right, 2, 1), self.host("p", self.right, 2, 2)
        lab.wait_until_ready()

    def _switch(self, name: str) -> Namespace:
        switch = self.lab.namespace(name)
        switch.ip("link add br0 type bridge mcast_snooping 0", "link set br0 up")
        return switch

    def plug(self, switch: Namespace, host: Namespace, *addresses: str) -> None:
        """A cable from the host to the switch, with these addresses at the host's end."""
        port = f"p-{host.name}"
        self.lab.cable(host, f"e-{switch.name}", switch, port)
        switch.ip(f"link set {port} master br0")
        for text in addresses:
            bits = "64 nodad" if ":" in text else "24"
            host.ip(f"address add {text}/{bits} dev e-{switch.name}")

    def host(self, name: str, switch: Namespace, net: int, number: int) -> Namespace:
        made = self.lab.namespace(name)
        made.addresses += [f"10.97.{net}.{number}", f"fd97:{net}::{number}"]
        self.plug(switch, made, *made.addresses)
        made.ip(f"route add default via 10.97.{net}.254", f"route add default via fd97:{net}::254")
        return made

    def run(
        self, sources: Iterable[str], targets: dict[str, Any], *words: str, flows: Any = None
    ) -> Finished:
        """Probe all flows from the sources to the targets, with these keys in the inventory."""
        here = {name: {"roles": ["client"]} for name in sources}
        there: dict[str, Any] = {
            name: {"roles": ["server"]} | more for name, more in targets.items()
        }
        hosts = {}
        for name, more in (here | there).items():
            known = self.lab.namespaces.get(name)
            words_in = {"command": known.enter} if known else "none"
            addresses = known.addresses if known else []
            hosts[name] = {"addresses": addresses, "vantage": words_in} | more
        line = {"from": "client", "to": "server", "purpose": "p", "row": "r"}
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"client": {}, "server": {}},
            "requirements": [
                {"id": "all", **line, **(flows or FLOWS)},
                {"id": "shut", **line, "tcp": [DENIED], "expect": "denied"},
            ],
        }  # fmt: skip
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        return netprobe(
            "run", "-o", "json",
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))),
            *words,
        )  # fmt: skip


@pytest.fixture
def rack() -> Iterator[Rack]:
    with Lab() as lab:
        yield Rack(lab)


def told(done: Finished, requirement: str = "all") -> set[tuple[Any, ...]]:
    """Destination, verdict, reason and places of every result."""
    return {
        (one["destination"], one["verdict"], one["reason"], tuple(one["where"]))
        for one in done.results
        if one["requirement"] == requirement
    }


def titles(done: Finished) -> list[str]:
    return [one["title"] for one in done.document["findings"]]


def test_a_dead_neighbour_is_down_once_for_all_its_flows(rack: Rack) -> None:
    """Both sources, both families, every protocol and range: one cause each address."""
    dead = {"addresses": ["10.97.1.9", "fd97:1::9"], "vantage": "none"}

    done = rack.run(["a", "b"], {"dead": dead, "p": {}})

    assert told(done) == {
        ("dead", "blocked", "host-down", ("host",)),
        ("p", "pass", "nonce-answer", ()),
        ("p", "pass", "echo-reply", ()),
    }, done.stderr
    flows = sum(
        (one["end_port"] or 0) - (one["port"] or 0) + 1
        for one in done.results
        if (one["destination"], one["requirement"]) == ("dead", "all")
    )
    assert flows == COUNT * 4
    assert titles(done) == [
        f"dead ({address}) is down or not reachable at all ({COUNT * 2} flows)"
        for address in dead["addresses"]
    ]
    # Nor does "host unreachable" say that a port is shut, as it must be.
    assert {one[1] for one in told(done, "shut") if one[0] == "dead"} == {"inconclusive"}


def test_a_dead_gateway_is_not_every_host_behind_it(rack: Rack) -> None:
    """One finding, at the source, with the next hop's name."""
    rack.a.ip("route replace default via 10.97.1.250", "route replace default via fd97:1::250")

    done = rack.run(["a"], {"d": {}, "p": {"vantage": "none"}, "b": {}})

    assert told(done) == {
        ("d", "blocked", "next-hop-down", ("path", "source")),
        ("p", "blocked", "next-hop-down", ("path", "source")),
        ("b", "pass", "nonce-answer", ()),
        ("b", "pass", "echo-reply", ()),
    }, done.stderr
    assert [one.partition(":")[0] if "10.97" in one else one[:11] for one in titles(done)] == [
        "10.97.1.250, the next hop of a, answers nothing", "fd97:1::250",
    ]  # fmt: skip
    assert {one["next_hop"] for one in done.results if one["verdict"] == "blocked"} == {
        "10.97.1.250", "fd97:1::250",
    }  # fmt: skip


def test_a_cable_that_is_out_is_the_sources(rack: Rack) -> None:
    """Whatever it wants to reach; the other end of the cable may be at fault as well."""
    rack.left.ip("link set p-a down")

    done = rack.run(["a"], {"d": {}, "b": {"vantage": "none"}}, flows={"tcp": [22], "udp": [53]})

    assert {(*one[:2], *one[3]) for one in told(done)} == {
        ("d", "blocked", "path", "source"), ("b", "blocked", "path", "source"),
    }  # fmt: skip


def test_a_host_behind_a_router_is_down_by_the_word_of_its_network(rack: Rack) -> None:
    """p is there and gets no answer; without it, the router's next hop may be another router."""
    dead = {"addresses": ["10.97.2.9", "fd97:2::9"], "vantage": "none"}
    few = {"tcp": [22, "7000-7003"], "icmp": "echo"}

    done = rack.run(["a"], {"dead": dead, "p": {}}, flows=few)
    assert ("dead", "blocked", "host-down", ("host",)) in told(done), done.stderr
    assert {one[1] for one in told(done) if one[0] == "p"} == {"pass"}
    assert all("p is there" in one["because"] for one in done.results
               if (one["destination"], one["requirement"]) == ("dead", "all"))  # fmt: skip

    done = rack.run(["a"], {"dead": dead}, flows=few)
    assert told(done) == {("dead", "blocked", "host-down", ("host", "path"))}, done.stderr
    assert {one[1] for one in told(done, "shut")} == {"inconclusive"}
    assert len(titles(done)) == 2


@pytest.mark.parametrize("agent", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_next_hop_that_forwards_nothing_is_named(rack: Rack, agent: bool) -> None:
    """b answers ARP and swallows what is for d; p is reached by the router."""
    rack.a.ip("route add 10.97.2.1 via 10.97.1.2", "route add fd97:2::1 via fd97:1::2")
    there: dict[str, Any] = {"d": {} if agent else {"vantage": "none"}, "p": {}}

    done = rack.run(["a"], there, flows={"tcp": [22, 6443], "icmp": "echo"})

    assert {one for one in told(done) if one[0] == "d"} == {
        ("d", "blocked", "next-hop-silent", ("path", "source"))
    }, done.stderr
    assert {one[1] for one in told(done) if one[0] == "p"} == {"pass"}
    for one in done.results:
        if (one["destination"], one["requirement"]) == ("d", "all"):
            router = "10.97.1.254" if "." in one["address"] else "fd97:1::254"
            assert f"its route to p goes by {router}" in one["because"]
    assert [one.split(",")[0] for one in titles(done)] == ["10.97.1.2", "fd97:1::2"]


def test_a_firewall_on_the_way_is_no_wrong_route(rack: Rack) -> None:
    """It drops all that is for d, and shows itself to nobody; p answers by the same next hop."""
    rack.r.nft(
        "table inet wall {\n chain c {\n type filter hook prerouting priority 0\n"
        "ip daddr 10.97.2.1 drop\n ip6 daddr fd97:2::1 drop\n }\n}"
    )

    done = rack.run(["a"], {"d": {}, "p": {}}, flows={"tcp": [22, 6443]})

    assert {one for one in told(done) if one[0] == "d"} == {
        ("d", "blocked", "no-response", ("path",))
    }, done.stderr


def test_an_own_firewall_that_says_host_unreachable_is_no_dead_host(rack: Rack) -> None:
    """The neighbour is there: only these ports are refused."""
    rack.a.nft(
        "table inet wall {\n chain c {\n type filter hook output priority 0\n"
        "tcp dport 6443 ip daddr 10.97.1.2 reject with icmp host-unreachable\n"
        "tcp dport 6443 ip6 daddr fd97:1::2 reject with icmpv6 addr-unreachable\n }\n}"
    )

    done = rack.run(["a"], {"b": {}}, flows={"tcp": [22, 6443], "icmp": "echo"})

    assert told(done) == {
        ("b", "blocked", "local-firewall", ("source",)),
        ("b", "pass", "nonce-answer", ()),
        ("b", "pass", "echo-reply", ()),
    }, done.stderr


def test_a_second_machine_with_the_address_never_passes(rack: Rack) -> None:
    """The source's ARP finds x, which has the address of b too; its agent asks everybody."""
    x = rack.lab.namespace("x")
    rack.plug(rack.left, x, "10.97.1.2", "fd97:1::2")
    (link,) = json.loads(x.run("ip", "-j", "link", "show", "e-left"))
    for address in rack.b.addresses:
        rack.a.ip(f"neigh replace {address} lladdr {link['address']} dev e-left nud permanent")

    done = rack.run(["a"], {"b": {}})
    assert {one[:3] for one in told(done) | told(done, "shut")} == {
        ("b", "blocked", "other-machine"),
        ("b", "inconclusive", "other-machine"),
    }, done.stderr
    assert all(link["address"] in one["because"] for one in done.results
               if one["requirement"] == "all")  # fmt: skip

    # With an agent it has a name.
    x.addresses.append("10.97.1.77")
    x.ip("address add 10.97.1.77/24 dev e-left")
    done = rack.run(["a"], {"b": {}, "x": {"roles": ["client"]}})
    found = {one[:3] for one in told(done) | told(done, "shut") if one[0] == "b"}
    assert ("b", "blocked", "other-machine") in found, done.stderr
    assert "another machine answers for b (10.97.1.2) " in " ".join(titles(done))


def test_a_source_that_has_the_destinations_address_is_told_so(rack: Rack) -> None:
    """Nothing leaves it, and it answers itself."""
    rack.a.ip("address add 10.97.1.2/32 dev lo", "address add fd97:1::2/128 dev lo")

    done = rack.run(["a"], {"b": {}})

    assert told(done) == {("b", "blocked", "address-here", ("source",))}, done.stderr
    assert {one[1] for one in told(done, "shut")} == {"inconclusive"}


def test_the_way_onto_a_host_that_leads_elsewhere_never_passes(rack: Rack) -> None:
    """The agent runs on d, and the address is that of b; ``check --hosts`` says so too."""
    there = {"b": {"vantage": {"command": rack.d.enter}}}

    done = rack.run(["a"], there)
    files = [str(rack.lab.folder / name) for name in ("matrix.yaml", "inventory.yaml")]
    checked = netprobe("check", "--hosts", "-m", files[0], "-i", files[1])

    assert "pass" not in {one["verdict"] for one in done.results}, done.stderr
    assert "b: it does not have the address 10.97.1.2" in checked.stdout, checked.stderr
    assert [one.rpartition(" (")[0] for one in titles(done)] == [
        f"another machine seems to answer for b ({address})" for address in rack.b.addresses
    ]


def test_loopback_addresses_of_one_machine_are_its_own(rack: Rack) -> None:
    """What is sent to 127.0.0.3 comes from 127.0.0.1."""
    line = {"from": "client", "to": "server", "purpose": "p", "row": "r", "tcp": [22]}
    matrix = {
        "schema": "netprobe.matrix/1", "name": "m", "title": "M",
        "roles": {"client": {}, "server": {}}, "requirements": [{"id": "all", **line}],
    }  # fmt: skip
    hosts = {
        "one": {"address": "127.0.0.2", "roles": ["client"], "vantage": "local"},
        "two": {"address": "127.0.0.3", "roles": ["server"], "vantage": "local"},
    }
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}

    done = netprobe(
        "run", "-o", "json",
        "-m", str(rack.lab.write("matrix.yaml", json.dumps(matrix))),
        "-i", str(rack.lab.write("inventory.yaml", yaml.safe_dump(inventory))),
        within=rack.a.enter,
    )  # fmt: skip

    assert [(one["verdict"], one["warnings"]) for one in done.results] == [("pass", [])]


def test_an_address_that_the_inventory_does_not_list_is_no_translation(rack: Rack) -> None:
    """The source has it and chose it; and 127.0.0.1 is its own as well."""
    rack.a.ip(
        "address add 10.97.1.77/24 dev e-left",
        "route replace 10.97.1.0/24 dev e-left src 10.97.1.77",
    )

    done = rack.run(["a"], {"b": {}}, flows={"tcp": [22], "udp": [53]})

    assert {(one["verdict"], *one["warnings"]) for one in done.results} == {("pass",)}

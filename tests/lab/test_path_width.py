"""Paths on which TCP connections open and then hang, because full-sized segments vanish."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace

pytestmark = [pytest.mark.lab, pytest.mark.slow]

HERE, THERE = ("10.98.1.2", "fd98:1::2"), ("10.98.2.2", "fd98:2::2")
PORTS = [6443, "7000-7003"]
NARROW = 1400
# What an independent client sends and gets back: several full-sized segments.
PAYLOAD = 20000


class Pair:
    """source - router - destination, both families."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source = lab.namespace("source")
        self.router = lab.namespace("router", router=True)
        self.destination = lab.namespace("destination")
        for net, host in ((1, self.source), (2, self.destination)):
            lab.cable(host, "eth0", self.router, f"to{net}")
            host.ip(f"address add 10.98.{net}.2/24 dev eth0",
                    f"address add fd98:{net}::2/64 dev eth0 nodad")  # fmt: skip
            self.router.ip(f"address add 10.98.{net}.1/24 dev to{net}",
                           f"address add fd98:{net}::1/64 dev to{net} nodad")  # fmt: skip
            host.ip(f"route add default via 10.98.{net}.1", f"route add default via fd98:{net}::1")
        lab.wait_until_ready()

    def forward(self, *rules: str) -> None:
        """A firewall in the router for what it forwards."""
        lines = "\n".join(("type filter hook forward priority 0;", *rules))
        self.router.nft(f"table inet narrow {{ chain forward {{\n{lines}\n}}\n}}")

    def run(self, *words: str) -> Finished:
        """Probe from both ends."""
        hosts = {
            name: {"addresses": list(addresses), "roles": ["node"],
                   "vantage": {"command": host.enter}}
            for name, addresses, host in (
                ("source", HERE, self.source), ("destination", THERE, self.destination)
            )
        }  # fmt: skip
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M", "roles": {"node": {}},
            "requirements": [{"id": "api", "from": "node", "to": "node", "tcp": PORTS,
                              "purpose": "p", "row": "r"}],
        }  # fmt: skip
        inventory = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
        return netprobe(
            "run", "-o", "json", *words,
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", inventory)),
        )  # fmt: skip

    def carries(self, client: Namespace, server: Namespace, address: str) -> bool:
        """Tell, without netprobe, whether a plain connection carries a large message both ways."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = server.socket(family, socket.SOCK_STREAM)
        listener.bind((address, 9))
        listener.listen()
        talker = client.socket(family, socket.SOCK_STREAM)
        talker.connect((address, 9))
        with listener, talker, listener.accept()[0] as taken:
            taken.settimeout(1.5)
            talker.settimeout(1.5)
            try:
                for sender, receiver in ((talker, taken), (taken, talker)):
                    sender.sendall(bytes(PAYLOAD))
                    left = PAYLOAD
                    while left:
                        left -= len(receiver.recv(left))
            except TimeoutError:
                return False
        return True


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Lab() as lab:
        yield Pair(lab)


def told(done: Finished, source: str) -> set[tuple[Any, ...]]:
    """What the report says of the flows of a source to the other host."""
    return {
        (one["verdict"], one["reason"], tuple(one["where"]), one.get("path_mtu_bytes"))
        for one in done.results
        if one["source"] == source and one["destination"] != source
    }


def lost(place: str) -> set[tuple[Any, ...]]:
    return {("blocked", "mtu-black-hole", (place,), NARROW)}


PASS = {("pass", "nonce-answer", (), None)}


def test_a_link_that_is_too_small_without_a_word_is_a_finding(pair: Pair) -> None:
    """Its router's ICMP errors are dropped: connections open, and large segments vanish."""
    pair.router.ip(f"link set to2 mtu {NARROW}")
    quiet = "icmp type destination-unreachable drop; icmpv6 type packet-too-big drop;"
    hook = "type filter hook output priority 0;"
    pair.router.nft(f"table inet quiet {{ chain output {{ {hook} {quiet}\n}}\n}}")
    assert not any(pair.carries(pair.source, pair.destination, address) for address in THERE)

    done = pair.run()

    assert done.status == 1
    assert told(done, "source") == lost("path"), done.stderr
    # What the destination sends as a client is answered by segments that are too large as well.
    assert told(done, "destination") == lost("return-path")
    (first, *_) = done.document["findings"]
    assert f"packets above {NARROW} bytes vanish" in first["title"]
    assert "(the interfaces send 1500)" in first["title"]


@pytest.mark.parametrize(("interface", "place"), [("to2", "path"), ("to1", "return-path")])
def test_the_way_that_loses_them_is_named(pair: Pair, interface: str, place: str) -> None:
    """A rule drops large packets of one direction only, and only of this family."""
    pair.forward(f"oifname {interface} ip length > {NARROW} drop")
    assert not pair.carries(pair.source, pair.destination, THERE[0])
    assert pair.carries(pair.source, pair.destination, THERE[1])

    done = pair.run("--from", "source")

    four = [one for one in done.results if one["address"] == THERE[0]]
    assert {(one["verdict"], tuple(one["where"])) for one in four} == {("blocked", (place,))}
    assert told(done, "source") == lost(place) | PASS


def test_a_router_that_says_how_much_it_carries_is_no_finding(pair: Pair) -> None:
    """The kernels send smaller segments then."""
    pair.router.ip(f"link set to2 mtu {NARROW}")
    assert all(pair.carries(pair.source, pair.destination, address) for address in THERE)

    done = pair.run()

    assert done.status == 0, done.stdout
    assert told(done, "source") == told(done, "destination") == PASS


def test_loss_is_not_taken_for_a_narrow_path(pair: Pair) -> None:
    """Every fifth packet is lost on each way, full-sized segments among them."""
    pair.forward("numgen random mod 100 < 20 drop")

    done = pair.run("--from", "source")

    assert told(done, "source") == PASS, done.stdout

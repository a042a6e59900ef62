"""`netprobe explain` on real namespaces: source, two routers, destination, and firewalls of nft."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace

PORT = 7000
SOURCE, DESTINATION = "10.93.1.2", "10.93.3.2"
ROUTER_1, ROUTER_2 = "10.93.1.1", "10.93.2.2"
# What a run says of a flow, and explain must say too.
SAME = ("verdict", "state", "reason", "proof", "where", "rejected_by", "last_hop")
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "one-flow",
    "title": "The flow that is explained",
    "roles": {"src": {}, "dst": {}},
    "requirements": [
        {"id": "api", "from": "src", "to": "dst", "tcp": [PORT], "purpose": "the API"},
        {"id": "overlay", "from": "src", "to": "dst", "udp": [PORT], "purpose": "the overlay"},
    ],
}


class Chain:
    """source - router-1 - router-2 - destination, with one network for each cable."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source = lab.namespace("source")
        self.router_1 = lab.namespace("router-1", router=True)
        self.router_2 = lab.namespace("router-2", router=True)
        self.destination = lab.namespace("destination")
        parts = (self.source, self.router_1, self.router_2, self.destination)
        for number, (left, right) in enumerate(zip(parts, parts[1:], strict=False), start=1):
            lab.cable(left, f"r{number}", right, f"l{number}")
            self._address(left, f"r{number}", number, 1 if number > 1 else 2)
            self._address(right, f"l{number}", number, 2 if number > 1 else 1)
        self._routes()
        lab.wait_until_ready()
        self.matrix = lab.write("matrix.yaml", json.dumps(MATRIX))

    @staticmethod
    def _address(part: Namespace, device: str, net: int, last: int) -> None:
        part.ip(
            f"address add 10.93.{net}.{last}/24 dev {device}",
            f"address add fd93:{net}::{last}/64 dev {device} nodad",
        )

    def _routes(self) -> None:
        for part, v4, v6 in (
            (self.source, ROUTER_1, "fd93:1::1"),
            (self.router_1, ROUTER_2, "fd93:2::2"),
            (self.destination, "10.93.3.1", "fd93:3::1"),
        ):
            part.ip(f"route add default via {v4}", f"route add default via {v6}")
        self.router_2.ip(
            "route add 10.93.1.0/24 via 10.93.2.1", "route add fd93:1::/64 via fd93:2::1"
        )

    def inventory(self, destination: str, *, agent: bool, six: str = "") -> str:
        """An inventory of both ends; without an agent the destination is an address only."""
        vantage: object = {"command": self.destination.enter} if agent else "none"
        ends = {"source": [SOURCE], "destination": [destination]}
        if six:
            ends = {"source": [SOURCE, "fd93:1::2"], "destination": [destination, six]}
        hosts = {
            "source": {"addresses": ends["source"], "roles": ["src"],
                       "vantage": {"command": self.source.enter}},
            "destination": {"addresses": ends["destination"], "roles": ["dst"],
                            "vantage": vantage},
        }  # fmt: skip
        document = {"schema": "netprobe.inventory/1", "hosts": hosts}
        return str(self.lab.write("inventory.yaml", yaml.safe_dump(document)))


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def forward(part: Namespace, rule: str) -> None:
    """One rule for what a router forwards."""
    wall(part, "forward", rule)


def wall(part: Namespace, hook: str, *rules: str) -> None:
    """A firewall of its own for one hook; loopback stays open."""
    lines = "\n".join(rules)
    part.nft(
        f"table inet {hook} {{ chain {hook} {{\ntype filter hook {hook} priority 0;\n{lines}\n}}\n}}"
    )


class Explained:
    """What explain said of a flow, and that a run says the same."""

    def __init__(self, chain: Chain, inventory: str, wire: str = f"tcp/{PORT}") -> None:
        protocol = wire.partition("/")[0]
        words = ("-i", inventory, "-m", str(chain.matrix), "-o", "json")
        self.finished = netprobe("explain", "source", "destination", wire, *words)
        run = netprobe("run", *words, "--protocol", protocol)
        self.flow: dict[str, Any] = self.finished.document["flows"][0]
        self.result: dict[str, Any] = self.flow["result"]
        assert self.finished.status == run.status, self.finished.stderr
        assert {key: self.result[key] for key in SAME} == {key: run.results[0][key] for key in SAME}

    def step(self, name: str) -> dict[str, Any]:
        """One step by its name."""
        return next(step for step in self.flow["steps"] if step["name"] == name)

    def facts(self, name: str) -> dict[str, Any]:
        """The facts of one step."""
        found: dict[str, Any] = self.step(name)["facts"]
        return found

    def words(self, name: str) -> str:
        """The sentences of one step."""
        return "; ".join(self.step(name)["words"])


def text(inventory: str, wire: str, *words: str) -> Finished:
    """The page for people."""
    return netprobe("explain", "source", "destination", wire, "-i", inventory, *words)


def hop_addresses(walk: dict[str, Any]) -> list[str]:
    """The hops that answered a walk."""
    return [hop["address"] for hop in walk["hops"] if hop["address"]]

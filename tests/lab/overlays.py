"""Pairs of hosts between which overlays run, and an independent look at their tunnels.

The truth is that of tunnels that the program ``ip`` makes on the hosts, of the kernel's ``ping``
and of sockets of the test: nothing of netprobe has a part in it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.needs import require

PORT = 8472
CARD = Path(__file__).with_name("bad_card.py")
FAMILIES = (4, 6)
# Bytes of an independent transfer.
PAYLOAD = 100_000
# Independent connections that fail are given up after this.
GIVE_UP_S = 2.5
LISTINGS = (
    ("ip", "-d", "link"), ("ip", "address"), ("ip", "rule"),
    ("ip", "route", "show", "table", "all"),
    ("ip", "-6", "route", "show", "table", "all"), ("ss", "-Hanuetpw"), ("nft", "list", "ruleset"),
    ("sysctl", "-a", "--pattern", "^net[.]"),
)  # fmt: skip
# Full segments of TCP over VXLAN over IPv4 and IPv6 vanish; netprobe's own large packets pass.
LARGE = (
    "meta nfproto ipv4 udp dport 8472 udp length > 1300 @th,312,8 6 drop",
    "meta nfproto ipv6 udp dport 8472 udp length > 1300 @th,288,8 6 drop",
)
INSIDE = {4: ("10.244.0.1", "10.244.0.2", 24), 6: ("fd24::1", "fd24::2", 64)}


class Truth(NamedTuple):
    """What passes a tunnel that was made without netprobe."""

    echo: bool
    few: bool
    many: bool


class OverlayPair:
    """Two hosts, ``a`` and ``b``, with a router between them or a card in user space."""

    def __init__(self, lab: Lab, card: str | None = None) -> None:
        self.lab = lab
        self.a, self.b = lab.namespace("a"), lab.namespace("b")
        self.router: Namespace | None = None
        if card is None:
            self._connect_by_router()
        else:
            self._connect_by_card(card)
        lab.wait_until_ready()

    def _connect_by_router(self) -> None:
        router = self.router = self.lab.namespace("r", router=True)
        for net, host in ((1, self.a), (2, self.b)):
            self.lab.cable(host, "e0", router, f"to{net}")
            router.ip(
                f"address add 10.77.{net}.1/24 dev to{net}",
                f"address add fd77:{net}::1/64 dev to{net} nodad",
            )
            self._give_addresses(host, "e0", net)
            host.ip(f"route add default via 10.77.{net}.1", f"route add default via fd77:{net}::1")

    def _connect_by_card(self, kind: str) -> None:
        require("tunnel devices")
        words = (sys.executable, str(CARD), kind, self.b.netns)
        started = self.a.spawn(*words, stdout=-1)
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        for net, host in ((1, self.a), (2, self.b)):
            host.ip("link set card up")
            self._give_addresses(host, "card", net)
            host.ip(f"route add 10.77.{3 - net}.0/24 dev card",
                    f"route add fd77:{3 - net}::/64 dev card")  # fmt: skip

    def _give_addresses(self, host: Namespace, device: str, net: int) -> None:
        texts = [f"10.77.{net}.2", f"fd77:{net}::2"]
        host.addresses += texts
        host.ip(
            f"address add {texts[0]}/24 dev {device}",
            f"address add {texts[1]}/64 dev {device} nodad",
        )

    def forward(self, *rules: str) -> None:
        """Rules of the router for what it forwards."""
        assert self.router is not None
        lines = "\n".join(("type filter hook forward priority 0;", *rules))
        self.router.nft(f"table inet lab {{ chain forward {{\n{lines}\n}}\n}}")

    def run(
        self,
        *words: str,
        verb: str = "run",
        row: dict[str, Any] | None = None,
        enter: dict[str, list[str]] | None = None,
    ) -> Finished:
        """Run netprobe for a row of VXLAN between both hosts."""
        return netprobe(verb, *words, *self.write_files(row, enter))

    def write_files(
        self, row: dict[str, Any] | None = None, enter: dict[str, list[str]] | None = None
    ) -> list[str]:
        """Write a matrix and an inventory, and give the words that name them.

        ``row``: keys of the row that are otherwise, ``enter``: words before a host's agent.
        """
        hosts = {
            one.name: {
                "addresses": one.addresses,
                "roles": ["node"],
                "vantage": {"command": [*one.enter, *(enter or {}).get(one.name, [])]},
            }
            for one in (self.a, self.b)
        }
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M", "roles": {"node": {}},
            "requirements": [{"id": "vxlan", "from": "node", "to": "node", "udp": [PORT],
                              "probe": "vxlan", "purpose": "pods", "row": "r"} | (row or {})],
        }  # fmt: skip
        inventory = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
        return [
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", inventory)),
        ]  # fmt: skip

    def list_all(self) -> dict[str, str]:
        """List what ``ip``, ``ss``, ``nft`` and ``sysctl`` show of both hosts."""
        return {
            f"{one.name}: {' '.join(words)}": one.run(*words)
            for one in (self.a, self.b)
            for words in LISTINGS
        }

    def look(
        self, family: int, *, by_cpu: bool = False, network: int = 77, port: int = PORT
    ) -> Truth:
        """Make a tunnel with ``ip`` from a to b, and see what passes it."""
        inside = INSIDE[family]
        for own, other, here in ((self.a, self.b, 0), (self.b, self.a, 1)):
            own.ip(
                f"link add look type vxlan id {network} dstport {port} local {own.address(family)} "
                f"remote {other.address(family)}",
                f"link set look mtu {1450 if family == 4 else 1430} up",
                f"address add {inside[here]}/{inside[2]} dev look"
                + (" nodad" if family == 6 else ""),
            )
            if by_cpu:
                own.run("ethtool", "-K", "look", "tx", "off")
        try:
            pinged = self.a.run("ping", "-c", "2", "-W", "1", inside[1], check=False)
            return Truth(
                " 0 received" not in pinged, self._talk(family, 64), self._talk(family, PAYLOAD)
            )
        finally:
            for host in (self.a, self.b):
                host.ip("link del look")

    def _talk(self, family: int, count: int) -> bool:
        """Tell whether a connection of the test carries so many bytes both ways."""
        kind = socket.AF_INET if family == 4 else socket.AF_INET6
        listener = self.b.socket(kind, socket.SOCK_STREAM)
        talker = self.a.socket(kind, socket.SOCK_STREAM)
        with listener, talker:
            listener.bind((INSIDE[family][1], 0))
            listener.listen()
            talker.settimeout(GIVE_UP_S)
            try:
                talker.connect(listener.getsockname())
                with listener.accept()[0] as taken:
                    taken.settimeout(GIVE_UP_S)
                    return _carry(talker, taken, count) and _carry(taken, talker, count)
            except OSError:
                return False


def _carry(sender: socket.socket, receiver: socket.socket, count: int) -> bool:
    sender.setblocking(False)
    sent = got = 0
    try:
        while got < count:
            with contextlib.suppress(BlockingIOError):
                sent += sender.send(bytes(min(8192, count - sent))) if sent < count else 0
            got += len(receiver.recv(65536))
    except TimeoutError:
        return False
    finally:
        sender.settimeout(GIVE_UP_S)
    return True


def overlays(done: Finished) -> dict[tuple[str, int], dict[str, Any]]:
    """The results of the rehearsal, by source and family."""
    return {
        (one["source"], 6 if ":" in one["address"] else 4): one
        for one in done.results
        if one["requirement"] == "vxlan/overlay"
    }

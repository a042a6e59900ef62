"""A balancer in front of hosts: a real HAProxy, or translation in the kernel.

The truth is HAProxy's own: its statistics socket counts the connections of each back end, and says
whether its checks pass. Nothing of netprobe has a part in it.
"""

from __future__ import annotations

import csv
import json
import socket
import subprocess
import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace, wait_for

PORT = 6443
HOSTS = {"cp1": "10.78.1.1", "cp2": "10.78.1.2", "cp3": "10.78.1.3"}
CLIENT, BALANCER, STRANGER = "10.78.2.1", "10.78.3.1", "10.78.4.1"
FRONT = "mode tcp"
HTTPS_CHECK = "option httpchk GET /readyz"
CONFIG = """
global
  stats socket {folder}/stats.sock mode 600 level admin
defaults
  timeout connect 2s
  timeout client 20s
  timeout server 20s
frontend api
  bind {address}:{port} {bind}
  {front}
  default_backend api
backend api
  {front}
  {back}
{servers}
"""


def start_haproxy(
    lab: Lab, host: Namespace, address: str, servers: Iterable[str], *, back: str = "",
    bind: str = "", front: str = FRONT,
) -> None:  # fmt: skip
    """Start HAProxy on a host. ``servers``: name, address and options of each."""
    lines = "\n".join(f"  server {one}" for one in servers)
    path = lab.write(
        "haproxy.cfg",
        CONFIG.format(
            folder=lab.folder, address=address, port=PORT, bind=bind, front=front, back=back,
            servers=lines,
        ),
    )  # fmt: skip
    host.spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
    control = lab.folder / "stats.sock"
    wait_for(
        lambda: control.exists() and any(one.endswith(f":{PORT}") for one in host.listening()),
        "HAProxy",
    )


class BalancedHosts(Lab):
    """Three control planes, a client, and what is to balance; all behind one router."""

    family = 4

    def build(self) -> None:
        """Build all but the balancer's own configuration."""
        router = self.router("r", self.write_address("10.78.0.1"))
        for name, address in HOSTS.items():
            self.host(name, router, self.write_address(address))
        self.host("client", router, self.write_address(CLIENT))
        self.host("lb", router, self.write_address(BALANCER))
        self.host("stranger", router, self.write_address(STRANGER))
        self.wait_until_ready()

    def write_address(self, text: str) -> str:
        """Write an address in the family of this lab."""
        if self.family == 4:
            return text
        _, one, two, three = text.split(".")
        return f"fd{one}:{two}::{three}"

    def start_haproxy(
        self, *back: str, servers: Iterable[str] = HOSTS.values(), options: str = "",
        bind: str = "", front: str = FRONT, own: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Start HAProxy. ``options`` are those of each server, but for those that have ``own``."""
        known = [self.write_address(one) for one in servers]
        lines = [
            f"s{at} {one}:{PORT} {own.get(f's{at}', options)}" for at, one in enumerate(known, 1)
        ]
        address = self.write_address(BALANCER)
        start_haproxy(
            self, self["lb"], address, lines, back="\n  ".join(back), bind=bind, front=front
        )

    def count_connections(self) -> dict[str, int]:
        """Ask HAProxy how many connections each of its servers got."""
        return {one["svname"]: int(one["stot"]) for one in self._read_statistics()}

    def wait_until_down(self) -> None:
        """Wait until HAProxy has seen that nothing listens at its servers: at first all are up."""
        wait_for(lambda: {*self.read_states().values()} <= {"DOWN", "no check"}, "all down")

    def switch_off(self, name: str) -> None:
        """Take a server out until somebody switches it on, whatever its checks say."""
        self._ask_control(f"set server api/{name} state maint")

    def read_states(self) -> dict[str, str]:
        """Ask HAProxy for the state of each of its servers: UP, DOWN, or how far it is to it."""
        return {one["svname"]: one["status"] for one in self._read_statistics()}

    def _read_statistics(self) -> Iterable[dict[str, str]]:
        text = self._ask_control("show stat").removeprefix("# ")
        rows = csv.DictReader(text.strip().splitlines())
        return [one for one in rows if one["svname"].startswith("s")]

    def _ask_control(self, words: str) -> str:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.folder / "stats.sock"))
            control.sendall(f"{words}\n".encode())
            with control.makefile() as stream:
                return stream.read()

    def run(
        self, *words: str, balancer: dict[str, Any] | None = None,
        row: dict[str, Any] | None = None,
    ) -> Finished:  # fmt: skip
        """Run netprobe for the way to the API. ``balancer``: keys of its host in the inventory.
        ``row``: further keys of the row that leads to it."""
        return netprobe("run", *words, *self.write_files(balancer, row), limit_s=200)

    def write_files(
        self, balancer: dict[str, Any] | None = None, row: dict[str, Any] | None = None
    ) -> list[str]:
        """Write a matrix and an inventory, and give the words that name them."""
        hosts: dict[str, Any] = {name: _describe(self[name], "control-plane") for name in HOSTS}
        hosts["client"] = _describe(self["client"], "client")
        hosts["lb"] = {
            "address": self.write_address(BALANCER), "roles": ["api-lb"], "vantage": "none",
            "balances": ["control-plane"], **(balancer or {}),
        }  # fmt: skip
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"api-lb": {"existing": True}, "control-plane": {}, "client": {}},
            "requirements": [
                {"id": "api", "from": "client", "to": "api-lb", "tcp": [PORT],
                 "purpose": "API", "row": "r", **(row or {})},
                {"id": "own", "from": ["client", "control-plane"], "to": "control-plane",
                 "tcp": [PORT], "purpose": "API", "row": "r"},
            ],
        }  # fmt: skip
        inventory = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
        return [
            "-m", str(self.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.write("inventory.yaml", inventory)),
        ]  # fmt: skip


class BalancedSixes(BalancedHosts):
    """The same over IPv6."""

    family = 6


class ServerWatch:
    """Writes down, while it is open, which states HAProxy's servers go through. A context.

    ``switches_off``: a server that was up and goes down is switched off.
    """

    def __init__(self, lab: BalancedHosts, *, switches_off: bool = False) -> None:
        self.states: dict[str, list[str]] = {}
        self._lab = lab
        self._switches_off = switches_off
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            for name, state in self._lab.read_states().items():
                self._note_state(name, state.split(" ")[0])

    def _note_state(self, name: str, word: str) -> None:
        seen = self.states.setdefault(name, [])
        if seen[-1:] == [word]:
            return
        seen.append(word)
        if self._switches_off and seen[-2:] == ["UP", "DOWN"]:
            self._lab.switch_off(name)

    def count_outages(self) -> dict[str, int]:
        """Tell how often each server was down between two times that it was up."""
        return {name: " ".join(seen).count("UP DOWN UP") for name, seen in self.states.items()}


def _describe(host: Namespace, role: str) -> dict[str, Any]:
    vantage = {"command": host.enter}
    return {"addresses": host.addresses, "roles": [role], "vantage": vantage}


def pools(done: Finished) -> dict[str, dict[str, Any]]:
    """The results of the rehearsal, by the source."""
    return {one["source"]: one for one in done.results if one["requirement"] == "api/balancer"}

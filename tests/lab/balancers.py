"""A balancer in front of hosts: a real HAProxy, or translation in the kernel.

The truth is HAProxy's own: its statistics socket counts the connections of each back end, and says
whether its checks pass. Nothing of netprobe has a part in it.
"""

from __future__ import annotations

import csv
import json
import socket
import subprocess
from collections.abc import Iterable
from typing import Any

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


class BalancedHosts(Lab):
    """Three control planes, a client, and what is to balance; all behind one router."""

    def build(self) -> None:
        """Build all but the balancer's own configuration."""
        router = self.router("r", "10.78.0.1")
        for name, address in HOSTS.items():
            self.host(name, router, address)
        self.host("client", router, CLIENT)
        self.host("lb", router, BALANCER)
        self.host("stranger", router, STRANGER)
        self.wait_until_ready()

    def start_haproxy(
        self, *back: str, servers: Iterable[str] = HOSTS.values(), options: str = "",
        bind: str = "", front: str = FRONT,
    ) -> None:  # fmt: skip
        """Start HAProxy. ``options`` are those of each server."""
        lines = [f"  server s{at} {one}:{PORT} {options}" for at, one in enumerate(servers, 1)]
        path = self.write(
            "haproxy.cfg",
            CONFIG.format(
                folder=self.folder, address=BALANCER, port=PORT, bind=bind, front=front,
                back="\n  ".join(back), servers="\n".join(lines),
            ),
        )  # fmt: skip
        self["lb"].spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
        wait_for(lambda: any(one.endswith(f":{PORT}") for one in self["lb"].listening()), "HAProxy")

    def count_connections(self) -> dict[str, int]:
        """Ask HAProxy how many connections each of its servers got."""
        return {one["svname"]: int(one["stot"]) for one in self._read_statistics()}

    def _read_statistics(self) -> Iterable[dict[str, str]]:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.folder / "stats.sock"))
            control.sendall(b"show stat\n")
            with control.makefile() as stream:
                text = stream.read().removeprefix("# ")
        rows = csv.DictReader(text.strip().splitlines())
        return [one for one in rows if one["svname"].startswith("s")]

    def run(self, *words: str, balancer: dict[str, Any] | None = None) -> Finished:
        """Run netprobe for the way to the API. ``balancer``: keys of its host in the inventory."""
        return netprobe("run", *words, *self.write_files(balancer), limit_s=120)

    def write_files(self, balancer: dict[str, Any] | None = None) -> list[str]:
        """Write a matrix and an inventory, and give the words that name them."""
        hosts: dict[str, Any] = {name: _describe(self[name], "control-plane") for name in HOSTS}
        hosts["client"] = _describe(self["client"], "client")
        hosts["lb"] = {
            "address": BALANCER, "roles": ["api-lb"], "vantage": "none",
            "balances": ["control-plane"], **(balancer or {}),
        }  # fmt: skip
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"api-lb": {"existing": True}, "control-plane": {}, "client": {}},
            "requirements": [
                {"id": "api", "from": "client", "to": "api-lb", "tcp": [PORT],
                 "purpose": "API", "row": "r"},
                {"id": "own", "from": ["client", "control-plane"], "to": "control-plane",
                 "tcp": [PORT], "purpose": "API", "row": "r"},
            ],
        }  # fmt: skip
        inventory = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
        return [
            "-m", str(self.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.write("inventory.yaml", inventory)),
        ]  # fmt: skip


def _describe(host: Namespace, role: str) -> dict[str, Any]:
    vantage = {"command": host.enter}
    return {"addresses": host.addresses, "roles": [role], "vantage": vantage}


def pools(done: Finished) -> dict[str, dict[str, Any]]:
    """The results of the rehearsal, by the source."""
    return {one["source"]: one for one in done.results if one["requirement"] == "api/balancer"}

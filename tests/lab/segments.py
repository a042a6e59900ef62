"""Hosts on one switch, what else is on it, and an independent look at its frames by tcpdump."""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace, wait_for

# The virtual address that nobody should have yet, by family.
VIP = {4: "10.96.0.100", 6: "fd96::100"}
VRID = 51


class Switch:
    """Two hosts, ``a`` and ``b``, on a switch; further machines are plugged in by tests."""

    def __init__(self, lab: Lab, hosts: int = 2) -> None:
        self.lab = lab
        self.switch = lab.namespace("switch")
        self.switch.ip("link add br0 type bridge mcast_snooping 0", "link set br0 up")
        # Keys of the inventory beside its hosts.
        self.inventory: dict[str, str] = {}
        # Rows between all hosts beside the usual one.
        self.rows: list[dict[str, Any]] = []
        self.hosts = [self.plug("abcdefghij"[number], number + 1) for number in range(hosts)]
        lab.wait_until_ready()

    def plug(self, name: str, number: int) -> Namespace:
        """A machine on the switch, with an address of each family that ends so."""
        made = self.lab.namespace(name)
        self.lab.cable(made, "e0", self.switch, f"p-{name}")
        self.switch.ip(f"link set p-{name} master br0")
        self.give(made, f"10.96.0.{number}", f"fd96::{number}")
        return made

    def give(self, host: Namespace, *addresses: str) -> None:
        """Give a machine addresses on the switch."""
        for text in addresses:
            host.addresses.append(text)
            host.ip(f"address add {text}/{'64 nodad' if ':' in text else '24'} dev e0")

    def link(self, host: Namespace) -> str:
        """The link-layer address of a machine, as ``ip`` says it."""
        (found,) = json.loads(host.run("ip", "-j", "link", "show", "dev", "e0"))
        address: str = found["address"]
        return address

    def run(
        self, *words: str, verb: str = "run", vip: dict[str, Any] | None = None,
        enter: dict[str, list[str]] | None = None,
    ) -> Finished:  # fmt: skip
        """Run netprobe for a row between all hosts, with a virtual address that is free."""
        return netprobe(verb, *words, *self.write_files(vip, enter))

    def serve_dhcp(self, host: Namespace, first: int) -> Path:
        """Start a real dnsmasq that leases ten addresses of each family; gives its list of leases,
        which lives as long as the lab."""
        leases = self.lab.folder / f"leases-{host.name}"
        said = self.lab.folder / f"dnsmasq-{host.name}"
        with said.open("wb") as log:
            host.spawn(
                "dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", "--port=0",
                "--log-facility=-", "--conf-file=/dev/null", "--interface=e0", "--log-dhcp",
                f"--dhcp-range=10.96.0.{first},10.96.0.{first + 9},1h", "--dhcp-authoritative",
                f"--dhcp-range=fd96::{first},fd96::{first + 9},64,1h", f"--dhcp-leasefile={leases}",
                stdout=log, stderr=log,
            )  # fmt: skip
        wait_for(lambda: "DHCPv6, IP range" in said.read_text(), "dnsmasq")
        return leases

    def write_files(
        self, vip: dict[str, Any] | None = None, enter: dict[str, list[str]] | None = None
    ) -> list[str]:
        """Write a matrix and an inventory; ``vip``: keys of the virtual address, ``enter``: words
        before a host's agent."""
        hosts: dict[str, Any] = {
            one.name: {
                "addresses": one.addresses[:2], "roles": ["node"],
                "vantage": {"command": [*one.enter, *(enter or {}).get(one.name, [])]},
            }
            for one in self.hosts
        }  # fmt: skip
        hosts["vip"] = {
            "addresses": list(VIP.values()), "roles": ["vip"], "vantage": "none", "free": True,
        } | (vip or {})  # fmt: skip
        line = {"purpose": "p", "row": "r"}
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"node": {}, "vip": {}},
            "requirements": [
                {"id": "ssh", "from": "node", "to": "node", "tcp": [22], **line},
                {"id": "api", "from": "node", "to": "vip", "tcp": [6443], **line},
                *({"from": "node", "to": "node", **line, **row} for row in self.rows),
            ],
        }  # fmt: skip
        top = {"schema": "netprobe.inventory/1"} | self.inventory
        inventory = yaml.safe_dump(top | {"hosts": hosts})
        return [
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", inventory)),
        ]  # fmt: skip

    def keep_alive(
        self, host: Namespace, version: int, family: int, vrid: int = VRID, *, priority: int = 150,
        peer: Namespace | None = None,
    ) -> Path:  # fmt: skip
        """Start a real keepalived with another virtual address than ours; gives its log, with all
        that it can say. ``peer``: it speaks to that machine alone, and not to VRRP's group."""
        end = f"{'10.96.0.' if family == 4 else 'fd96::'}200"
        extra = f"    virtual_ipaddress_excluded {{ {end}/64 }}\n" if family == 6 else ""
        first = end + "/24" if family == 4 else "fe80::200/64"
        at = 0 if family == 4 else 1
        if peer is not None:
            extra += f"    unicast_src_ip {host.addresses[at]}\n"
            extra += f"    unicast_peer {{ {peer.addresses[at]} }}"
        text = f"""
global_defs {{ router_id {host.name}
  vrrp_garp_master_repeat 1 }}
vrrp_instance other {{
    state BACKUP
    interface e0
    virtual_router_id {vrid}
    priority {priority}
    advert_int 1
    version {version}
    virtual_ipaddress {{ {first} }}
{extra}
}}
"""
        config = self.lab.write(f"keepalived-{host.name}-{family}.conf", text)
        folder = self.lab.folder
        files = [f"--{one}={folder}/{one}-{host.name}-{family}" for one in ("pid", "vrrp_pid")]
        words = ("-n", "-l", "-D", "-P", "-f", str(config), *files)
        path = folder / f"keepalived-{host.name}-{family}.log"
        with path.open("wb") as log:
            host.spawn("keepalived", *words, stdout=log, stderr=log)
        return path


def speak_vrrp_6(host: Namespace, link: str, vrid: int = VRID) -> None:
    """Send what a virtual router says over IPv6, each half second, from a link-layer address of its
    own: keepalived needs a macvlan for that, which not every kernel has."""
    body = bytes([0x31, vrid, 100, 1, 0, 100, 0, 0]) + socket.inet_pton(socket.AF_INET6, VIP[6])
    ends = b"".join(socket.inet_pton(socket.AF_INET6, one) for one in ("fe80::200", "ff02::12"))
    packet = struct.pack("!IHBB", 6 << 28, len(body), 112, 255) + ends + body
    frame = bytes.fromhex("333300000012" + link.replace(":", "") + "86dd") + packet
    host.spawn(
        sys.executable, "-c",
        "import socket, time\n"
        "sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        "sock.bind(('e0', 0))\n"
        "while True:\n"
        f"    sock.send(bytes.fromhex('{frame.hex()}'))\n"
        "    time.sleep(0.5)\n",
    )  # fmt: skip


class Watching:
    """What a machine's device carries, by tcpdump: the truth of a lab. Ended, it is read."""

    def __init__(self, lab: Lab, host: Namespace, *, words: str) -> None:
        self._path = lab.folder / f"seen-{host.name}.txt"
        errors = lab.folder / f"errors-{host.name}.txt"
        with self._path.open("wb") as seen, errors.open("wb") as said:
            self._process = host.spawn(
                "tcpdump", "-l", "-n", "-e", "-i", "e0", *words.split(), stdout=seen, stderr=said
            )
        wait_for(lambda: "listening on" in errors.read_text(), "tcpdump")

    def lines(self) -> list[str]:
        """The frames so far."""
        return self._path.read_text(errors="replace").splitlines()

    def wait_for(self, word: str) -> None:
        """Wait until a frame with this word is there."""
        wait_for(lambda: any(word in line for line in self.lines()), f"a frame with {word}")

    def end(self) -> list[str]:
        """End it, and give all frames."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        return self.lines()


def segments(done: Finished) -> dict[tuple[str, int], dict[str, Any]]:
    """The results of the rehearsal, by host and family."""
    return {
        (one["destination"], 6 if ":" in one["address"] else 4): one
        for one in done.results
        if one["requirement"] == "segment"
    }


def told(done: Finished) -> dict[tuple[str, int], tuple[str, str]]:
    """Verdict and reason of each address."""
    return {key: (one["verdict"], one["reason"]) for key, one in segments(done).items()}

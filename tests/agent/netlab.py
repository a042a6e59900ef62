"""A source, two routers and a destination, as real network namespaces with nft.

source 10.66.1.2 -- 10.66.1.1 r1 10.66.2.1 -- 10.66.2.2 r2 10.66.3.1 -- 10.66.3.2 destination
10.66.3.9 is a dead host behind r2, 10.66.1.9 one on the source's own LAN.
IPv6 is fd66:N:: in the same shape.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

# Every test process has a lab of its own; what a killed one leaves, ``tests.lab.netlab.sweep``
# finds by this form of name.
PREFIX = f"np-{os.getpid()}-0-agent"
SOURCE, R1, R2, DESTINATION = (f"{PREFIX}-{name}" for name in ("src", "r1", "r2", "dst"))
NAMES = (SOURCE, R1, R2, DESTINATION)
LINKS = ((SOURCE, R1), (R1, R2), (R2, DESTINATION))

ADDRESS = {
    4: {"source": "10.66.1.2", "r1": "10.66.1.1", "r2": "10.66.2.2", "r2_far": "10.66.3.1",
        "destination": "10.66.3.2", "dead": "10.66.3.9", "dead_near": "10.66.1.9"},
    6: {"source": "fd66:1::2", "r1": "fd66:1::1", "r2": "fd66:2::2", "r2_far": "fd66:3::1",
        "destination": "fd66:3::2", "dead": "fd66:3::9", "dead_near": "fd66:1::9"},
}  # fmt: skip

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def build() -> None:
    """Make the four namespaces, their links, addresses and routes."""
    remove()
    for name in NAMES:
        _run("ip", "netns", "add", name)
        _run("ip", "-n", name, "link", "set", "lo", "up")
        for key in ("all", "default"):
            sysctl(name, f"net/ipv6/conf/{key}/accept_dad", "0")
            sysctl(name, f"net/ipv6/conf/{key}/dad_transmits", "0")
            sysctl(name, f"net/ipv4/conf/{key}/rp_filter", "0")
    for number, (left, right) in enumerate(LINKS, 1):
        _link(number, left, right)
    for router in (R1, R2):
        sysctl(router, "net/ipv4/ip_forward", "1")
        sysctl(router, "net/ipv6/conf/all/forwarding", "1")
    for pattern, size in (("10.66.{}.{}", "24"), ("fd66:{}::{}", "64")):
        near, far = (pattern.format(number, "0").replace("::0", "::") for number in (1, 3))
        route(SOURCE, "add", "default", "via", pattern.format(1, 1))
        route(DESTINATION, "add", "default", "via", pattern.format(3, 1))
        route(R1, "add", f"{far}/{size}", "via", pattern.format(2, 2))
        route(R2, "add", f"{near}/{size}", "via", pattern.format(2, 1))
    for family in (4, 6):
        settle(family)


def remove() -> None:
    """Delete the namespaces; harmless where there are none."""
    for name in NAMES:
        if os.path.exists(f"/run/netns/{name}"):
            _run("ip", "netns", "delete", name)


def rule(namespace: str, hook: str, text: str) -> None:
    """Add one nft rule (``drop`` or a reject with its match) at a hook of a namespace."""
    _run("ip", "netns", "exec", namespace, "nft", "-f", "-", words=(
        f"table inet t {{ chain {hook} {{ type filter hook {hook} priority 0; policy accept;\n"
        f"{text}\n}}\n}}\n"
    ))  # fmt: skip


def clear() -> None:
    """Remove every rule."""
    for name in NAMES:
        _run("ip", "netns", "exec", name, "nft", "flush", "ruleset")


def route(namespace: str, *words: str) -> None:
    """Change a route: ``route(SOURCE, "add", "unreachable", "10.9.0.0/24")``."""
    _run("ip", "-n", namespace, "route", *words)


def sysctl(namespace: str, key: str, value: str) -> None:
    """Set one kernel parameter of a namespace."""
    with inside(namespace), open(f"/proc/sys/{key}", "w") as file:
        file.write(value)


def spread_over_processors(namespace: str, device: str) -> None:
    """Let any processor take in what arrives at a device, as cards with several queues do."""
    mask = f"{(1 << (os.cpu_count() or 1)) - 1:x}"
    _run("ip", "netns", "exec", namespace, "sh", "-c",
         f"echo {mask} > /sys/class/net/{device}/queues/rx-0/rps_cpus")  # fmt: skip


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Put the calling thread into a namespace: sockets that it opens belong there."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _setns(there)
        try:
            yield
        finally:
            _setns(here)
    finally:
        os.close(here)
        os.close(there)


def _setns(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def settle(family: int, source: str = "") -> None:
    """Wait until the path works, from a new address of the source perhaps.

    IPv6 loses packets for a moment after a link comes up, and its router has to look for each new
    address: it asks again only after a second, and keeps few of many answers meanwhile.
    """
    address = ADDRESS[family]["destination"]
    for _ in range(100):
        with (
            inside(SOURCE),
            socket.socket(
                socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_STREAM
            ) as sock,
        ):
            sock.settimeout(0.2)
            if source:
                sock.bind((source, 0))
            if sock.connect_ex((address, 9)) == errno.ECONNREFUSED:
                return
    raise RuntimeError(f"{address} cannot be reached in a fresh lab")


def _link(number: int, left: str, right: str) -> None:
    ends = (f"n{number}a", f"n{number}b")
    _run("ip", "-n", left, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1],
         "netns", right)  # fmt: skip
    # The nearer router's address on a link is .1 towards the ends, r1 is .1 and r2 .2 between them.
    hosts = {1: ("2", "1"), 2: ("1", "2"), 3: ("1", "2")}[number]
    for namespace, end, host in zip((left, right), ends, hosts, strict=True):
        _run("ip", "-n", namespace, "address", "add", f"10.66.{number}.{host}/24", "dev", end)
        _run("ip", "-n", namespace, "address", "add", f"fd66:{number}::{host}/64", "dev", end,
             "nodad")  # fmt: skip
        _run("ip", "-n", namespace, "link", "set", end, "up")


def _run(*argv: str, words: str = "") -> None:
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(argv, input=words.encode(), stdout=said, stderr=said, check=False)
        if done.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(argv)}: {said.read().decode()}")

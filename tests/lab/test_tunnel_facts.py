"""What the kernel does with VXLAN devices: docs/network-facts.md, section 13. No netprobe."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab, Namespace, unprivileged

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.full]

ENDS = {4: ("10.77.1.2", "10.77.2.2"), 6: ("fd77:1::2", "fd77:2::2")}
HELD = "Address already in use"


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


@pytest.fixture
def host(lab: Lab) -> Namespace:
    """A host with a card of veth."""
    host = lab.namespace("host")
    lab.cable(host, "e0", lab.namespace("peer"), "e0")
    host.ip("address add 10.77.1.2/24 dev e0", "address add fd77:1::2/64 dev e0 nodad")
    return host


def words(name: str, family: int, number: int, *more: str) -> list[str]:
    """What makes a tunnel's device."""
    own, other = ENDS[family]
    kind = ("type", "vxlan", "id", str(number), "dstport", "8472", "local", own, "remote", other)
    return ["ip", "link", "add", name, *more, *kind]


def holders(host: Namespace) -> list[str]:
    return [line for line in host.run("ss", "-Hanup").splitlines() if ":8472" in line]


def raise_device(host: Namespace, name: str) -> str:
    """Set a device up, and give what the kernel says against it."""
    said = host.run("sh", "-c", f"ip link set {name} up 2>&1", check=False)
    return said.strip()


def test_a_device_in_another_namespace(lab: Lab, host: Namespace) -> None:
    """A device that is made from the host in another namespace has its UDP socket in the host.

    ``ip link add v0 netns OTHER type vxlan ...`` is one RTM_NEWLINK with ``IFLA_NET_NS_FD``. While
    the device is up the host shows this socket, without a process, and no device, address or route.
    The socket goes with the device.
    """
    other = lab.namespace("other")
    links, routes = host.run("ip", "link"), host.run("ip", "route", "show", "table", "all")
    host.run(*words("v0", 4, 7, "netns", other.netns))
    other.ip("link set v0 up")
    (line,) = holders(host)
    assert "users:" not in line
    assert holders(other) == []
    assert host.run("ip", "link") == links
    assert host.run("ip", "route", "show", "table", "all") == routes
    other.ip("link del v0")
    assert holders(host) == []


def test_who_shares_a_port(host: Namespace) -> None:
    """A VXLAN device takes its UDP port when it goes up, for the family of its addresses alone.

    A socket of a process there makes that fail with EADDRINUSE, and so does a VXLAN device of other
    options (``gbp``); one of the same options shares the socket.
    """
    host.run(*words("v0", 4, 7))
    assert raise_device(host, "v0") == ""
    host.run(*words("v1", 4, 8))
    assert raise_device(host, "v1") == ""
    host.run(*words("v2", 4, 9), "gbp")
    assert HELD in raise_device(host, "v2")
    with host.socket(socket.AF_INET6, socket.SOCK_DGRAM) as process:
        process.bind((ENDS[6][0], 8472))
        host.run(*words("v6", 6, 7))
        assert HELD in raise_device(host, "v6")
    assert raise_device(host, "v6") == ""


def test_who_makes_checksums(host: Namespace) -> None:
    """A VXLAN device leaves checksums and segments of TCP to what carries the tunnel.

    After ``ethtool -K DEVICE tx off`` on it the kernel makes both before it encapsulates. Through a
    card that forgets inner checksums ICMP passes and no TCP, not even a SYN; after that command TCP
    does (``tests/lab/test_overlay.py``).
    """
    host.run(*words("v0", 4, 7))
    assert _offers(host) == {"tx-checksumming": "on", "tx-tcp-segmentation": "on"}
    host.run("ethtool", "-K", "v0", "tx", "off")
    assert _offers(host) == {"tx-checksumming": "off", "tx-tcp-segmentation": "off"}


def _offers(host: Namespace) -> dict[str, str]:
    lines = [line.split() for line in host.run("ethtool", "-k", "v0").splitlines()]
    known = {line[0].rstrip(":"): line[1] for line in lines if len(line) > 1}
    return {key: known[key] for key in ("tx-checksumming", "tx-tcp-segmentation")}


def test_the_driver_needs_no_right(host: Namespace) -> None:
    """SIOCETHTOOL with ETHTOOL_GDRVINFO tells the driver of a device, and needs no right."""
    assert "driver: veth" in host.run(*unprivileged(), "ethtool", "-i", "e0")

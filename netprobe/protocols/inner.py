"""The packet inside tunnel probes: to documentation addresses, carrying nonce and MAC, harmless.

A host that decapsulates it by mistake drops it: the MAC addresses are locally administered
and nobody's, the IP addresses are of TEST-NET-1 (RFC 5737), the TTL is 1 so that no router sends
it on, and the port is discard. scapy is imported late: it takes longer than all else of a start.
"""

from __future__ import annotations

import contextlib
import os
import typing
from collections.abc import Iterator

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading
from netprobe.protocols.plain import MARK

if typing.TYPE_CHECKING:
    from scapy.packet import Packet

SOURCE_MAC = "02:4e:50:00:00:01"
DESTINATION_MAC = "02:4e:50:00:00:02"
SOURCE_ADDRESS = "192.0.2.1"
DESTINATION_ADDRESS = "192.0.2.2"
DISCARD_PORT = 9
SOURCE_PORT = 20048

# 24 bits. Neither flannel (1, 4096), Calico (4096) nor a hand-made network counts from the top;
# the very last number is left out, because some switches reserve it.
NETWORK_ID = 0xFFFFFE


@contextlib.contextmanager
def scapy_without_files() -> Iterator[None]:
    """Import scapy inside this, else it writes a cache and settings into the user's home."""
    nowhere = dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/dev/null/none")
    before = {name: os.environ.get(name) for name in nowhere}
    os.environ.update(nowhere)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def inner_packet() -> Packet:
    """Make IPv4, UDP (checksum 0: none, since holes are filled later) and the marked payload."""
    with scapy_without_files():
        from scapy.layers.inet import IP, UDP
        from scapy.packet import Raw

    ip = IP(src=SOURCE_ADDRESS, dst=DESTINATION_ADDRESS, ttl=1, id=0, flags="DF")
    return ip / UDP(sport=SOURCE_PORT, dport=DISCARD_PORT, chksum=0) / Raw(MARK)


def inner_frame() -> Packet:
    """Make the same packet in Ethernet, as an overlay of layer 2 carries it."""
    with scapy_without_files():
        from scapy.layers.l2 import Ether

    return Ether(src=SOURCE_MAC, dst=DESTINATION_MAC) / inner_packet()


def tunnel_reading(kind: str, network: int) -> Reading:
    """Read a tunnel's packet: only a reflector sends packets of this unused network."""
    if network == NETWORK_ID:
        return Reading(False, f"our own {kind} packet came back")
    return Reading(True, f"{kind}, network {network}")


def marked_template(request: bytes) -> wire.Template:
    """Make a one-way template of bytes that end with the marked payload."""
    mac_at = len(request) - wire.MAC_BYTES
    return wire.Template(request, mac_at - wire.NONCE_BYTES, mac_at)

"""Protocols for ports where plain bytes prove little: packets to send, readers of answers."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.matrix import AnyProbe
from netprobe.model.ports import Ports
from netprobe.protocols.base import Protocol, Reading
from netprobe.protocols.packets.dns import Dns
from netprobe.protocols.packets.ike import Ike, IkeNat
from netprobe.protocols.packets.memberlist import Memberlist
from netprobe.protocols.packets.ntp import Ntp
from netprobe.protocols.packets.openvpn import OpenVpn
from netprobe.protocols.packets.plain import Plain, Raw, Vrrp
from netprobe.protocols.packets.tunnels import Geneve, IpIp, Vxlan

__all__ = ["PROTOCOLS", "Protocol", "Reading", "packets", "protocol_for"]

_PLAIN: Protocol = Plain()
_RAW: Protocol = Raw()
_IPIP: Protocol = IpIp()
_IKE_NAT: Protocol = IkeNat()

# These speak TLS or HTTP, over a stream that an agent opens and not as bytes of one packet:
# services/ asks a live service. A listener of netprobe gets plain bytes.
_STREAMED = (
    "etcd", "http-health", "https", "ignition", "konnectivity", "kube-apiserver", "kubelet",
    "machine-config-server", "metrics", "oauth", "registry", "tls",
)  # fmt: skip

# Every name that ``probe:`` may have. Adding a protocol is one file and one line here.
PROTOCOLS: dict[str, Protocol] = {
    "plain": _PLAIN,
    "raw": _RAW,
    "dns": Dns(),
    "geneve": Geneve(),
    "ike": Ike(),
    "ike-nat": _IKE_NAT,
    "ipip": _IPIP,
    "memberlist": Memberlist(),
    "ntp": Ntp(),
    "openvpn": OpenVpn(),
    "vxlan": Vxlan(),
    **dict.fromkeys(_STREAMED, _PLAIN),
}

_BY_PORT: dict[tuple[str, int], Protocol] = {("ike", 4500): _IKE_NAT}
_BY_NUMBER: dict[int, Protocol] = {4: _IPIP, 112: Vrrp()}


def protocol_for(
    name: AnyProbe | None, port: int | None = None, number: int | None = None
) -> Protocol:
    """Find the protocol that a requirement's ``probe:`` names, or the plain one.

    ``port`` matters where a protocol differs by it (IKE). ``number`` is that of an IP protocol:
    there a name that has no packet behind an IP header falls back to the number's own packet.
    """
    # A listener of ours gets plain bytes where a live service gets a request of the matrix's own.
    named = PROTOCOLS.get(name or "", _PLAIN) if isinstance(name, str) else _PLAIN
    if number is not None:
        return named if "ipproto" in named.transports else _BY_NUMBER.get(number, _RAW)
    return named if port is None else _BY_PORT.get((named.name, port), named)


def packets(
    protocol: str, probe: AnyProbe | None, ports: Ports
) -> Iterator[tuple[Ports, Protocol]]:
    """Group ports by packet. One name may mean another packet on another port (IKE: 500 and 4500).

    ``protocol`` is the block's (``tcp``, ``ipproto/4`` ...); without ports there is one packet.
    """
    number = protocol.partition("/")[2]
    if not ports:
        yield (), protocol_for(probe, None, int(number) if number else None)
        return
    by_packet: dict[Protocol, list[tuple[int, int]]] = {}
    for entry in ports:
        by_packet.setdefault(protocol_for(probe, entry[0]), []).append(entry)
    for packet, entries in by_packet.items():
        yield tuple(entries), packet

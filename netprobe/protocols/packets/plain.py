"""Plain bytes: a magic word, a nonce and a MAC, for ports without a protocol of their own."""

from __future__ import annotations

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, make_template, printable, unknown

REQUEST_MAGIC = b"NETPROBE"
ANSWER_MAGIC = b"NETPROBA"
MARK = REQUEST_MAGIC + bytes(wire.NONCE_BYTES + wire.MAC_BYTES)
# Version 3, an advertisement; id 0; priority 1; no addresses.
VRRP_START = bytes((0x31, 0, 1, 0))

_SHORTEST_BANNER = 4


class Plain:
    """For netprobe's listeners; a live service gets no bytes unless ``probe:`` asks for them."""

    name = "plain"
    one_way = False
    transports: tuple[Transport, ...] = ("tcp", "udp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give magic, nonce, MAC; answered by another magic, the nonce, host and MAC.

        Right behind an IP header nothing is answered: there only what arrives counts.
        """
        answer = ANSWER_MAGIC + bytes(wire.NONCE_BYTES + wire.HOST_BYTES + wire.MAC_BYTES)
        return make_template(MARK, None if transport == "ipproto" else answer)

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give nothing: unknown bytes can make a live service log, count or close."""
        return None

    def read(self, transport: str, data: bytes) -> Reading:
        """Quote a banner such as ``SSH-2.0-...``; without a protocol nothing can be recognised."""
        line = data.split(b"\n", 1)[0].rstrip(b"\r")
        if len(line) >= _SHORTEST_BANNER and all(0x20 <= byte < 0x7F for byte in line):
            return Reading(False, f'said "{printable(line.decode("ascii"))}"')
        return unknown("a netprobe answer", data)


class Raw(Plain):
    """The same bytes right behind the IP header, for IP protocols without a packet of their own.

    One-way, because a host that has a handler for the protocol stays silent. For ESP (50) the
    bytes are well-formed as they are: SPI ``NETP``, sequence number ``ROBE``, opaque data.
    """

    name = "raw"
    one_way = True
    transports: tuple[Transport, ...] = ("ipproto",)

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same bytes with empty holes: a host without a handler answers ICMP 3/2."""
        return MARK


class Vrrp(Raw):
    """The same bytes behind the beginning of a VRRPv3 advertisement of the id 0, which no router
    has: keepalived with `unicast_peer` takes any packet of its peer for an advertisement, and
    `NETPROBE` has the id 69 (it logged "vrrp packet too short").
    """

    name = "vrrp"

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the beginning of an advertisement, magic, nonce and MAC."""
        return make_template(VRRP_START + MARK, None)

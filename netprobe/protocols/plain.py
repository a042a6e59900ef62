"""Plain bytes: a magic word, a nonce and a MAC, where no protocol of its own is asked for."""

from __future__ import annotations

from netprobe.agent import wire
from netprobe.protocols.base import Reading, Transport, printable, unknown, with_answer

REQUEST_MAGIC = b"NETPROBE"
ANSWER_MAGIC = b"NETPROBA"


class Plain:
    """Our listener only: nothing is ever sent to a service that nobody asked us to speak to."""

    name = "plain"
    one_way = False
    transports: tuple[Transport, ...] = ("tcp", "udp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give magic, nonce, MAC; answered by another magic, the nonce, host and MAC."""
        head = len(REQUEST_MAGIC)
        nonce_end = head + wire.NONCE_BYTES
        request = REQUEST_MAGIC + bytes(wire.NONCE_BYTES + wire.MAC_BYTES)
        answer = ANSWER_MAGIC + bytes(wire.NONCE_BYTES + wire.HOST_BYTES + wire.MAC_BYTES)
        return with_answer(
            wire.Template(request, head, nonce_end),
            answer,
            nonce_at=head,
            host_at=nonce_end,
            mac_at=nonce_end + wire.HOST_BYTES,
        )

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give nothing: unknown bytes can make a live service log, count or close."""
        return None

    def read(self, transport: str, data: bytes) -> Reading:
        """Quote a banner such as ``SSH-2.0-...``; without a protocol nothing can be recognised."""
        line = data.split(b"\n", 1)[0].rstrip(b"\r")
        if len(line) >= 4 and all(0x20 <= byte < 0x7F for byte in line):
            return Reading(False, f'said "{printable(line.decode("ascii"))}"')
        return unknown("a netprobe answer", data)

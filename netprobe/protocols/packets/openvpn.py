"""OpenVPN: the client's hard reset, the first packet of every tunnel."""

from __future__ import annotations

import struct

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import (
    LENGTH_BYTES,
    Reading,
    Transport,
    add_length,
    drop_length,
    unknown,
    with_answer,
)

_CLIENT_RESET = 7 << 3
_SERVER_RESET = 8 << 3
_SESSION_BYTES = 8
_NO_ACKS = b"\x00"
_ONE_ACK = b"\x01"
_PACKET_ID = bytes(4)

# With tls-auth an HMAC-SHA1 (20 bytes), a replay id and a time follow the session id. Our MAC is
# the first 16 bytes of that HMAC: the packet looks like any tls-auth client's, and no server
# without our key takes it.
_HMAC_BYTES = 20
_REPLAY = struct.pack(">II", 1, 0)
_SERVICE_SESSION = b"NETPROBE"


class OpenVpn:
    """OpenVPN; the nonce is the client's session id, the MAC is in the HMAC of tls-auth."""

    name = "openvpn"
    one_way = False
    transports: tuple[Transport, ...] = ("udp", "tcp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give a reset with HMAC, answered by a server's reset for the same session.

        The host index ends the server's own session id; the nonce is the remote session id.
        """
        shift = LENGTH_BYTES if transport == "tcp" else 0
        session = bytes(_SESSION_BYTES)
        guard = bytes(_HMAC_BYTES) + _REPLAY
        head_bytes = 1 + _SESSION_BYTES
        request = bytes((_CLIENT_RESET,)) + session + guard + _NO_ACKS + _PACKET_ID
        acks = _ONE_ACK + _PACKET_ID
        answer = bytes((_SERVER_RESET,)) + session + guard + acks + session + _PACKET_ID
        return with_answer(
            wire.Template(add_length(request, transport), shift + 1, shift + head_bytes),
            add_length(answer, transport),
            nonce_at=shift + head_bytes + len(guard) + len(acks),
            host_at=shift + head_bytes - wire.HOST_BYTES,
            mac_at=shift + head_bytes,
        )

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the 14 bytes without HMAC: answered only by a server without tls-auth, tls-crypt."""
        reset = bytes((_CLIENT_RESET,)) + _SERVICE_SESSION + _NO_ACKS + _PACKET_ID
        return add_length(reset, transport)

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a server's reset that names our session as the remote one."""
        packet = drop_length(data, transport)
        acks_at = 1 + _SESSION_BYTES
        if len(packet) <= acks_at or packet[0] >> 3 != _SERVER_RESET >> 3:
            return unknown("an OpenVPN answer", data)
        remote_at = acks_at + 1 + 4 * packet[acks_at]
        if packet[remote_at : remote_at + _SESSION_BYTES] != _SERVICE_SESSION:
            return Reading(False, "an OpenVPN reset for another session")
        return Reading(True, "OpenVPN server reset")

"""IKEv2: the first message of a negotiation that no gateway can accept (RFC 7296)."""

from __future__ import annotations

import functools
import struct

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, unknown, with_answer

# On port 4500 four zero bytes say that IKE follows and not ESP (RFC 3948, section 2.2).
NON_ESP_MARKER = bytes(4)

_HEADER = struct.Struct(">8s8s4BII")
_PAYLOAD = struct.Struct(">BBH")
_TRANSFORM = struct.Struct(">BBHBBH")
_VERSION_2 = 0x20
_SA_INIT = 34
_INITIATOR = 0x08
_RESPONSE = 0x20

_NONE = 0
_SA = 33
_KEY_EXCHANGE = 34
_NONCE = 40
_NOTIFY = 41
_VENDOR_ID = 43

_NO_PROPOSAL_CHOSEN = 14
_NOTIFY_NAMES = {
    5: "INVALID_MAJOR_VERSION",
    7: "INVALID_SYNTAX",
    14: "NO_PROPOSAL_CHOSEN",
    17: "INVALID_KE_PAYLOAD",
    24: "AUTHENTICATION_FAILED",
    16390: "COOKIE",
}

# (type, id): encryption, PRF, integrity, key exchange. The encryption is of the private-use
# range, so every gateway answers NO_PROPOSAL_CHOSEN at once, computes nothing, keeps no state.
_TRANSFORMS = ((1, 1024), (2, 5), (3, 12), (4, 31))
_GROUP_X25519 = 31
_PUBLIC_KEY = b"\x09" + bytes(31)

_SERVICE_SPI = b"NETPROBE"
_RESPONDER_SPI = b"NETPROBA"


class Ike:
    """IKEv2 on port 500; the nonce is the initiator's SPI, the MAC is a vendor id."""

    name = "ike"
    one_way = False
    transports: tuple[Transport, ...] = ("udp",)
    marker = b""

    def template(self, transport: str, family: int) -> wire.Template:
        """Give an SA_INIT request, refused by a response with host and MAC as its vendor id."""
        return _make_template(self.marker)

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the same request with a constant SPI, which a real gateway sends back."""
        head = len(self.marker)
        request = bytearray(_make_template(self.marker).request)
        request[head : head + len(_SERVICE_SPI)] = _SERVICE_SPI
        return bytes(request)

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise a response to our SPI and name its notification."""
        message = data.removeprefix(self.marker)
        if len(message) < _HEADER.size:
            return unknown("an IKE answer", data)
        initiator, _, first, version, exchange, flags, _, _ = _HEADER.unpack_from(message)
        if initiator != _SERVICE_SPI or version >> 4 not in (1, 2):
            return unknown("an IKE answer", data)
        if version >> 4 == 2 and not flags & _RESPONSE:
            return Reading(False, "our own IKE request came back")
        return Reading(True, _word_answer(first, version, exchange, message[_HEADER.size :]))


class IkeNat(Ike):
    """IKEv2 on port 4500, behind four zero bytes."""

    name = "ike-nat"
    marker = NON_ESP_MARKER


@functools.cache
def _make_template(marker: bytes) -> wire.Template:
    """Make an SA_INIT request with all that it must have, and a vendor id at the end of each."""
    key = struct.pack(">HH", _GROUP_X25519, 0) + _PUBLIC_KEY
    asked = ((_SA, _make_proposal()), (_KEY_EXCHANGE, key), (_NONCE, b"netprobe" * 4))
    request = marker + _make_message(
        bytes(8), _INITIATOR, (*asked, (_VENDOR_ID, bytes(wire.MAC_BYTES)))
    )
    notify = (_NOTIFY, struct.pack(">BBH", 0, 0, _NO_PROPOSAL_CHOSEN))
    vendor = (_VENDOR_ID, bytes(wire.HOST_BYTES + wire.MAC_BYTES))
    answer = marker + _make_message(_RESPONDER_SPI, _RESPONSE, (notify, vendor))
    nonce_at = len(marker)
    return with_answer(
        wire.Template(request, nonce_at, len(request) - wire.MAC_BYTES),
        answer,
        nonce_at=nonce_at,
        host_at=len(answer) - wire.MAC_BYTES - wire.HOST_BYTES,
        mac_at=len(answer) - wire.MAC_BYTES,
    )


def _make_proposal() -> bytes:
    """Give proposal number 1 for IKE with its transforms; 3 announces another, 0 is the last."""
    transforms = b"".join(
        _TRANSFORM.pack(0 if index == len(_TRANSFORMS) else 3, 0, _TRANSFORM.size, kind, 0, number)
        for index, (kind, number) in enumerate(_TRANSFORMS, 1)
    )
    head = struct.pack(">BBHBBBB", 0, 0, 8 + len(transforms), 1, 1, 0, len(_TRANSFORMS))
    return head + transforms


def _make_message(responder: bytes, flags: int, payloads: tuple[tuple[int, bytes], ...]) -> bytes:
    """Chain payloads behind an SA_INIT header; each names the type of the one that follows."""
    kinds = [kind for kind, _ in payloads] + [_NONE]
    body = b"".join(
        _PAYLOAD.pack(following, 0, _PAYLOAD.size + len(content)) + content
        for following, (_, content) in zip(kinds[1:], payloads, strict=True)
    )
    length = _HEADER.size + len(body)
    head = _HEADER.pack(bytes(8), responder, kinds[0], _VERSION_2, _SA_INIT, flags, 0, length)
    return head + body


def _word_answer(first: int, version: int, exchange: int, body: bytes) -> str:
    """Name the first notification; an SA in the answer means that the proposal was taken."""
    if first == _NOTIFY and len(body) >= _PAYLOAD.size + 4:
        (number,) = struct.unpack_from(">H", body, _PAYLOAD.size + 2)
        return f"IKE {_NOTIFY_NAMES.get(number, f'notification {number}')}"
    return f"IKEv{version >> 4} answer of exchange {exchange}"

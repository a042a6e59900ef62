"""memberlist, the gossip of MetalLB, Alertmanager and Serf: a ping, and its acknowledgement.

Every message is one byte of type and a msgpack map; UDP and TCP carry the same ping.
"""

from __future__ import annotations

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, make_template, unknown

_PING = b"\x00"
_ACK = b"\x02"
_COMPOUND = b"\x07"
_COMPRESSED = b"\x09"
_ENCRYPTED = b"\x0a"
_CHECKED = b"\x0c"
_CHECKED_BYTES = 5  # the type, then a CRC-32; or the type, then a length
_VERSIONS = (b"\x00", b"\x01")
_LONGEST = 1 << 20


def _pack_raw(data: bytes) -> bytes:
    """Encode a msgpack ``fixraw`` (at most 31 bytes), the only string that old codecs know."""
    return bytes((0xA0 | len(data),)) + data


def _pack_map(count: int) -> bytes:
    return bytes((0x80 | count,))


_SEQUENCE = _pack_raw(b"SeqNo") + b"\x2a"
_ACK_HEAD = _ACK + _pack_map(2) + _SEQUENCE + _pack_raw(b"Payload")


class Memberlist:
    """memberlist; nonce and MAC are the name of the pinged node."""

    name = "memberlist"
    one_way = False
    transports: tuple[Transport, ...] = ("udp", "tcp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give a ping to a node of that name; the ack's payload is nonce, host and MAC.

        A real member that this reaches by mistake ignores it: the name is not its own.
        """
        request = _make_ping(bytes(wire.NONCE_BYTES + wire.MAC_BYTES))
        answer = _ACK_HEAD + _pack_raw(bytes(wire.NONCE_BYTES + wire.HOST_BYTES + wire.MAC_BYTES))
        return make_template(request, answer)

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give a ping without a name: any member answers it, unless it has an encryption key."""
        return _make_ping(b"")

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise an ack in every wrapping: checksum, compression, gossip behind it, encryption.

        A member with an encryption key answers only over TCP, with an encrypted complaint.
        """
        message = data[_CHECKED_BYTES:] if data.startswith(_CHECKED) else data
        first = message
        if message.startswith(_COMPOUND) and len(message) > 1:
            # The number of parts, two bytes of length for each, the parts.
            first = message[2 + 2 * message[1] :]
        # Old members send no payload, and the order of the fields varies.
        if first.startswith((_ACK + _pack_map(1), _ACK + _pack_map(2))) and _SEQUENCE in first:
            return Reading(True, "memberlist ack")
        if message.startswith(_COMPRESSED + _pack_map(2) + _pack_raw(b"Algo")):
            return Reading(True, "memberlist, compressed")
        if transport == "tcp" and _is_encrypted(data):
            return Reading(True, "memberlist with an encryption key")
        return unknown("a memberlist answer", data)


def _make_ping(node: bytes) -> bytes:
    return _PING + _pack_map(2) + _SEQUENCE + _pack_raw(b"Node") + _pack_raw(node)


def _is_encrypted(data: bytes) -> bool:
    """Whether it is type, length, then a version of the encryption that exists (0 and 1)."""
    length = int.from_bytes(data[1:_CHECKED_BYTES], "big")
    known = data.startswith(_ENCRYPTED) and data[_CHECKED_BYTES : _CHECKED_BYTES + 1] in _VERSIONS
    return known and len(data) - _CHECKED_BYTES <= length <= _LONGEST

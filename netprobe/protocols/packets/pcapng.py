"""Writes packets as pcapng, which Wireshark, tshark and tcpdump read (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import NamedTuple

# Packets begin with their IP header, of either family. libpcap translates the first interface's
# type to its own DLT_RAW, and until today (1.10) compares this to the others' types as they stand;
# Wireshark takes both for the same.
LINKTYPE_RAW, DLT_RAW = 101, 12
SNAP_BYTES = 65535
# Kinds of blocks; the magic number says that all numbers are little-endian.
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_MAGIC = 0x1A2B3C4D
# Options of all blocks, of an interface (its times are in 10**-9 s), and of a packet.
_END, _COMMENT, _IF_NAME, _IF_TSRESOL, _EPB_FLAGS = 0, 1, 2, 9, 2
_INBOUND, _OUTBOUND = 1, 2


class PcapPacket(NamedTuple):
    """One packet of a file; ``interface`` is that of a host, ``length`` the whole packet's."""

    time_ns: int
    interface: str
    outgoing: bool
    length: int
    data: bytes
    comment: str


def write_pcapng(path: str, packets: Iterable[PcapPacket], comment: str = "") -> None:
    """Write a file anew, with a comment on the whole; each interface stands in it once.

    Raises OSError.
    """
    wanted = list(packets)
    places = {name: at for at, name in enumerate(dict.fromkeys(one.interface for one in wanted))}
    with open(path, "wb") as stream:
        stream.write(
            _make_block(_SECTION, pack("<IHHq", _MAGIC, 1, 0, -1), (_COMMENT, comment.encode()))
        )
        for name, at in places.items():
            body = pack("<HHI", DLT_RAW if at else LINKTYPE_RAW, 0, SNAP_BYTES)
            options = (_IF_NAME, name.encode()), (_IF_TSRESOL, b"\x09")
            stream.write(_make_block(_INTERFACE, body, *options))
        for one in wanted:
            stream.write(_packet_block(one, places[one.interface]))


def _packet_block(one: PcapPacket, interface: int) -> bytes:
    captured = len(one.data)
    whole = max(one.length, captured)
    times = divmod(one.time_ns, 1 << 32)
    flags = pack("<I", _OUTBOUND if one.outgoing else _INBOUND)
    return _make_block(
        _PACKET,
        pack("<IIIII", interface, *times, captured, whole) + one.data,
        (_COMMENT, one.comment.encode()),
        (_EPB_FLAGS, flags),
    )


def _make_block(kind: int, body: bytes, *options: tuple[int, bytes]) -> bytes:
    """Make a block of a body and of the options that say something."""
    body = _pad_bytes(body)
    told = [(code, value) for code, value in options if value]
    for code, value in [*told, (_END, b"")] if told else []:
        body += pack("<HH", code, len(value)) + _pad_bytes(value)
    length = pack("<I", 12 + len(body))
    return pack("<I", kind) + length + body + length


def _pad_bytes(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)

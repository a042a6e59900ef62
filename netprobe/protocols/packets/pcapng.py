"""Writes packets as pcapng, which Wireshark, tshark and tcpdump read, with scapy's writer."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NamedTuple

from netprobe.errors import RequestError
from netprobe.protocols.base import import_without_files

# Packets begin with their IP header, of either family. libpcap translates the first interface's
# type to its own DLT_RAW, and until today (1.10) compares this to the others' types as they stand;
# Wireshark takes both for the same.
LINKTYPE_RAW, DLT_RAW = 101, 12
SNAP_BYTES = 65535
NANOSECONDS = 10**9
# draft-ietf-opsawg-pcapng, sections 4.2 and 4.3: options of an interface, directions of a packet.
_IF_NAME, _IF_TSRESOL, _COMMENT, _END = 2, 9, 1, 0
_INBOUND, _OUTBOUND = 1, 2
SECTION = b"\x0a\x0d\x0d\x0a"


class PcapPacket(NamedTuple):
    """One packet of a file; ``interface`` is that of a host, ``length`` the whole packet's."""

    time_ns: int
    interface: str
    outgoing: bool
    length: int
    data: bytes
    comment: str


def check_writer() -> None:
    """Raise RequestError where scapy is not installed."""
    if find_spec("scapy") is None:
        raise RequestError("--evidence needs scapy, which is not installed: pip install scapy")


def write_pcapng(path: str, packets: Iterable[PcapPacket], comment: str = "") -> None:
    """Write a file anew, with a comment on the whole; each interface stands in it once.

    Raises OSError.
    """
    wanted = list(packets)
    with import_without_files():
        from scapy.packet import Raw
        from scapy.utils import PcapNgWriter

    class Writer(PcapNgWriter):  # type: ignore[misc]  # scapy has no types that mypy follows
        """scapy's own counts microseconds, and gives the first interface no name."""

        linktype = LINKTYPE_RAW
        sync = False

        def _write_header(self, _packet: Any) -> None:
            self.header_present = True
            self.tsresol = NANOSECONDS
            self.interfaces2id = {}
            self._write_block_shb()
            for number, name in enumerate(dict.fromkeys(one.interface for one in wanted)):
                self.interfaces2id[name.encode()] = number
                self._write_block_idb(DLT_RAW if number else LINKTYPE_RAW, name.encode())

        def _write_block_shb(self) -> None:
            said = comment.encode()
            options = struct.pack("<HH", _COMMENT, len(said)) + self._add_padding(said)
            options += struct.pack("<HH", _END, 0)
            body = self.endian_magic + struct.pack("<HHq", 1, 0, -1)
            self.f.write(self.build_block(SECTION, body, options=options if said else None))

        def _write_block_idb(self, linktype: int, ifname: bytes = b"") -> None:
            body = struct.pack("<HHI", linktype, 0, SNAP_BYTES)
            options = struct.pack("<HH", _IF_NAME, len(ifname)) + self._add_padding(ifname)
            options += struct.pack("<HHB3xHH", _IF_TSRESOL, 1, 9, _END, 0)
            self.f.write(self.build_block(struct.pack("<I", 1), body, options=options))

        def _get_time(self, packet: Any, sec: Any, usec: Any) -> tuple[Any, int]:
            # A float would lose the last hundreds of nanoseconds.
            return packet.time, 0

    writer = Writer(path)
    try:
        writer.write_header(None)
        for one in wanted:
            packet = Raw(one.data)
            packet.time = Fraction(one.time_ns, NANOSECONDS)
            packet.sniffed_on = one.interface
            packet.direction = _OUTBOUND if one.outgoing else _INBOUND
            packet.comment = one.comment.encode()
            packet.wirelen = max(one.length, len(one.data))
            writer.write_packet(packet)
        writer.close()
    except OSError:
        # Else what there was no room for would be written once more when the writer goes.
        writer.f.raw.close()
        raise

"""Files of packets, as somebody else's reader reads them."""

from __future__ import annotations

from pathlib import Path

from scapy.utils import RawPcapNgReader

from netprobe.protocols.packets.pcapng import LINKTYPE_RAW, PcapPacket, write_pcapng

SYN = bytes.fromhex(
    "450000280000400040060000" "0a0000010a000002" "0400192b00000007000000005002ffff00000000"
)  # fmt: skip
AT_NS = 1_763_800_000_123_456_789


def test_another_reader_finds_each_packet_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    """Its time to the nanosecond, its interface, direction, whole length and fate."""
    path = str(tmp_path / "a.pcapng")
    packets = [
        PcapPacket(AT_NS, "a/eth0", True, 1500, SYN, "left a; never seen by b"),
        PcapPacket(AT_NS + 1, "b/eth1", False, 40, SYN + b"odd", "came to b"),
    ]

    write_pcapng(path, packets, "not all")

    with RawPcapNgReader(path) as reader:
        found = [(data, about) for data, about in reader]
    assert [data for data, _ in found] == [SYN, SYN + b"odd"]
    assert [(one.tshigh << 32) + one.tslow for _, one in found] == [AT_NS, AT_NS + 1]
    assert [one.ifname for _, one in found] == [b"a/eth0", b"b/eth1"]
    assert [one.direction for _, one in found] == [2, 1]
    assert [one.wirelen for _, one in found] == [1500, 43]
    assert [one.comments for _, one in found] == [[b"left a; never seen by b"], [b"came to b"]]
    assert {one.tsresol for _, one in found} == {10**9}
    assert found[0][1].linktype == LINKTYPE_RAW
    assert b"not all" in Path(path).read_bytes()

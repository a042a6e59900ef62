"""The packets as others read them: scapy and tshark find the right fields and nothing malformed."""

from __future__ import annotations

import io
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest

from netprobe.agent.wire import templates as wire
from netprobe.protocols import PROTOCOLS
from netprobe.protocols.packets import plain
from netprobe.protocols.packets.tunnels import NETWORK_ID
from tests.protocols.test_templates import CASES, HOST, KEY, NONCE, PORT

MAC = wire.request_mac(KEY, NONCE)
MARK = b"NETPROBE" + NONCE + MAC
PORTS = {
    "plain": 40000,
    "dns": 53,
    "geneve": 6081,
    "ike": 500,
    "ike-nat": 4500,
    "memberlist": 7946,
    "ntp": 123,
    "openvpn": 1194,
    "vxlan": 4789,
}


def request_of(name: str, transport: str) -> bytes:
    """A request filled for the nonce of these tests."""
    return PROTOCOLS[name].template(transport, 4).fill(KEY, NONCE)


def answer_of(name: str, transport: str) -> bytes:
    """The answer of host 258 to that request."""
    return (
        PROTOCOLS[name]
        .template(transport, 4)
        .reply(KEY, NONCE, HOST, PORT, request_of(name, transport))
    )


def check_inner(packet: Any) -> None:
    """IPv4 with a right checksum and TTL 1, UDP without checksum, and our mark."""
    from scapy.layers.inet import IP, UDP  # noqa: PLC0415
    from scapy.packet import Raw  # noqa: PLC0415

    inner = packet[IP]
    assert (inner.src, inner.dst, inner.ttl) == ("192.0.2.1", "192.0.2.2", 1)
    rebuilt = inner.copy()
    del rebuilt.chksum
    assert IP(bytes(rebuilt)).chksum == inner.chksum
    assert (inner[UDP].dport, inner[UDP].chksum) == (9, 0)
    assert inner.len == len(bytes(inner))
    assert bytes(inner[Raw]) == MARK


def check_frame(packet: Any) -> None:
    """A unicast frame between two locally administered MAC addresses."""
    from scapy.layers.l2 import Ether  # noqa: PLC0415

    for address in (packet[Ether].src, packet[Ether].dst):
        first = int(address[:2], 16)
        assert first & 0x02
        assert not first & 0x01


def test_packets_of_tunnels_are_what_scapy_makes() -> None:
    """Byte for byte, so that none is of our own making."""
    from scapy.contrib.geneve import GENEVE  # noqa: PLC0415
    from scapy.layers.inet import IP, UDP  # noqa: PLC0415
    from scapy.layers.l2 import Ether  # noqa: PLC0415
    from scapy.layers.vxlan import VXLAN  # noqa: PLC0415
    from scapy.packet import Raw  # noqa: PLC0415

    ip = IP(src="192.0.2.1", dst="192.0.2.2", ttl=1, id=0, flags="DF")
    inner = ip / UDP(sport=20048, dport=9, chksum=0) / Raw(plain.MARK)
    frame = Ether(src="02:4e:50:00:00:01", dst="02:4e:50:00:00:02") / inner
    made = {
        "ipip": inner,
        "vxlan": VXLAN(flags="Instance", vni=NETWORK_ID) / frame,
        "geneve": GENEVE(proto=0x6558, vni=NETWORK_ID) / frame,
    }
    for name, packet in made.items():
        (transport,) = PROTOCOLS[name].transports
        assert PROTOCOLS[name].service_request(transport, 4) == bytes(packet)


def test_vxlan_with_scapy() -> None:
    """The I flag, a network from the top of the range, an inner frame that does no harm."""
    from scapy.layers.vxlan import VXLAN  # noqa: PLC0415

    packet = VXLAN(request_of("vxlan", "udp"))
    assert (int(packet.flags), packet.vni) == (8, 0xFFFFFE)
    check_frame(packet)
    check_inner(packet)


def test_geneve_with_scapy() -> None:
    """Version 0, no options, neither control nor critical, Ethernet inside."""
    from scapy.contrib.geneve import GENEVE  # noqa: PLC0415

    packet = GENEVE(request_of("geneve", "udp"))
    assert (packet.version, packet.optionlen, packet.oam, packet.critical) == (0, 0, 0, 0)
    assert (packet.proto, packet.vni) == (0x6558, 0xFFFFFE)
    check_frame(packet)
    check_inner(packet)


@pytest.mark.parametrize("family", [4, 6])
def test_ipip_with_scapy(family: int) -> None:
    """Behind an IPv4 or an IPv6 header, protocol 4 is dissected as an inner packet."""
    from scapy.layers.inet import IP  # noqa: PLC0415
    from scapy.layers.inet6 import IPv6  # noqa: PLC0415

    outer = IP(proto=4) if family == 4 else IPv6(nh=4)
    packet = type(outer)(
        bytes(outer / PROTOCOLS["ipip"].template("ipproto", family).fill(KEY, NONCE))
    )
    check_inner(packet.payload)


def test_ntp_with_scapy() -> None:
    """A version 4 client's request with key id and digest, and a server without time."""
    from scapy.layers.ntp import NTPHeader  # noqa: PLC0415

    request = NTPHeader(request_of("ntp", "udp"))
    assert (request.version, request.mode, request.key_id) == (4, 3, 0x4E50)
    assert bytes(request)[40:48] == NONCE
    assert request.dgst == MAC
    answer = NTPHeader(answer_of("ntp", "udp"))
    assert (answer.leap, answer.version, answer.mode, answer.stratum) == (3, 4, 4, 16)
    assert bytes(answer)[24:32] == NONCE
    service = NTPHeader(PROTOCOLS["ntp"].service_request("udp", 4))
    assert (service.version, service.mode, len(bytes(service))) == (4, 3, 48)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_dns_with_dnspython(transport: str) -> None:
    """Query and answer parse to the last byte, and the cookies are nonce, host and MAC."""
    skip = 2 if transport == "tcp" else 0
    request, answer = request_of("dns", transport), answer_of("dns", transport)
    if skip:
        assert [struct.unpack(">H", data[:2])[0] for data in (request, answer)] == [
            len(request) - 2,
            len(answer) - 2,
        ]
    query = dns.message.from_wire(request[skip:])
    response = dns.message.from_wire(answer[skip:])
    assert query.is_response(response)
    assert response.rcode() == dns.rcode.NOERROR
    asked, answered = query.options[0], response.options[0]
    assert isinstance(asked, dns.edns.CookieOption)
    assert isinstance(answered, dns.edns.CookieOption)
    assert (asked.client, asked.server) == (NONCE, MAC)
    mac = wire.answer_mac(KEY, NONCE, HOST, PORT)
    assert (answered.client, answered.server) == (NONCE, struct.pack(">H", HOST) + mac)


def test_dns_answer_follows_a_rewritten_query() -> None:
    """A middlebox that changes id or case gets its own id and question back."""
    template = PROTOCOLS["dns"].template("udp", 4)
    request = template.fill(KEY, NONCE)
    rewritten = b"\xab\xcd" + request[2:].replace(b"server", b"sErVeR")
    assert template.recognise(KEY, rewritten) == NONCE
    answer = template.reply(KEY, NONCE, HOST, PORT, rewritten)
    assert answer[:2] == b"\xab\xcd"
    assert b"sErVeR" in answer
    assert template.answering_host(KEY, NONCE, answer) == HOST


def test_dns_service_request_is_plain() -> None:
    """A live server gets one question, not recursive, without EDNS."""
    data = PROTOCOLS["dns"].service_request("udp", 4)
    assert data is not None
    query = dns.message.from_wire(data)
    assert query.question[0].to_text() == "id.server. CH TXT"
    assert (query.edns, query.flags) == (-1, 0)


def msgpack_item(stream: io.BytesIO) -> bytes | int:
    """A short string (``fixraw``) or a small number, the two things that we send."""
    head = stream.read(1)[0]
    if head < 0x80:
        return head
    assert head & 0xE0 == 0xA0
    return stream.read(head & 0x1F)


def msgpack_map(data: bytes) -> dict[bytes | int, bytes | int]:
    """One whole map, to the last byte."""
    assert data[0] & 0xF0 == 0x80
    stream = io.BytesIO(data[1:])
    found = {msgpack_item(stream): msgpack_item(stream) for _ in range(data[0] & 0x0F)}
    assert not stream.read()
    return found


def test_memberlist_is_well_formed() -> None:
    """Ping and ack are one type byte and one whole msgpack map."""
    ping, ack = request_of("memberlist", "udp"), answer_of("memberlist", "udp")
    mac = wire.answer_mac(KEY, NONCE, HOST, PORT)
    assert (ping[0], ack[0]) == (0, 2)
    assert msgpack_map(ping[1:]) == {b"SeqNo": 42, b"Node": NONCE + MAC}
    assert msgpack_map(ack[1:]) == {
        b"SeqNo": 42,
        b"Payload": NONCE + struct.pack(">H", HOST) + mac,
    }
    service = PROTOCOLS["memberlist"].service_request("tcp", 4)
    assert service == b"\x00\x82\xa5SeqNo\x2a\xa4Node\xa0"


def pcap(packets: Sequence[tuple[str, str, bytes]], path: Path) -> None:
    """A capture of these (name, transport, payload) in IPv4, with right lengths and checksums."""
    from scapy.layers.inet import IP, TCP, UDP  # noqa: PLC0415

    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    body = b""
    for index, (name, transport, payload) in enumerate(packets):
        outer = IP(src="10.0.0.1", dst="10.0.0.2")
        if transport == "ipproto":
            data = bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=4) / payload)
        elif transport == "udp":
            data = bytes(outer / UDP(sport=40000 + index, dport=PORTS[name]) / payload)
        else:
            tcp = TCP(sport=40000 + index, dport=PORTS[name], flags="PA", seq=1, ack=1)
            data = bytes(outer / tcp / payload)
        body += struct.pack("<IIII", index, 0, len(data), len(data)) + data
    path.write_bytes(head + body)


def dissected(path: Path) -> list[list[str]]:
    """Give for every packet its layers, and what tshark has to complain of it."""
    fields = ["frame.protocols", "_ws.malformed", "_ws.expert.message", "ip.checksum.status"]
    words = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(path), "-o", "ip.check_checksum:TRUE", "-T", "fields", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


LAYERS = {
    "dns": "dns",
    "geneve": "geneve:eth:ethertype:ip:udp",
    "ike": "isakmp",
    "ike-nat": "udpencap:isakmp",
    "ipip": "ip:ip:udp",
    "ntp": "ntp",
    "openvpn": "openvpn",
    "vxlan": "vxlan:eth:ethertype:ip:udp",
}
# What tshark says of every DNS query whose answer is not in the capture, and the like.
HARMLESS = (
    "DNS query retransmission",
    "DNS response missing",
    '"Time To Live" only 1',
)


@pytest.mark.slow
@pytest.mark.needs("tshark")
def test_tshark_finds_nothing_malformed(tmp_path: Path) -> None:
    """Requests, answers and service requests dissect as their protocol, checksums right."""
    packets = []
    for name, transport in CASES:
        if name not in LAYERS:
            continue
        packets.append((name, transport, request_of(name, transport)))
        if not PROTOCOLS[name].one_way:
            packets.append((name, transport, answer_of(name, transport)))
        service = PROTOCOLS[name].service_request(transport, 4)
        assert service is not None
        packets.append((name, transport, service))
    path = tmp_path / "packets.pcap"
    pcap(packets, path)
    lines = dissected(path)
    assert len(lines) == len(packets)
    for (name, transport, _), (layers, malformed, expert, checksums) in zip(
        packets, lines, strict=True
    ):
        assert LAYERS[name] in layers, (name, transport, layers)
        assert not malformed, (name, transport)
        assert set(checksums.split(",")) == {"1"}, (name, transport)
        assert not expert or expert.startswith(HARMLESS), (name, transport, expert)

"""Reading: whatever comes back, a short harmless phrase, and never a service that is none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.protocols import PROTOCOLS
from netprobe.protocols.base import printable
from tests.protocols.test_templates import KEY, NONCE, each_case

BANNERS = (
    b"",
    b"\n",
    b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n400",
    b"\x15\x03\x01\x00\x02\x02\x46",
    b"220 mail.example.com ESMTP\r\n",
    bytes(64),
    b"\xff" * 64,
    bytes(range(256)),
)


@each_case
@given(data=st.binary(max_size=400))
def test_reading_never_raises(name: str, transport: str, data: bytes) -> None:
    """Any bytes give a short phrase of printable ASCII."""
    said = PROTOCOLS[name].read(transport, data).said
    assert said
    assert len(said) <= 120
    assert said.isascii()
    assert said.isprintable()


@each_case
@given(data=st.binary(max_size=200), at=st.integers(0, 200))
def test_reading_damaged_requests_never_raises(
    name: str, transport: str, data: bytes, at: int
) -> None:
    """A request of ours with other bytes in the middle gets every parser further, not over."""
    request = PROTOCOLS[name].service_request(transport, 4) or b""
    PROTOCOLS[name].read(transport, request[:at] + data + request[at + len(data) :])


@each_case
def test_other_services_are_not_recognised(name: str, transport: str) -> None:
    """SSH, HTTP, TLS, SMTP, zeros and noise are not the service that was asked for."""
    read = PROTOCOLS[name].read
    assert not [banner for banner in BANNERS if read(transport, banner).recognised]


@each_case
def test_our_own_request_is_not_recognised(name: str, transport: str) -> None:
    """A reflector that sends our bytes back is not the service."""
    protocol = PROTOCOLS[name]
    genuine = protocol.template(transport, 4).fill(KEY, NONCE)
    assert not protocol.read(transport, genuine).recognised
    service = protocol.service_request(transport, 4)
    assert service is None or not protocol.read(transport, service).recognised


def test_nothing_is_sent_to_an_unknown_service() -> None:
    """Plain bytes go to listeners of ours only."""
    assert PROTOCOLS["plain"].service_request("tcp", 4) is None
    assert PROTOCOLS["kube-apiserver"].service_request("tcp", 4) is None


def test_plain_quotes_a_banner() -> None:
    """What a service says by itself helps the reader to see which one it is."""
    assert PROTOCOLS["plain"].read("tcp", BANNERS[2]).said == (
        'said "SSH-2.0-OpenSSH_9.2p1 Debian-2"'
    )


def test_unknown_bytes_are_shown_as_hex() -> None:
    """The first 8 bytes and the length, so that a reader can look further."""
    assert PROTOCOLS["dns"].read("udp", b"HTTP/1.0 400 x").said == (
        "not a DNS answer: 14 bytes beginning 485454502f312e30"
    )
    assert PROTOCOLS["dns"].read("udp", b"").said == "not a DNS answer: no bytes"


def test_printable_is_harmless_and_short() -> None:
    """Escape sequences, newlines and long texts do not reach a terminal."""
    assert printable("a\x1b[31mb\nc") == "a?[31mb?c"
    assert printable("x" * 100) == "x" * 57 + "..."


def dns_answer(flags: int, tail: bytes = b"", query_id: int = 0x4E50) -> bytes:
    """A DNS header that counts one question, and whatever follows."""
    return struct.pack(">6H", query_id, flags, 1, 0, 0, 0) + tail


QUESTION = b"\x02id\x06server\x00\x00\x10\x00\x03"
DNS_ANSWERS = [
    (dns_answer(0x8000, QUESTION), True, "NOERROR"),
    (dns_answer(0x8005, QUESTION), True, "REFUSED{asked}"),
    (dns_answer(0x8204, QUESTION), True, "NOTIMP{asked}, truncated"),
    (dns_answer(0x8003, QUESTION[:5]), True, "NXDOMAIN{asked}"),
    (dns_answer(0x8001), True, "FORMERR{asked}"),
    (dns_answer(0x800C, QUESTION), True, "12{asked}"),
    (dns_answer(0x0000, QUESTION), False, "our own DNS query came back"),
    (
        dns_answer(0x8000, query_id=1),
        False,
        "not a DNS answer: 12 bytes beginning 0001800000010000",
    ),
    (dns_answer(0xA800), False, "not a DNS answer: 12 bytes beginning 4e50a80000010000"),
]


@pytest.mark.parametrize(("data", "recognised", "said"), DNS_ANSWERS)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_dns_answers(transport: str, data: bytes, recognised: bool, said: str) -> None:
    """Every response code is an answer, with what was asked, also cut short; others are none."""
    framed = struct.pack(">H", len(data)) + data if transport == "tcp" else data
    reading = PROTOCOLS["dns"].read(transport, framed)
    assert reading.recognised is recognised
    if recognised:
        asked = " to id.server. TXT CH, which asks a server its name"
        assert reading.said == said.replace("{asked}", asked)


def ntp_answer(first: int, stratum: int, reference: bytes, origin: bytes = b"NETPROBE") -> bytes:
    """An NTP packet with these fields and zeros."""
    head = bytes((first, stratum)) + bytes(10) + reference
    return head + bytes(24 - len(head)) + origin + bytes(16)


NTP_ANSWERS = [
    (ntp_answer(0x24, 2, b"\x0a\x00\x00\x01"), True, "NTP stratum 2"),
    (ntp_answer(0x1C, 15, b"\x0a\x00\x00\x01"), True, "NTP stratum 15"),
    (ntp_answer(0xE4, 0, b"RATE"), True, "NTP kiss code RATE"),
    (ntp_answer(0xE4, 0, b"INIT"), True, "NTP, not synchronised"),
    (ntp_answer(0xE4, 0, bytes(4)), True, "NTP, not synchronised"),
    (ntp_answer(0x24, 16, b"\x0a\x00\x00\x01"), True, "NTP, not synchronised"),
    (ntp_answer(0x24, 2, bytes(4), b"somebody"), False, "an NTP answer to another request"),
    (ntp_answer(0x23, 2, bytes(4)), False, "an NTP packet of mode 3, not a server's"),
]


@pytest.mark.parametrize(("data", "recognised", "said"), NTP_ANSWERS)
def test_ntp_answers(data: bytes, recognised: bool, said: str) -> None:
    """Only a server's answer with our timestamp counts; stratum and kiss code are named."""
    reading = PROTOCOLS["ntp"].read("udp", data)
    assert (reading.recognised, reading.said) == (recognised, said)


def ike_answer(body: bytes, first: int, version: int = 0x20, flags: int = 0x20) -> bytes:
    """An IKE header of an answer to our service request, and payloads."""
    return b"NETPROBE" + bytes(7) + b"\x01" + bytes((first, version, 34, flags)) + bytes(8) + body


IKE_ANSWERS = [
    (ike_answer(b"\x00\x00\x00\x08\x00\x00\x00\x0e", 41), True, "IKE NO_PROPOSAL_CHOSEN"),
    (ike_answer(b"\x00\x00\x00\x08\x00\x00\x00\x63", 41), True, "IKE notification 99"),
    (ike_answer(b"", 33), True, "IKEv2 answer of exchange 34"),
    (ike_answer(b"", 0, version=0x10, flags=0), True, "IKEv1 answer of exchange 34"),
    (ike_answer(b"", 33, flags=0x08), False, "our own IKE request came back"),
    (ike_answer(b"", 33, version=0x50), False, None),
]


@pytest.mark.parametrize(("data", "recognised", "said"), IKE_ANSWERS)
@pytest.mark.parametrize("name", ["ike", "ike-nat"])
def test_ike_answers(name: str, data: bytes, recognised: bool, said: str | None) -> None:
    """The first notification is named, on both ports; an IKEv1 gateway is one too."""
    framed = bytes(4) + data if name == "ike-nat" else data
    reading = PROTOCOLS[name].read("udp", framed)
    assert reading.recognised is recognised
    assert said is None or reading.said == said


SEQUENCE = b"\xa5SeqNo\x2a"
PAYLOAD = b"\xa7Payload\xa0"
MEMBERLIST_ANSWERS = [
    ("udp", b"\x02\x82" + SEQUENCE + PAYLOAD, "memberlist ack"),
    ("udp", b"\x02\x82" + PAYLOAD + SEQUENCE, "memberlist ack"),
    ("udp", b"\x02\x81" + SEQUENCE, "memberlist ack"),
    ("udp", b"\x0c1234\x02\x81" + SEQUENCE, "memberlist ack"),
    ("udp", b"\x07\x02\x00\x09\x00\x01\x02\x81" + SEQUENCE + b"\x04", "memberlist ack"),
    ("tcp", b"\x09\x82\xa4Algo\x00\xa3Buf\xb7", "memberlist, compressed"),
    ("tcp", b"\x0a\x00\x00\x00\x71\x01" + bytes(112), "memberlist with an encryption key"),
    ("udp", b"\x0a\x00\x00\x00\x71\x01" + bytes(112), None),
    ("tcp", b"\x0a\x48\x65\x6c\x6c\x01", None),
    ("tcp", b"\x0a\x00\x00\x00\x01\x01" + bytes(112), None),
    ("udp", b"\x02\x81\xa5SeqNo\x2b", None),
    ("udp", b"\x07", None),
]


@pytest.mark.parametrize(("transport", "data", "said"), MEMBERLIST_ANSWERS)
def test_memberlist_answers(transport: str, data: bytes, said: str | None) -> None:
    """An ack of our number is known in every wrapping that members use."""
    reading = PROTOCOLS["memberlist"].read(transport, data)
    assert reading.recognised is (said is not None)
    assert said is None or reading.said == said


def test_overlay_answers() -> None:
    """A header of the right shape is known and its network named."""
    vxlan = b"\x08\0\0\0\0\0\x05\0" + bytes(14)
    geneve = b"\0\0\x65\x58\0\0\x06\0" + bytes(14)
    inner = b"\x45\0\0\x14" + bytes(5) + b"\x11" + bytes(10)
    assert PROTOCOLS["vxlan"].read("udp", vxlan).said == "VXLAN, network 5"
    assert PROTOCOLS["geneve"].read("udp", geneve).said == "Geneve, network 6"
    assert PROTOCOLS["ipip"].read("ipproto", inner).said == "encapsulated IPv4, protocol 17"

"""One question to one resolver: the addresses of a name, or why there are none."""

from __future__ import annotations

import struct
from dataclasses import dataclass

QUERY_ID = 0x4E51
TYPES = ("A", "AAAA")


@dataclass(frozen=True, slots=True)
class NameAnswer:
    """``rcode`` as DNS names it (``NOERROR``, ``NXDOMAIN`` ...), and the addresses."""

    rcode: str
    addresses: tuple[str, ...] = ()


def question(name: str, kind: str, tcp: bool) -> bytes:
    """A recursive question for A or AAAA."""
    import dns.message

    message = dns.message.make_query(name, kind, id=QUERY_ID, use_edns=False).to_wire()
    return struct.pack(">H", len(message)) + message if tcp else message


def read_answer(data: bytes, tcp: bool) -> NameAnswer | None:
    """Read an answer; None where it does not belong to ``question``."""
    import dns.exception
    import dns.message
    import dns.rcode
    import dns.rdatatype

    try:
        message = dns.message.from_wire(data[2:] if tcp else data, ignore_trailing=True)
    except (dns.exception.DNSException, ValueError):
        return None
    if message.id != QUERY_ID:
        return None
    kinds = (dns.rdatatype.A, dns.rdatatype.AAAA)
    found = [item.to_text() for rr in message.answer if rr.rdtype in kinds for item in rr]
    return NameAnswer(dns.rcode.to_text(message.rcode()), tuple(found))

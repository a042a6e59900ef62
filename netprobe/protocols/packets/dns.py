"""DNS over UDP and TCP: a query that every server answers from itself, and address questions.

The query of a probe is ``id.server`` CH TXT (RFC 4892) without recursion. Measured with dnsmasq,
BIND, Unbound and PowerDNS whose upstreams were dead: all answered it at once (a text, nothing,
REFUSED or NOTIMP), over UDP and TCP. ``localhost A`` hung in a dnsmasq that reads no hosts file,
``. NS`` in every dnsmasq, and ``version.bind`` is what intrusion detection looks for. CoreDNS
refuses the class, except where it forwards everything: then its upstream has to answer.
"""

from __future__ import annotations

import functools
import struct
import typing

from msgspec import Struct

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import (
    LENGTH_BYTES,
    Reading,
    Transport,
    add_length,
    drop_length,
    make_template,
    unknown,
)

if typing.TYPE_CHECKING:
    from dns.message import QueryMessage

QUERY_ID = 0x4E50
QUERY_NAME = "id.server."
QUESTION_ID = 0x4E51
TYPES = ("A", "AAAA")

_HEADER = struct.Struct(">6H")
_RESPONSE = 0x8000
_OPCODE = 0x7800
_TRUNCATED = 0x0200
_RCODE = 0x000F


class Dns:
    """DNS; nonce and MAC are the client and server part of an EDNS cookie (RFC 7873)."""

    name = "dns"
    one_way = False
    transports: tuple[Transport, ...] = ("udp", "tcp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give a query with a cookie, and a response whose cookie is nonce, host and MAC."""
        return _make_template(transport)

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the query without EDNS, the form that every server and middlebox takes."""
        return add_length(_make_query().to_wire(), transport)

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise the response to our query, whatever its code is, also when it was cut off."""
        message = drop_length(data, transport)
        if len(message) < _HEADER.size:
            return unknown("a DNS answer", data)
        query_id, flags = _HEADER.unpack_from(message)[:2]
        if query_id != QUERY_ID or flags & _OPCODE:
            return unknown("a DNS answer", data)
        if not flags & _RESPONSE:
            return Reading(False, "our own DNS query came back")
        cut = ", truncated" if flags & _TRUNCATED else ""
        code = _name_code(message, flags)
        # Each code is as good an answer, and NOTIMP sounds as if something were missing.
        question = f"{QUERY_NAME} TXT CH, which asks a server its name"
        asked = "" if code == "NOERROR" else f" to {question}"
        return Reading(True, f"{code}{asked}{cut}")


class NameAnswer(Struct, frozen=True):
    """``rcode`` as DNS names it (``NOERROR``, ``NXDOMAIN`` ...), and the addresses.

    ``size``: of the message in bytes, also where not all of it came. ``truncated``: the server cut
    it off. ``serial``: of the zone, where the answer has its SOA record.
    """

    rcode: str
    addresses: tuple[str, ...] = ()
    size: int = 0
    truncated: bool = False
    serial: int | None = None


def question(name: str, kind: str, tcp: bool, most_bytes: int | None = None) -> bytes:
    """Make a recursive question for A, AAAA or SOA.

    ``most_bytes``: of the answer, as EDNS says it; None: without EDNS, which means 512.
    """
    import dns.message

    message = dns.message.make_query(
        name, kind, id=QUESTION_ID, use_edns=False if most_bytes is None else 0,
        payload=most_bytes or 0,
    )  # fmt: skip
    return add_length(message.to_wire(), "tcp" if tcp else "udp")


def make_server_question(transport: str) -> bytes:
    """Make the question that every server answers by itself: which one it is."""
    return add_length(_make_query().to_wire(), transport)


def read_answer(data: bytes, tcp: bool) -> NameAnswer | None:
    """Read an answer; None where it does not belong to ``question``."""
    import dns.exception
    import dns.message
    import dns.rcode
    import dns.rdatatype

    try:
        plain = drop_length(data, "tcp" if tcp else "udp")
        message = dns.message.from_wire(plain, ignore_trailing=True, continue_on_error=True)
    except (dns.exception.DNSException, ValueError):
        return None
    if message.id != QUESTION_ID or not message.flags & _RESPONSE:
        return None
    names = {one.name for one in message.question}
    for rr in message.answer:
        if rr.rdtype == dns.rdatatype.CNAME and rr.name in names:
            names.update(item.target for item in rr)
    kinds = (dns.rdatatype.A, dns.rdatatype.AAAA)
    found = [
        item.to_text()
        for rr in message.answer
        if rr.rdtype in kinds and rr.name in names
        for item in rr
    ]
    # The authority of a server that has a larger zone only is that zone's.
    soa = [
        int(item.serial)
        for rr in (*message.answer, *message.authority)
        if rr.rdtype == dns.rdatatype.SOA and rr.name in names
        for item in rr
    ]
    return NameAnswer(
        dns.rcode.to_text(message.rcode()),
        tuple(found),
        int.from_bytes(data[:LENGTH_BYTES], "big") if tcp else len(data),
        bool(message.flags & _TRUNCATED),
        soa[0] if soa else None,
    )


def _make_query(cookie: bytes = b"") -> QueryMessage:
    import dns.edns
    import dns.message

    query = dns.message.make_query(QUERY_NAME, "TXT", "CH", id=QUERY_ID, flags=0)
    if cookie:
        client, server = cookie[: wire.NONCE_BYTES], cookie[wire.NONCE_BYTES :]
        query.use_edns(0, options=[dns.edns.CookieOption(client, server)])
    return query


@functools.cache
def _make_template(transport: str) -> wire.Template:
    """Build both messages so that the cookie is the last thing in each of them.

    Id and question are copied from the query as it arrived: middleboxes rewrite ids, and
    resolvers play with the case of names.
    """
    import dns.edns
    import dns.message

    query = _make_query(bytes(wire.NONCE_BYTES + wire.MAC_BYTES))
    # An empty NOERROR response whose server cookie has room for host and MAC.
    response = dns.message.make_response(query)
    server = bytes(wire.HOST_BYTES + wire.MAC_BYTES)
    response.use_edns(0, options=[dns.edns.CookieOption(bytes(wire.NONCE_BYTES), server)])
    id_at = LENGTH_BYTES if transport == "tcp" else 0
    question_at = id_at + _HEADER.size
    question_bytes = len(_make_query().to_wire()) - _HEADER.size
    return make_template(
        add_length(query.to_wire(), transport),
        add_length(response.to_wire(), transport),
        copies=((id_at, id_at, 2), (question_at, question_at, question_bytes)),
    )


def _name_code(message: bytes, flags: int) -> str:
    """Name the response code; the upper bits are in the EDNS record, where that can be read."""
    import dns.exception
    import dns.message
    import dns.rcode

    try:
        parsed = dns.message.from_wire(message, ignore_trailing=True, continue_on_error=True)
        return dns.rcode.to_text(parsed.rcode())
    except (dns.exception.DNSException, ValueError):
        return dns.rcode.to_text(dns.rcode.Rcode(flags & _RCODE))

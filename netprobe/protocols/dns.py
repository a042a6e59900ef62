"""DNS over UDP and TCP: a query that every server answers from itself.

The query is ``id.server`` CH TXT (RFC 4892) without recursion. Measured with dnsmasq, BIND,
Unbound and PowerDNS whose upstreams were dead: all answered it at once (a text, nothing,
REFUSED or NOTIMP), over UDP and TCP. ``localhost A`` hung in a dnsmasq that reads no hosts file,
``. NS`` in every dnsmasq, and ``version.bind`` is what intrusion detection looks for. CoreDNS
refuses the class, except where it forwards everything: then its upstream has to answer.
"""

from __future__ import annotations

import functools
import struct
import typing

from netprobe.agent.wire import templates as wire
from netprobe.protocols.base import Reading, Transport, unknown, with_answer

if typing.TYPE_CHECKING:
    from dns.message import QueryMessage

QUERY_ID = 0x4E50
QUERY_NAME = "id.server."

_HEADER = struct.Struct(">6H")
_RESPONSE = 0x8000
_OPCODE = 0x7800
_TRUNCATED = 0x0200
_RCODE = 0x000F
_LENGTH = struct.Struct(">H")


class Dns:
    """DNS; nonce and MAC are the client and server part of an EDNS cookie (RFC 7873)."""

    name = "dns"
    one_way = False
    transports: tuple[Transport, ...] = ("udp", "tcp")

    def template(self, transport: str, family: int) -> wire.Template:
        """Give a query with a cookie, and a response whose cookie is nonce, host and MAC."""
        return _make_template(transport == "tcp")

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give the query without EDNS, the form that every server and middlebox takes."""
        return _frame_message(_make_query(None).to_wire(), transport == "tcp")

    def read(self, transport: str, data: bytes) -> Reading:
        """Recognise the response to our query, whatever its code is, also when it was cut off."""
        message = data[_LENGTH.size :] if transport == "tcp" else data
        if len(message) < _HEADER.size:
            return unknown("a DNS answer", data)
        query_id, flags = _HEADER.unpack_from(message)[:2]
        if query_id != QUERY_ID or flags & _OPCODE:
            return unknown("a DNS answer", data)
        if not flags & _RESPONSE:
            return Reading(False, "our own DNS query came back")
        cut = ", truncated" if flags & _TRUNCATED else ""
        return Reading(True, f"{_rcode_name(message, flags)}{cut}")


def _make_query(cookie: bytes | None) -> QueryMessage:
    import dns.edns
    import dns.message

    options: list[dns.edns.Option] = []
    if cookie is not None:
        options = [dns.edns.CookieOption(cookie[: wire.NONCE_BYTES], cookie[wire.NONCE_BYTES :])]
    query = dns.message.make_query(
        QUERY_NAME,
        "TXT",
        "CH",
        use_edns=None if cookie is None else 0,
        options=options or None,
        id=QUERY_ID,
        flags=0,
    )
    return query


@functools.cache
def _make_template(tcp: bool) -> wire.Template:
    """Build both messages so that the cookie is the last thing in each of them.

    Id and question are copied from the query as it arrived: middleboxes rewrite ids, and
    resolvers play with the case of names.
    """
    query = _make_query(bytes(wire.NONCE_BYTES + wire.MAC_BYTES))
    request = _frame_message(query.to_wire(), tcp)
    answer = _frame_message(_make_response(query), tcp)
    shift = _LENGTH.size if tcp else 0
    question_at = shift + _HEADER.size
    question_bytes = len(_make_query(None).to_wire()) - _HEADER.size
    mac_at = len(answer) - wire.MAC_BYTES
    return with_answer(
        wire.Template(
            request,
            len(request) - wire.MAC_BYTES - wire.NONCE_BYTES,
            len(request) - wire.MAC_BYTES,
        ),
        answer,
        nonce_at=mac_at - wire.HOST_BYTES - wire.NONCE_BYTES,
        host_at=mac_at - wire.HOST_BYTES,
        mac_at=mac_at,
        copies=((shift, shift, 2), (question_at, question_at, question_bytes)),
    )


def _make_response(query: QueryMessage) -> bytes:
    """Make an empty NOERROR response whose server cookie has room for host and MAC."""
    import dns.edns
    import dns.message

    response = dns.message.make_response(query)
    server = bytes(wire.HOST_BYTES + wire.MAC_BYTES)
    response.use_edns(0, options=[dns.edns.CookieOption(bytes(wire.NONCE_BYTES), server)])
    return response.to_wire()


def _frame_message(message: bytes, tcp: bool) -> bytes:
    return _LENGTH.pack(len(message)) + message if tcp else message


def _rcode_name(message: bytes, flags: int) -> str:
    """Name the response code; the upper bits are in the EDNS record, where that can be read."""
    import dns.exception
    import dns.message
    import dns.rcode

    try:
        parsed = dns.message.from_wire(message, ignore_trailing=True, continue_on_error=True)
        return dns.rcode.to_text(parsed.rcode())
    except (dns.exception.DNSException, ValueError):
        return dns.rcode.to_text(dns.rcode.Rcode(flags & _RCODE))

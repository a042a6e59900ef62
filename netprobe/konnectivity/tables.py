"""The decision tables: symptoms of tries → a verdict.

``because`` is the evidence as a sentence; its words are filled with measured values. A verdict of
None means that nothing failed here, and the next stage follows.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from msgspec import Struct

from netprobe.konnectivity.symptoms import TcpSymptom
from netprobe.model.decision import Patterns, patterns

# What connects that looked alike mean; their note says what was seen.
TCP: Mapping[TcpSymptom, str | None] = {
    "opened": None, "silent": "TCP_FILTERED", "refused": "TCP_REFUSED", "rejected": "ICMP_REJECT",
    "host-down": "HOST_UNREACHABLE", "unrouted": "ROUTER_HAS_NO_ROUTE", "no-route": "NO_ROUTE",
    "own-firewall": "LOCAL_FIREWALL", "other": "INCONSISTENT",
}  # fmt: skip


class TunnelRow(Struct, frozen=True):
    """One line of a table."""

    patterns: Patterns
    verdict: str | None
    because: str


def _read_table(*rows: tuple[str, str | None, str]) -> tuple[TunnelRow, ...]:
    return tuple(TunnelRow(patterns(key), verdict, because) for key, verdict, because in rows)


_ANSWERS = "a small ClientHello ({small_bytes:,} bytes) is answered, one of {large_bytes:,} bytes "

# A small hello, one of the agent's size, and the one that failed again with an MSS of 536, so that
# no packet is large; by ``HelloSymptom``.
HELLO = _read_table(
    ("reset | * | *", "RST_AFTER_CLIENTHELLO",
     "TCP opens; the ClientHello is answered by a reset after {first_ms} ms, before any byte "
     "({tries} tries); {control}"),
    ("closed | * | *", "EDGE_CLOSED_IMMEDIATELY",
     "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
     "({tries} tries); {control}"),
    ("late-3s | * | *", "EDGE_BACKEND_REFUSED",
     "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
     "({tries} tries)"),
    ("late | * | *", "EDGE_BACKEND_TIMEOUT",
     "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
     "({tries} tries)"),
    ("rejected | * | *", "REJECTED_AFTER_OPEN",
     "TCP opens; the ClientHello is answered with {icmp} from {offender} ({tries} tries)"),
    ("foreign | * | *", "NOT_TLS", "the ClientHello is answered by: {foreign}"),
    ("lost | * | answered", "PMTU_BLACKHOLE_OUT",
     "a ClientHello of {small_bytes:,} bytes is not acknowledged ({retrans} retransmissions), in "
     "segments of {segment} bytes it is answered; {bounds}"),
    ("lost | * | *", "CLIENTHELLO_DROPPED",
     "TCP opens; the ClientHello is not acknowledged ({retrans} retransmissions), in segments of "
     "{segment} bytes neither ({tries} tries); {control}"),
    ("gap mute | * | answered", "PMTU_BLACKHOLE_IN",
     "the server has the ClientHello ({acked} bytes acknowledged) and its answer does not come "
     "({ooo} packets arrived out of order); with segments of {segment} bytes it comes; {bounds}"),
    ("gap | * | *", "ANSWER_LOST",
     "the server has the ClientHello and its answer comes with a hole ({ooo} packets arrived out "
     "of order), with segments of {segment} bytes too"),
    ("mute | * | *", "SERVER_SILENT",
     "the ClientHello is acknowledged ({acked} bytes), and {waited_s} s later nothing has come; "
     "{control}"),
    ("answered | lost | answered", "PMTU_BLACKHOLE_OUT",
     _ANSWERS + "is not acknowledged ({retrans} retransmissions); in segments of {segment} bytes "
     "it is answered; {bounds}"),
    ("answered | gap mute | answered", "PMTU_BLACKHOLE_IN",
     _ANSWERS + "arrives and the answer to it does not; with segments of {segment} bytes it does; "
     "{bounds}"),
    ("answered | closed reset late-3s late rejected foreign | answered",
     "LARGE_CLIENTHELLO_FAILS",
     _ANSWERS + "is not ({large}); in segments of {segment} bytes it is answered"),
    ("answered | lost gap mute closed reset late-3s late rejected foreign | *",
     "LARGE_CLIENTHELLO_FAILS",
     _ANSWERS + "is not ({large}), and not in segments of {segment} bytes either ({segmented})"),
    ("answered | answered none | *", None,
     "TLS answers a small ClientHello and one of the agent's size"),
    ("unopened none | * | *", "INCONSISTENT", "the connection does not open every time"),
    ("answered | unopened | *", "INCONSISTENT", "the connection does not open every time"),
)  # fmt: skip


# konnectivity  its certificate (names or signer)    trusted   leads to --ca, and says no more
# router        a router's own default certificate   kas, ignition   by their certificates
# foreign       of another signer, for the name that was asked: an interceptor makes such ones
# stranger      anybody else's                       none      no certificate was shown
WHO = ("konnectivity", "trusted", "router", "kas", "ignition", "foreign", "stranger", "none")
# Names in the certificate request: Konnectivity's signer, others, none named; or no request.
REQUEST = ("signer", "other", "unnamed", "none")
# ``unknown``: the handshake did not get so far (TLS 1.2 without a client certificate).
ALPN = ("h2", "http/1.1", "none", "refused", "unknown")
# The first words after the handshake: a complaint about the missing certificate, another alert,
# HTTP/2 settings, an end, other bytes, nothing. Where no certificate is asked for, the unknown
# method's call is made: the service's own words, the front end's, another gRPC server's, HTTP's (a
# status without gRPC's, or a reset of the stream), nothing.
REPLY = (
    "certificate-required", "alert", "agent-service", "front-end", "other-grpc", "http", "withheld",
    "ended", "not-asked",
)  # fmt: skip

_OURS = "konnectivity trusted"
_ASKS = "signer other unnamed"
# Who answered: WHO | REQUEST | ALPN | REPLY.
IDENTITY = _read_table(
    ("kas | * | * | *", "SNI_FELL_THROUGH_TO_KAS",
     "the certificate is the kube-apiserver's ({subject}, issued by {issuer}); its names do not "
     "include {sni}"),
    ("ignition | * | * | *", "WRONG_SERVICE",
     "the certificate is the ignition server's ({subject})"),
    ("router | * | * | *", "SNI_NOT_ROUTED_DEFAULT_CERT",
     "{subject}, issued by {issuer}, asks for no client certificate; {page}; {control}"),
    (f"{_OURS} | {_ASKS} | http/1.1 | *", "KONN_WRONG_PORT_FRONTEND",
     "the server asks for certificates of {authorities} and, offered h2 and http/1.1, chooses "
     "http/1.1 as only the front-end port does"),
    (f"{_OURS} | none | http/1.1 none refused | *", "ALPN_H2_REFUSED",
     "{subject} is the right certificate, no client certificate is asked for, and ALPN gives "
     "{alpn} instead of h2"),
    (f"{_OURS} | {_ASKS} | none refused | *", "ALPN_H2_REFUSED",
     "{subject} asks for a client certificate, and ALPN gives {alpn}"),
    ("konnectivity trusted foreign stranger | signer | h2 unknown | certificate-required",
     "KONN_REACHED_MTLS",
     "{subject}, issued by {issuer}, asks for a certificate of {authorities} and says that ours is "
     "missing (alert {alert})"),
    (f"{_OURS} | other unnamed | h2 unknown | certificate-required", "KONN_REACHED_MTLS",
     "{subject}, issued by {issuer}, asks for a client certificate and says that ours is missing "
     "(alert {alert})"),
    ("foreign stranger trusted konnectivity | none | h2 | agent-service", "KONN_REACHED_TOKEN",
     "HTTP/2 opens, and the call of an unknown method is answered by AgentService itself: "
     "{grpc_message}"),
    ("* | none | h2 | front-end", "KONN_WRONG_PORT_FRONTEND",
     "{subject}, issued by {issuer}; the server says {grpc_message}, and has ProxyService, which "
     "only the front-end port has"),
    (f"{_OURS} foreign stranger | none | h2 | other-grpc", "NOT_KONNECTIVITY",
     "{subject}, issued by {issuer}; the call of an unknown method is answered by gRPC status "
     "{grpc_status}: {grpc_message}"),
    ("stranger | * | * | *", "WRONG_SERVICE",
     "{subject}, issued by {issuer}, {fit}; certificate request: {authorities}; ALPN gives "
     "{alpn}; {page}"),
    ("foreign | none | * | *", "TLS_INTERCEPTED",
     "{subject}, issued by {issuer}, which is no signer of Konnectivity, asks for no client "
     "certificate; ALPN gives {alpn}; {page}"),
    (f"{_OURS} | none | h2 | http", "H2_ENDS_AT_PROXY",
     "HTTP/2 opens without a certificate request, and the call is answered by {answer}"),
    (f"{_OURS} | none | h2 | withheld", "H2_ANSWER_WITHHELD",
     "HTTP/2 opens; 10 s after the call nothing has come"),
    (f"{_OURS} | none | h2 | ended", "H2_ENDED",
     "TLS is agreed, and the connection ends: {ended}"),
    ("none | * | * | alert", "TLS_REFUSED", "the ClientHello is answered by alert {alert}"),
    ("* | * | * | *", "UNEXPLAINED",
     "{subject}, issued by {issuer}; certificate request: {authorities}; ALPN {alpn}; then "
     "{reply}"),
)  # fmt: skip

_H2_AFTER = "the client certificate is accepted; "

# What the call of the unknown method got, where a client certificate was given.
CALLS = _read_table(
    ("agent-service", "KONN_H2_OK",
     "the client certificate is accepted, and the call of an unknown method is answered by "
     "AgentService itself: {grpc_message}"),
    ("alert", "KONN_CLIENT_CERT_REJECTED",
     "with the client certificate the server ends the handshake by alert {alert}; without one it "
     "asks for a certificate of {authorities}"),
    ("front-end", "KONN_WRONG_PORT_FRONTEND",
     _H2_AFTER + "the server says {grpc_message}, and has ProxyService, which only the front-end "
     "port has"),
    ("http", "H2_ENDS_AT_PROXY", _H2_AFTER + "the call is answered by {answer}"),
    ("withheld", "H2_ANSWER_WITHHELD", _H2_AFTER + "10 s after the call nothing has come"),
    ("other-grpc", "NOT_KONNECTIVITY", _H2_AFTER + "another gRPC service answers: {grpc_message}"),
    ("ended", "H2_ENDED", "after the handshake with the client certificate: {ended}"),
)  # fmt: skip


class _Unknown:
    """A value that was not measured; it takes any format."""

    def __format__(self, _format: str) -> str:
        return "?"


class _Words(dict[str, object]):
    def __missing__(self, key: str) -> _Unknown:
        return _Unknown()


def fill(text: str, evidence: Mapping[str, object]) -> str:
    """Fill the words in braces; a value that was not measured is ``?``.

    A part between semicolons that has no words then is left out.
    """
    parts = (part.format_map(_Words(evidence)) for part in text.split("; "))
    return "; ".join(filter(None, parts))


def names_words(text: str) -> set[str]:
    """List the words in braces."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}

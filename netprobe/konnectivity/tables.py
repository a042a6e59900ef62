"""The decisions: what tries looked like → a verdict. The first row that matches wins, ``*`` is any.

``because`` is the evidence as a sentence; its words are filled with what was measured. A verdict of
None means that nothing failed here, and the next stage is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netprobe.model.decision import Patterns, patterns


@dataclass(frozen=True, slots=True)
class TunnelRow:
    """One line of a table."""

    patterns: Patterns
    verdict: str | None
    because: str


def _row(key: str, verdict: str | None, because: str) -> TunnelRow:
    return TunnelRow(patterns(key), verdict, because)


# Connects that all looked alike, by ``TcpSymptom``.
TCP: tuple[TunnelRow, ...] = (
    _row("opened", None, "TCP to {to} opens in {rtt} ms"),
    _row("silent", "TCP_FILTERED", "{tries} connects to {to}: {syns} SYNs, no answer at all"),
    _row("refused", "TCP_REFUSED", "{to} answers SYNs with a reset after {rtt} ms"),
    _row("rejected", "ICMP_REJECT", "{offender} answers SYNs to {to} with {icmp}"),
    _row(
        "host-down",
        "HOST_UNREACHABLE",
        "host unreachable after {rtt} ms, said by {offender}: nobody answers for {address} there",
    ),
    _row("unrouted", "ROUTER_HAS_NO_ROUTE", "{offender} answers SYNs to {to} with {icmp}"),
    _row("no-route", "NO_ROUTE", "the worker's own kernel refuses to send: {failure}"),
    _row(
        "own-firewall", "LOCAL_FIREWALL", "no SYN to {to} leaves the worker: the kernel counts none"
    ),
    _row("other", "INCONSISTENT", "connects to {to} end with {failure}"),
)


_ANSWERS = "a small ClientHello ({small_bytes:,} bytes) is answered, one of {large_bytes:,} bytes "

# A small hello, one of the agent's size, and the one that failed again with an MSS of 536, so that
# no packet is large; by ``HelloSymptom``.
HELLO: tuple[TunnelRow, ...] = (
    _row(
        "reset | * | *", "RST_AFTER_CLIENTHELLO",
        "TCP opens; the ClientHello is answered by a reset after {first_ms} ms, before any byte "
        "({tries} tries){control}",
    ),
    _row(
        "closed | * | *", "EDGE_CLOSED_IMMEDIATELY",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries){control}",
    ),
    _row(
        "late-3s | * | *", "EDGE_BACKEND_REFUSED",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries)",
    ),
    _row(
        "late | * | *", "EDGE_BACKEND_TIMEOUT",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries)",
    ),
    _row(
        "rejected | * | *", "REJECTED_AFTER_OPEN",
        "TCP opens; the ClientHello is answered with {icmp} from {offender} ({tries} tries)",
    ),
    _row(
        "foreign | * | *", "NOT_TLS", "the ClientHello is answered by: {foreign}"
    ),
    _row(
        "lost | * | answered", "PMTU_BLACKHOLE_OUT",
        "a ClientHello of {small_bytes:,} bytes is not acknowledged ({retrans} retransmissions), "
        "in segments of {segment} bytes it is answered; {bounds}",
    ),
    _row(
        "lost | * | *", "CLIENTHELLO_DROPPED",
        "TCP opens; the ClientHello is not acknowledged ({retrans} retransmissions), in "
        "segments of {segment} bytes neither ({tries} tries){control}",
    ),
    _row(
        "gap mute | * | answered", "PMTU_BLACKHOLE_IN",
        "the server has the ClientHello ({acked} bytes acknowledged) and its answer does not come "
        "({ooo} packets arrived out of order); with segments of {segment} bytes it comes; {bounds}",
    ),
    _row(
        "gap | * | *", "ANSWER_LOST",
        "the server has the ClientHello and its answer comes with a hole ({ooo} packets arrived "
        "out of order), with segments of {segment} bytes too",
    ),
    _row(
        "mute | * | *", "SERVER_SILENT",
        "the ClientHello is acknowledged ({acked} bytes), and {waited_s} s later nothing has come",
    ),
    _row(
        "answered | lost | answered", "PMTU_BLACKHOLE_OUT",
        _ANSWERS + "is not acknowledged ({retrans} retransmissions); in segments of {segment} "
        "bytes it is answered; {bounds}",
    ),
    _row(
        "answered | gap mute | answered", "PMTU_BLACKHOLE_IN",
        _ANSWERS + "arrives and the answer to it does not; with segments of {segment} bytes it "
        "does; {bounds}",
    ),
    _row(
        "answered | lost gap mute closed reset late-3s late rejected foreign | *",
        "LARGE_CLIENTHELLO_FAILS",
        _ANSWERS + "is not ({large}), and not in segments of {segment} bytes either ({segmented})",
    ),
    _row(
        "answered | answered none | *", None,
        "TLS answers a small ClientHello and one of the agent's size",
    ),
    _row(
        "unopened none | * | *", "INCONSISTENT", "the connection does not open every time"
    ),
    _row(
        "answered | unopened | *", "INCONSISTENT", "the connection does not open every time"
    ),
)  # fmt: skip


# konnectivity  its certificate (names or signer)    trusted   leads to --ca, and says no more
# router        a router's own default certificate   kas, ignition   by their certificates
# foreign       anybody else's                       none      no certificate was shown
WHO = ("konnectivity", "trusted", "router", "kas", "ignition", "foreign", "none")
# Names in the certificate request: Konnectivity's signer, others, none named; or no request.
REQUEST = ("signer", "other", "unnamed", "none")
# ``unknown``: the handshake did not get so far (TLS 1.2 without a client certificate).
ALPN = ("h2", "http/1.1", "none", "refused", "unknown")
# The first words after the handshake: a complaint about the missing certificate, another alert,
# HTTP/2 settings, an end, other bytes, nothing. Where no certificate is asked for, the unknown
# method's call is made: the service's own words, another gRPC server's, HTTP's, nothing.
REPLY = (
    "certificate-required", "alert", "agent-service", "other-grpc", "http", "withheld", "ended",
    "not-asked",
)  # fmt: skip

_OURS = "konnectivity trusted"
_ASKS = "signer other unnamed"
# Who answered: WHO | REQUEST | ALPN | REPLY.
IDENTITY: tuple[TunnelRow, ...] = (
    _row(
        "kas | * | * | *", "SNI_FELL_THROUGH_TO_KAS",
        "the certificate is the kube-apiserver's ({subject}, issued by {issuer}); its names do not "
        "include {sni}",
    ),
    _row(
        "ignition | * | * | *", "WRONG_SERVICE",
        "the certificate is the ignition server's ({subject})",
    ),
    _row(
        "router | * | * | *", "SNI_NOT_ROUTED_DEFAULT_CERT",
        "{subject}, issued by {issuer}, asks for no client certificate{page}{control}",
    ),
    _row(
        f"{_OURS} | {_ASKS} | http/1.1 | *", "KONN_WRONG_PORT_FRONTEND",
        "the server asks for certificates of {authorities} and, offered h2 and http/1.1, chooses "
        "http/1.1 as only the front-end port does",
    ),
    _row(
        f"{_OURS} | none | http/1.1 none refused | *", "ALPN_H2_REFUSED",
        "{subject} is the right certificate, no client certificate is asked for, and ALPN gives "
        "{alpn} instead of h2",
    ),
    _row(
        f"{_OURS} | {_ASKS} | none refused | *", "ALPN_H2_REFUSED",
        "{subject} asks for a client certificate, and ALPN gives {alpn}",
    ),
    _row(
        "konnectivity trusted foreign | signer | h2 unknown | certificate-required",
        "KONN_REACHED_MTLS",
        "{subject}, issued by {issuer}, asks for a certificate of {authorities} and says that ours "
        "is missing (alert {alert})",
    ),
    _row(
        f"{_OURS} | other unnamed | h2 unknown | certificate-required",
        "KONN_REACHED_MTLS",
        "{subject}, issued by {issuer}, asks for a client certificate and says that ours is "
        "missing (alert {alert})",
    ),
    _row(
        "foreign trusted konnectivity | none | h2 | agent-service",
        "KONN_REACHED_TOKEN",
        "HTTP/2 opens, and the call of an unknown method is answered by AgentService itself: "
        "{grpc_message}",
    ),
    _row(
        "foreign | none | * | *", "TLS_INTERCEPTED",
        "{subject}, issued by {issuer}, which is no signer of Konnectivity, asks for no client "
        "certificate; ALPN gives {alpn}{page}",
    ),
    _row(
        f"{_OURS} | none | h2 | http", "H2_ENDS_AT_PROXY",
        "HTTP/2 opens without a certificate request, and the call is answered by HTTP {status} "
        "without a gRPC status",
    ),
    _row(
        f"{_OURS} | none | h2 | withheld", "H2_ANSWER_WITHHELD",
        "HTTP/2 opens; 10 s after the call nothing has come",
    ),
    _row(
        f"{_OURS} | none | h2 | other-grpc", "NOT_KONNECTIVITY",
        "the call of an unknown method is answered by gRPC status {grpc_status}: {grpc_message}",
    ),
    _row(
        f"{_OURS} | none | h2 | ended", "H2_ENDED",
        "after the handshake the connection ends: {ended}",
    ),
    _row(
        "none | * | * | alert", "TLS_REFUSED",
        "the ClientHello is answered by alert {alert}",
    ),
    _row(
        "* | * | * | *", "UNEXPLAINED",
        "{subject}, issued by {issuer}; certificate request: {authorities}; ALPN {alpn}; then "
        "{reply}",
    ),
)  # fmt: skip

_H2_AFTER = "the client certificate is accepted; "

# What the call of the unknown method got, where a client certificate was given.
CALLS: tuple[TunnelRow, ...] = (
    _row(
        "agent-service", "KONN_H2_OK",
        "the client certificate is accepted, and the call of an unknown method is answered by "
        "AgentService itself: {grpc_message}",
    ),
    _row(
        "alert", "KONN_CLIENT_CERT_REJECTED",
        "with the client certificate the server ends the handshake by alert {alert}; without one "
        "it asks for a certificate of {authorities}",
    ),
    _row("http", "H2_ENDS_AT_PROXY", _H2_AFTER + "the call is answered by HTTP {status}"),
    _row("withheld", "H2_ANSWER_WITHHELD", _H2_AFTER + "10 s after the call nothing has come"),
    _row(
        "other-grpc", "NOT_KONNECTIVITY",
        _H2_AFTER + "another gRPC service answers: {grpc_message}",
    ),
    _row("ended", "H2_ENDED", "after the handshake with the client certificate: {ended}"),
)  # fmt: skip


class _Unknown:
    """What was not measured; it takes any format."""

    def __format__(self, _format: str) -> str:
        return "?"


class _Words(dict[str, object]):
    def __missing__(self, key: str) -> _Unknown:
        return _Unknown()


def fill(text: str, evidence: Mapping[str, object]) -> str:
    """Fill the words in braces; what was not measured is ``?``."""
    return text.format_map(_Words(evidence))

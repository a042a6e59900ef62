"""The decisions: what tries looked like → a verdict. The first row that matches wins, ``*`` is any.

``because`` is the evidence as a sentence; its words are filled with what was measured. A verdict of
None means that nothing failed here, and the next stage is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netprobe.konnectivity.sights import HelloSight, TcpSight

ANY = ("*",)


@dataclass(frozen=True, slots=True)
class TcpRow:
    """Connects that all looked alike."""

    sight: TcpSight
    verdict: str | None
    because: str


TCP: tuple[TcpRow, ...] = (
    TcpRow("opened", None, "TCP to {to} opens in {rtt} ms"),
    TcpRow("silent", "TCP_FILTERED", "{tries} connects to {to}: {syns} SYNs, no answer at all"),
    TcpRow("refused", "TCP_REFUSED", "{to} answers SYNs with a reset after {rtt} ms"),
    TcpRow("rejected", "ICMP_REJECT", "{offender} answers SYNs to {to} with {icmp}"),
    TcpRow(
        "host-down",
        "HOST_UNREACHABLE",
        "host unreachable after {rtt} ms, said by {offender}: nobody answers for {address} there",
    ),
    TcpRow("unrouted", "ROUTER_HAS_NO_ROUTE", "{offender} answers SYNs to {to} with {icmp}"),
    TcpRow("no-route", "NO_ROUTE", "the worker's own kernel refuses to send: {failure}"),
    TcpRow(
        "own-firewall", "LOCAL_FIREWALL", "no SYN to {to} leaves the worker: the kernel counts none"
    ),
    TcpRow("other", "INCONSISTENT", "connects to {to} end with {failure}"),
)


@dataclass(frozen=True, slots=True)
class HelloRow:
    """Tries of three kinds: a small hello, one of the agent's size, and that in small segments."""

    small: tuple[HelloSight | str, ...]
    large: tuple[HelloSight | str, ...]
    segmented: tuple[HelloSight | str, ...]
    verdict: str | None
    because: str


_ANSWERS = "a small ClientHello ({small_bytes:,} bytes) is answered, one of {large_bytes:,} bytes "

# ``segmented`` repeats the hello that failed with an MSS of 536, so that no packet is large.
HELLO: tuple[HelloRow, ...] = (
    HelloRow(
        ("reset",), ANY, ANY, "RST_AFTER_CLIENTHELLO",
        "TCP opens; the ClientHello is answered by a reset after {first_ms} ms, before any byte "
        "({tries} tries){control}",
    ),
    HelloRow(
        ("closed",), ANY, ANY, "EDGE_CLOSED_IMMEDIATELY",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries){control}",
    ),
    HelloRow(
        ("late-3s",), ANY, ANY, "EDGE_BACKEND_REFUSED",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries)",
    ),
    HelloRow(
        ("late",), ANY, ANY, "EDGE_BACKEND_TIMEOUT",
        "TCP opens; the connection is closed {first_ms} ms after the ClientHello, without a byte "
        "({tries} tries)",
    ),
    HelloRow(
        ("rejected",), ANY, ANY, "REJECTED_AFTER_OPEN",
        "TCP opens; the ClientHello is answered with {icmp} from {offender} ({tries} tries)",
    ),
    HelloRow(
        ("foreign",), ANY, ANY, "NOT_TLS", "the ClientHello is answered by: {foreign}"
    ),
    HelloRow(
        ("lost",), ANY, ("answered",), "PMTU_BLACKHOLE_OUT",
        "a ClientHello of {small_bytes:,} bytes is not acknowledged ({retrans} retransmissions), "
        "in segments of {segment} bytes it is answered; {bounds}",
    ),
    HelloRow(
        ("lost",), ANY, ANY, "CLIENTHELLO_DROPPED",
        "TCP opens; the ClientHello is not acknowledged ({retrans} retransmissions), in "
        "segments of {segment} bytes neither ({tries} tries){control}",
    ),
    HelloRow(
        ("gap", "mute"), ANY, ("answered",), "PMTU_BLACKHOLE_IN",
        "the server has the ClientHello ({acked} bytes acknowledged) and its answer does not come "
        "({ooo} packets arrived out of order); with segments of {segment} bytes it comes; {bounds}",
    ),
    HelloRow(
        ("gap",), ANY, ANY, "ANSWER_LOST",
        "the server has the ClientHello and its answer comes with a hole ({ooo} packets arrived "
        "out of order), with segments of {segment} bytes too",
    ),
    HelloRow(
        ("mute",), ANY, ANY, "SERVER_SILENT",
        "the ClientHello is acknowledged ({acked} bytes), and {waited_s} s later nothing has come",
    ),
    HelloRow(
        ("answered",), ("lost",), ("answered",), "PMTU_BLACKHOLE_OUT",
        _ANSWERS + "is not acknowledged ({retrans} retransmissions); in segments of {segment} "
        "bytes it is answered; {bounds}",
    ),
    HelloRow(
        ("answered",), ("gap", "mute"), ("answered",), "PMTU_BLACKHOLE_IN",
        _ANSWERS + "arrives and the answer to it does not; with segments of {segment} bytes it "
        "does; {bounds}",
    ),
    HelloRow(
        ("answered",), ("lost", "gap", "mute", "closed", "reset", "late-3s", "late", "rejected",
                        "foreign"), ANY,
        "LARGE_CLIENTHELLO_FAILS",
        _ANSWERS + "is not ({large}), and not in segments of {segment} bytes either ({segmented})",
    ),
    HelloRow(
        ("answered",), ("answered", "none"), ANY, None,
        "TLS answers a small ClientHello and one of the agent's size",
    ),
    HelloRow(
        ("unopened", "none"), ANY, ANY, "INCONSISTENT", "the connection does not open every time"
    ),
    HelloRow(
        ("answered",), ("unopened",), ANY, "INCONSISTENT", "the connection does not open every time"
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """Who answered. ``call``: what the unknown method got, where no certificate was asked for."""

    who: tuple[str, ...]
    request: tuple[str, ...]
    alpn: tuple[str, ...]
    reply: tuple[str, ...]
    verdict: str | None
    because: str


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

_OURS = ("konnectivity", "trusted")
_ASKS = ("signer", "other", "unnamed")

IDENTITY: tuple[IdentityRow, ...] = (
    IdentityRow(
        ("kas",), ANY, ANY, ANY, "SNI_FELL_THROUGH_TO_KAS",
        "the certificate is the kube-apiserver's ({subject}, issued by {issuer}); its names do not "
        "include {sni}",
    ),
    IdentityRow(
        ("ignition",), ANY, ANY, ANY, "WRONG_SERVICE",
        "the certificate is the ignition server's ({subject})",
    ),
    IdentityRow(
        ("router",), ANY, ANY, ANY, "SNI_NOT_ROUTED_DEFAULT_CERT",
        "{subject}, issued by {issuer}, asks for no client certificate{page}{control}",
    ),
    IdentityRow(
        _OURS, _ASKS, ("http/1.1",), ANY, "KONN_WRONG_PORT_FRONTEND",
        "the server asks for certificates of {authorities} and, offered h2 and http/1.1, chooses "
        "http/1.1 as only the front-end port does",
    ),
    IdentityRow(
        _OURS, ("none",), ("http/1.1", "none", "refused"), ANY, "ALPN_H2_REFUSED",
        "{subject} is the right certificate, no client certificate is asked for, and ALPN gives "
        "{alpn} instead of h2",
    ),
    IdentityRow(
        _OURS, _ASKS, ("none", "refused"), ANY, "ALPN_H2_REFUSED",
        "{subject} asks for a client certificate, and ALPN gives {alpn}",
    ),
    IdentityRow(
        ("konnectivity", "trusted", "foreign"), ("signer",), ("h2", "unknown"),
        ("certificate-required",), "KONN_REACHED_MTLS",
        "{subject}, issued by {issuer}, asks for a certificate of {authorities} and says that ours "
        "is missing (alert {alert})",
    ),
    IdentityRow(
        _OURS, ("other", "unnamed"), ("h2", "unknown"), ("certificate-required",),
        "KONN_REACHED_MTLS",
        "{subject}, issued by {issuer}, asks for a client certificate and says that ours is "
        "missing (alert {alert})",
    ),
    IdentityRow(
        ("foreign", "trusted", "konnectivity"), ("none",), ("h2",), ("agent-service",),
        "KONN_REACHED_TOKEN",
        "HTTP/2 opens, and the call of an unknown method is answered by AgentService itself: "
        "{grpc_message}",
    ),
    IdentityRow(
        ("foreign",), ("none",), ANY, ANY, "TLS_INTERCEPTED",
        "{subject}, issued by {issuer}, which is no signer of Konnectivity, asks for no client "
        "certificate; ALPN gives {alpn}{page}",
    ),
    IdentityRow(
        _OURS, ("none",), ("h2",), ("http",), "H2_ENDS_AT_PROXY",
        "HTTP/2 opens without a certificate request, and the call is answered by HTTP {status} "
        "without a gRPC status",
    ),
    IdentityRow(
        _OURS, ("none",), ("h2",), ("withheld",), "H2_ANSWER_WITHHELD",
        "HTTP/2 opens; 10 s after the call nothing has come",
    ),
    IdentityRow(
        _OURS, ("none",), ("h2",), ("other-grpc",), "NOT_KONNECTIVITY",
        "the call of an unknown method is answered by gRPC status {grpc_status}: {grpc_message}",
    ),
    IdentityRow(
        _OURS, ("none",), ("h2",), ("ended",), "H2_ENDED",
        "after the handshake the connection ends: {ended}",
    ),
    IdentityRow(
        ("none",), ANY, ANY, ("alert",), "TLS_REFUSED",
        "the ClientHello is answered by alert {alert}",
    ),
    IdentityRow(
        ANY, ANY, ANY, ANY, "UNEXPLAINED",
        "{subject}, issued by {issuer}; certificate request: {authorities}; ALPN {alpn}; then "
        "{reply}",
    ),
)  # fmt: skip


def decide_tcp(sight: TcpSight) -> TcpRow:
    """The row of connects."""
    return next(row for row in TCP if row.sight == sight)


def decide_hello(small: HelloSight, large: HelloSight, segmented: HelloSight) -> HelloRow:
    """The row of hellos."""
    return next(
        row
        for row in HELLO
        if _fits(row.small, small) and _fits(row.large, large) and _fits(row.segmented, segmented)
    )


def decide_identity(who: str, request: str, alpn: str, reply: str) -> IdentityRow:
    """The row of who answered."""
    return next(
        row
        for row in IDENTITY
        if _fits(row.who, who)
        and _fits(row.request, request)
        and _fits(row.alpn, alpn)
        and _fits(row.reply, reply)
    )


def _fits(wanted: tuple[str, ...], word: str) -> bool:
    return wanted == ANY or word in wanted


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

"""The symptom of a try in one word, for the tables; numbers stay in the evidence."""

from __future__ import annotations

from typing import Literal

from netprobe.model.icmp import icmp_words, is_late
from netprobe.model.konnectivity import Opened
from netprobe.protocols.services.tls_talk import Attempt

# A connect:
TcpSymptom = Literal[
    "opened", "refused", "rejected", "unrouted", "host-down", "no-route", "own-firewall", "silent",
    "other",
]  # fmt: skip
# A ClientHello:
#   answered  TLS came back                   closed    ended at once, no byte
#   reset     reset at once, no byte          late-3s   ended after about 3 s, no byte
#   late      ended later, no byte            lost      our bytes are not acknowledged
#   gap       later bytes came, first did not mute      acknowledged, and nothing
#   rejected  an ICMP error came instead      foreign   an answer that is not TLS
#   unopened  the connection did not open     none      not tried
HelloSymptom = Literal[
    "answered", "closed", "reset", "late-3s", "late", "lost", "gap", "mute", "rejected", "foreign",
    "unopened", "none",
]  # fmt: skip

# An edge without an endpoint closes within milliseconds of the hello. HAProxy's dead back end takes
# 3 tries 1 s apart; a black-holed one 15 s or more. Between them lies a round trip.
AT_ONCE_MS = 1500.0
REFUSED_MS = 4500.0


def tcp_symptom(opened: Opened) -> TcpSymptom:
    """Give the symptom of a connect."""
    failure = opened.failure
    if failure is None:
        return "opened"
    if failure == "not-permitted" or (failure == "no-answer" and opened.left is False):
        return "own-firewall"
    if failure in ("no-answer", "timed-out"):
        return "silent"
    if opened.left is False:
        return "no-route"
    if failure == "host-unreachable" and is_late(opened.elapsed_ms):
        return "host-down"
    if opened.icmp is not None:
        word = icmp_words(*opened.icmp[:3]).word
        return "unrouted" if word == "net-unreach" else "rejected"
    if failure == "refused":
        return "refused"
    # Kernels before 5.8 give no ICMP facts of TCP: the errno is what is left.
    return "rejected" if failure.endswith("-unreachable") else "other"


def hello_symptom(attempt: Attempt) -> HelloSymptom:
    """Give the symptom of a ClientHello."""
    if attempt.failure is not None and attempt.first == "failed":
        return "unopened"
    if attempt.seen.foreign is not None:
        return "foreign"
    if attempt.first == "bytes" and not attempt.stalled:
        return "answered"
    if attempt.icmp is not None or attempt.soft is not None:
        return "rejected"
    if attempt.first in ("fin", "reset"):
        return _read_end(attempt)
    return _read_silence(attempt)


def _read_end(attempt: Attempt) -> HelloSymptom:
    if attempt.first_ms < AT_ONCE_MS:
        return "reset" if attempt.first == "reset" else "closed"
    return "late-3s" if attempt.first_ms < REFUSED_MS else "late"


def _read_silence(attempt: Attempt) -> HelloSymptom:
    if attempt.tcp.get("unacked"):
        return "lost"
    return "gap" if attempt.tcp.get("rcv_ooopack") else "mute"

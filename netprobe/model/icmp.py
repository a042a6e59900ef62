"""ICMP errors in words, and what the time of one says.

Types and codes: RFC 792, RFC 1812 section 5.2.7.1 and RFC 4443 section 3.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class IcmpWords(NamedTuple):
    """An ICMP error as nmap's word for it, and as a phrase."""

    word: str
    phrase: str


_PROHIBITED = IcmpWords("admin-prohibited", "administratively prohibited")
_PORT = IcmpWords("port-unreach", "port unreachable")
# By family, type and code.
ICMP_ERRORS: Final = {
    (4, 3, 0): IcmpWords("net-unreach", "network unreachable"),
    (4, 3, 1): IcmpWords("host-unreach", "host unreachable"),
    (4, 3, 2): IcmpWords("proto-unreach", "protocol unreachable"),
    (4, 3, 3): _PORT,
    (4, 3, 9): IcmpWords("net-prohibited", "network prohibited"),
    (4, 3, 10): IcmpWords("host-prohibited", "host prohibited"),
    (4, 3, 13): _PROHIBITED,
    (4, 11, 0): IcmpWords("time-exceeded", "time exceeded"),
    (6, 1, 0): IcmpWords("net-unreach", "no route"),
    (6, 1, 1): _PROHIBITED,
    (6, 1, 3): IcmpWords("host-unreach", "address unreachable"),
    (6, 1, 4): _PORT,
    (6, 1, 5): IcmpWords("policy-fail", "source address failed policy"),
    (6, 1, 6): IcmpWords("reject-route", "route rejected"),
    (6, 4, 1): IcmpWords("proto-unreach", "protocol unreachable"),
    (6, 3, 0): IcmpWords("time-exceeded", "time exceeded"),
}


def icmp_words(kind: int, code: int, offender: str) -> IcmpWords:
    """Give the words of an error that the address ``offender`` sent, else its numbers."""
    family = 6 if ":" in offender else 4
    unknown = IcmpWords(f"icmp {kind}/{code}", "an ICMP error")
    return ICMP_ERRORS.get((family, kind, code), unknown)


# A kernel gives up a neighbour that does not answer after 3.06 s. A packet that joins its queue
# late waits less, so about half of that counts (docs/network-facts.md, section 1). What refuses
# earlier, refuses by rule.
HOST_DOWN_MS: Final = 1500


def is_late(elapsed_ms: float | None) -> bool:
    """Tell whether "host unreachable" came so late that it is about a dead neighbour."""
    return (elapsed_ms or 0) >= HOST_DOWN_MS

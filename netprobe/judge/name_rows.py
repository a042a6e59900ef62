"""What name servers say of the installation's names, in words: one row for each kind of trouble.

Before the installation a name that is missing is a warning: it may not be made yet. With ``--live``
everything is supposed to be there, and a row with a ``reason`` is a failure.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class NameRow(Struct, frozen=True):
    """One kind of trouble. ``reason``: of a failure with ``--live``; None: never a failure.

    ``early`` says why it may be no failure before the installation.
    """

    reason: str | None
    said: str
    to_do: str
    early: str = ""


_NOT_YET = "before the installation that is normal, with --live it is a failure"
_BEFORE_BOOT = "with --live it is a failure"

ROWS: Final[dict[str, NameRow]] = {
    "not-found": NameRow(
        "name-not-found",
        "{server} says NXDOMAIN for {name}: it does not exist there",
        "create its record before hosts need it, or correct the setting {setting}",
        _NOT_YET,
    ),
    "no-record": NameRow(
        "name-without-address",
        "{server} knows {name}, and has no address for it",
        "add its address (A or AAAA)",
        _NOT_YET,
    ),
    "server-failure": NameRow(
        "name-server-failure",
        "{server} says SERVFAIL for {name}: it could not find out itself",
        "see its log: a forwarder or the zone's own server that does not answer it, a zone that "
        "does not load, or DNSSEC",
        _BEFORE_BOOT,
    ),
    "server-refuses": NameRow(
        "name-server-refuses",
        "{server} says REFUSED for {name}: it does not serve this host, or not this name",
        "let this host ask it (allow-query, allow-recursion, access-control), or give it the zone",
        _BEFORE_BOOT,
    ),
    "unanswered": NameRow(
        "name-unanswered",
        "{server} answers other questions, and not the one for {name} (silence, not NXDOMAIN)",
        "look for a forwarder of it that does not answer, and for a filter of names on the way",
        _BEFORE_BOOT,
    ),
    "odd-answer": NameRow(
        "name-odd-answer",
        "{server} answers {said} for {name}",
        "see its log",
        _BEFORE_BOOT,
    ),
    "cut": NameRow(
        "name-cut-off",
        "{server} cuts its answer for {name} off over UDP ({size} bytes came), and gives none over "
        "TCP",
        "allow tcp 53 to {server}",
        _BEFORE_BOOT,
    ),
    "other-address": NameRow(
        "name-other-address",
        "{server} says {addresses} for {name}; the inventory has {expected}",
        "correct the record, or the inventory's addresses",
        _BEFORE_BOOT,
    ),
    "wildcard": NameRow(
        None,
        "{server} answers {addresses} for any name in {domain}, so that its answer for {name} "
        "proves nothing",
        "take the wildcard record away, or name it in a setting (apps-hostname=*.{domain}) if it "
        "is meant",
    ),
    "lost": NameRow(
        None,
        "{server}'s answer of {size} bytes for {name} does not come over UDP, while a question for "
        "1,232 bytes at most is answered and TCP brings it whole: its fragments vanish on the way",
        "let IP fragments from {server} through, or limit its UDP answers to 1,232 bytes "
        "(max-udp-size, edns-packet-max)",
    ),
    "edns": NameRow(
        None,
        "{server} answers plain questions for {name}, and none with EDNS",
        "let questions with EDNS through: a firewall on the way or an old server drops them",
    ),
    "stale": NameRow(
        None,
        "{server} says {answer} for {name}, and {other} says {other_answer}; {server} has serial "
        "{serial} of {domain}, and {other} has {other_serial}",
        "see why the one with the lower serial is not updated (notify, allow-transfer, tcp 53 "
        "between the servers)",
    ),
    "servers-differ": NameRow(
        None,
        "{server} says {answer} for {name}, and {other} says {other_answer} to the same host",
        "make both servers give one answer: hosts ask either",
    ),
    "split": NameRow(
        None,
        "{server} says {answer} for {name} to this host, and {other_answer} to {other} (split "
        "horizon)",
        "if that is not meant, see its views and the addresses that each is for",
    ),
    "other-resolver": NameRow(
        None,
        "the resolv.conf of the source names {other}, which is no name server of the inventory: "
        "its programs ask that one",
        "correct that resolv.conf, or give {other} a host with this role in the inventory",
    ),
    "mute-resolver": NameRow(
        None,
        "the resolv.conf of the source names {other}, which answers other questions over "
        "{protocol}, and none for these names: its programs wait for them in vain",
        "look for a forwarder of it that does not answer, or for a filter of names on the way",
    ),
    "dead-resolver": NameRow(
        None,
        "the resolv.conf of the source names {other}, which answers no question at all over "
        "{protocol}: every name takes seconds longer or fails",
        "take it out of that resolv.conf, or mend it and the way to it",
    ),
}  # fmt: skip

# By what the server said of a name that has no address.
SAID: Final[dict[str, str]] = {
    "NXDOMAIN": "not-found",
    "no record": "no-record",
    "SERVFAIL": "server-failure",
    "REFUSED": "server-refuses",
    "no answer": "unanswered",
}

"""What to do about flows of which nothing is known, by the reason."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding
from netprobe.report.run.overview import OWNER_WORDS

_UNTESTED: Final[Mapping[str, str]] = {
    "no-vantage": "Mend the way onto the host, as said above, or carry a bundle there "
    "(netprobe bundle).",
    "other-machine": "Find out who has the address beside the host, and give one of them another "
    "one; then run again with --resume FILE.",
    "mtu-black-hole": "Let ICMP fragmentation-needed (IPv6: packet-too-big) through on the way to "
    "the host, or raise the MTU there; then run again with --resume FILE.",
    "no-python": "Install Python 3.6 or newer there, or let netprobe send one (netprobe runtime).",
    "no-permission": "Give its agent root, in the way that the sentence above names.",
    "no-source-address": "Correct the source addresses of the host in the inventory.",
    "other-family": "Nothing, unless the name should have an address of this family.",
    "other-run": "Wait for the other run to end, and run again.",
    "holder-changed": "Find out which processes take turns at the port, and run again.",
    "stopped": "Run again with --resume FILE.",
    "row-stopped": "First what stops the row's own port, as its result says; then run again with "
    "--rehearse or --quality, as before.",
    "no-samples": "See why nothing comes back: echo requests may be filtered. Then run again with "
    "--quality.",
    "netprobe-fault": "Report it with the sentence above; --resume FILE asks these flows again.",
    "maintenance": "Nothing, until its maintenance ends.",
    "agent-slow": "Run again with --resume FILE when the host has less to do.",
    **dict.fromkeys(
        ("no-results", "results-cut", "not-asked", "no-overlap"),
        "Let the host carry out its bundle again, or make the next round (netprobe bundle --next); "
        "in a cluster run again.",
    ),
}
# What ping adds to the bytes that it is asked for: headers of IP and ICMP.
_PING_HEADERS, _PING_HEADERS_6 = 28, 48
_LOOK_AT_HOST = (
    "See what the host says to netprobe check --hosts, then run again with --resume FILE."
)


# Starts that may have failed because large packets vanish.
_HANGING: Final = ("mtu-black-hole", "start-timeout")


def choose_to_do(
    reason: str, sources: Container[str] = (), findings: Iterable[Finding] = ()
) -> str:
    """Give what to do about flows at which nobody could look; the run's findings may say more of
    their sources."""
    words = _UNTESTED.get(reason, _LOOK_AT_HOST)
    holes = [one for one in findings if one.kind == "mtu" and _is_at(one, sources)]
    if reason in _HANGING and holes:
        return f"{_word_hole(holes[0], sources)} {words}"
    return words


def word_wait(awaited: Finding) -> str:
    """Word what to do about flows that wait for a finding, and who has to act for it."""
    owner = OWNER_WORDS[owner_of(awaited)]
    again = "then run again with --rehearse or --quality, as before."
    return f"Finding {awaited.number} first ({owner}), {again}"


def _is_at(finding: Finding, hosts: Container[str]) -> bool:
    return any(one.source in hosts or one.destination in hosts for one in finding.members)


def _word_hole(finding: Finding, hosts: Container[str]) -> str:
    """Word a hole that others have measured at a host, and the commands that show it."""
    first = finding.members[0]
    size, number = first.path_mtu_bytes or 0, finding.number
    words = f"Others measured what stops ssh, too: large packets vanish there (finding {number})."
    if first.destination not in hosts or not size:
        return words
    bytes_ = size - (_PING_HEADERS_6 if ":" in first.address else _PING_HEADERS)
    return (
        f"{words} `ping -M do -s {bytes_} {first.address}` on {first.source} gets an answer, and "
        f"with -s {bytes_ + 1} it gets none."
    )

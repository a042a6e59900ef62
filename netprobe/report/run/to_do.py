"""What to do about flows at which nobody could look, by the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_UNTESTED: Final[Mapping[str, str]] = {
    "no-vantage": "Mend the way onto the host, as said above, or carry a bundle there "
    "(netprobe bundle).",
    "no-python": "Install Python 3.6 or newer there, or let netprobe send one (netprobe runtime).",
    "no-permission": "Give its agent root, in the way that the sentence above names.",
    "no-source-address": "Correct the source addresses of the host in the inventory.",
    "other-family": "Nothing, unless the name should have an address of this family.",
    "other-run": "Wait for the other run to end, and run again.",
    "holder-changed": "Find out which processes take turns at the port, and run again.",
    "stopped": "Run again with --resume FILE.",
    "netprobe-fault": "Report it with the sentence above; --resume FILE asks these flows again.",
    "agent-slow": "Run again with --resume FILE when the host has less to do.",
    **dict.fromkeys(
        ("no-results", "results-cut", "not-asked", "no-overlap"),
        "Let the host carry out its bundle again, or make the next round (netprobe bundle --next).",
    ),
}
_LOOK_AT_HOST = (
    "See what the host says to netprobe check --hosts, then run again with --resume FILE."
)


def choose_to_do(reason: str) -> str:
    """Give what to do about flows at which nobody could look."""
    return _UNTESTED.get(reason, _LOOK_AT_HOST)

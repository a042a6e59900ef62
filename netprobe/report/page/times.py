"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from netprobe.model.outage import History, Interval
from netprobe.report.page.wording import plural


def word_time(seconds: float) -> str:
    """Give a time, in seconds since 1970, as UTC to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def word_begin(times: Interval) -> str:
    """Say when an outage began, as far as looks know."""
    if times.last_good is None:
        return f"began before {word_time(times.first_bad)}, no look before saw it good"
    return f"began between {word_time(times.last_good)} and {word_time(times.first_bad)}"


def word_end(times: Interval) -> str:
    """Say when an outage ended, as far as looks know."""
    last = word_time(times.last_bad)
    if times.not_required_since is not None:
        return (
            f"bad in the look of {last}, not required since {word_time(times.not_required_since)}"
        )
    if times.first_good is None:
        return f"still there in the look of {last}"
    return f"ended between {last} and {word_time(times.first_good)}"


def word_looks(history: History) -> str:
    """Say how many looks there are, and of which time."""
    words = plural(len(history.looks), "look")
    if history.begin is None or history.end is None:
        return words
    return f"{words} from {word_time(history.begin)} to {word_time(history.end)}"

"""The options of ``bundle`` and ``merge``: when hosts probe, by what, and where files go."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import click

from netprobe.cli.given import FILE, FileType
from netprobe.cli.options import flag, option, strict_option, together
from netprobe.cli.result_options import record_option
from netprobe.errors import RequestError

DEFAULT_WINDOW: Final = "10m"
DEFAULT_MARGIN: Final = "30s"
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}

when_options = together(
    option(
        "--start",
        metavar="TIME",
        show_default="no clock: an engine says when, or each host begins at once",
        help="When all hosts probe, by their own clocks: 14:00Z (UTC), 14:00 (as here), or "
        "2027-01-31T14:00Z. Each is started before.",
    ),
    option("--window", metavar="TIME", default=DEFAULT_WINDOW, help="How long probing may take."),
    option(
        "--margin",
        metavar="TIME",
        default=DEFAULT_MARGIN,
        help="How far clocks may be apart: listeners are open so much longer, before and after.",
    ),
)

where_options = together(
    option(
        "-o",
        "--output",
        type=FILE,
        metavar="FILE",
        show_default="standard output",
        help="Write the bundle to this file.",
    ),
    option(
        "--folder",
        type=FILE,
        metavar="DIR",
        help="Write no bundle, but the folder from which an engine runs commands on all hosts.",
    ),
    option(
        "--per-host",
        type=FILE,
        metavar="DIR",
        help="Write no bundle for all, but into a new folder HOST.pyz for each host, so that no "
        "host can write the results of another, and plan.pyz for merge: keep that.",
    ),
    flag("--with-runtime", "Write a shell script that brings a Python, for hosts without one."),
    option(
        "--next",
        "next_",
        type=FILE,
        metavar="FILE|DIR",
        help="Ask what the rounds so far have left open: of this bundle, with the RESULTS of its "
        "hosts, or of this folder.",
    ),
)


def read_seconds(name: str, text: str) -> float:
    """Read ``90s``, ``10m``, ``2h`` or plain seconds. Raises RequestError."""
    match = re.fullmatch(r"(\d{1,6})([smh]?)", text, re.ASCII)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if not 0 < seconds <= 24 * 3600:
        raise RequestError(f"{name} {text}: expected a time up to a day, such as 90s, 10m or 2h")
    return float(seconds)


def read_start(text: str, now: datetime) -> float:
    """Read when to begin, in seconds UTC; a time without a day is the next one. Raises
    RequestError, also for times that are over."""
    found = _parse_start(text, now)
    if found <= now:
        raise RequestError(f"--start {text}: that is over, it is {_word_time(now)} now")
    return found.timestamp()


def _parse_start(text: str, now: datetime) -> datetime:
    normal = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        if "T" in normal or " " in normal:
            return _with_zone(datetime.fromisoformat(normal))
        at = time.fromisoformat(normal)
    except ValueError:
        raise RequestError(
            f"--start {text}: expected a time such as 14:00Z, 14:00 or 2027-01-31T14:00Z"
        ) from None
    zone = at.tzinfo or datetime.now().astimezone().tzinfo
    today: date = now.astimezone(zone).date()
    found = datetime.combine(today, at.replace(tzinfo=None), zone)
    return found if found > now else found + timedelta(days=1)


def _with_zone(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.astimezone()


def _word_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


results_argument = click.argument("results", nargs=-1, type=FileType("a result file"))

merge_options = together(record_option, strict_option)

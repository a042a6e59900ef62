"""The options about results: earlier runs, a baseline, and failures that somebody accepted."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import click

from netprobe.cli.given import FILE
from netprobe.cli.options import flag, option, repeat_option, together
from netprobe.errors import RequestError
from netprobe.model.accepted import MAX_ACCEPTANCE_DAYS


def read_days(text: str) -> int:
    """Read ``365d`` or ``365``. Raises RequestError."""
    match = re.fullmatch(r"(\d{1,5})d?", text, re.ASCII)
    if match is None:
        raise RequestError(f"--max-acceptance {text}: expected days, such as 365d")
    return int(match[1])


def read_last_day(text: str, endless: str) -> date | None:
    """Read a day that is not over yet; None for the word of no end. Raises RequestError."""
    if text == endless:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise RequestError(f"--until {text}: expected YYYY-MM-DD or {endless}") from None
    today = date.today()
    if day < today:
        raise RequestError(f"--until {text}: that day is over, expected {today} or later")
    return day


_max_acceptance = option(
    "--max-acceptance",
    metavar="DAYS",
    default=f"{MAX_ACCEPTANCE_DAYS}d",
    help="For how long a failure may be accepted, from its first day to its last.",
)

accepted_options = together(
    repeat_option(
        "--accepted",
        type=FILE,
        metavar="FILE",
        show_default="nothing is accepted",
        text="Failures that somebody accepted until a day (`netprobe accept`): they do not decide.",
    ),
    _max_acceptance,
)

baseline_options = together(
    option(
        "--baseline",
        type=FILE,
        metavar="FILE",
        help="Say what is new since the run of this record or JSON report.",
    ),
    option(
        "--fail-on",
        type=click.Choice(("any", "new")),
        default="any",
        help="Which failures decide the exit status; new: only those that the baseline has not.",
    ),
)

record_option = option(
    "--record",
    type=FILE,
    metavar="FILE",
    help="Write every result to this new file as it becomes final.",
)

earlier_options = together(
    record_option,
    option(
        "--resume",
        type=FILE,
        metavar="FILE",
        help="Keep the final results (pass, blocked, exposed) of this record or JSON report; probe "
        "the rest.",
    ),
    option(
        "--retry",
        type=FILE,
        metavar="FILE",
        help="After a fix: keep what passed in this record or JSON report, probe again what did "
        "not, and say what changed. Of a request (`netprobe request -o json=FILE`): probe what it "
        "asks for.",
    ),
    accepted_options,
    baseline_options,
)


def _require_text(name: str, text: str) -> Any:  # Any: click's decorators
    return option(name, required=True, metavar="TEXT", help=text)


consent_options = together(
    repeat_option(
        "--finding",
        "findings",
        type=click.IntRange(1),
        required=True,
        metavar="N",
        text="The finding to accept, by its number in the report.",
    ),
    _require_text("--reason", "Why it is accepted; reports repeat it."),
    _require_text("--owner", "Who answers for it."),
    _require_text("--ticket", "Where it is written down."),
    option(
        "--until", required=True, metavar="DATE|never", help="The last day on which it is accepted."
    ),
    _max_acceptance,
    flag("--same-place", "Accept it only while it fails at the places that are possible now."),
    flag("--append", "Leave the first lines out, which a file that has entries has already."),
)

"""Words of users as values: files (with what users call them), days and times.

What a command writes is never what it reads or records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import click

from netprobe.errors import RequestError
from netprobe.report.outputs import OutputTarget, parse_outputs

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


class GivenFile(str):
    """A file that a command reads or records; ``what``: the option, or words for an argument."""

    __slots__ = ("what",)
    what: str

    def __new__(cls, path: str, what: str) -> GivenFile:
        """Name the file of an option or an argument."""
        made = super().__new__(cls, path)
        made.what = what
        return made


class FileType(click.Path):
    """The type of an option that names a file. ``what``: how messages call the file; None: by the
    name of the option."""

    def __init__(self, what: str | None = None) -> None:
        super().__init__()
        self._what = what

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenFile:
        """Give the file with its words."""
        path = str(super().convert(value, param, ctx))
        long = next((one for one in param.opts if one.startswith("--")), "") if param else ""
        return GivenFile(path, self._what or long)


class MatrixType(click.types.StringParamType):
    """A bundled name, or a file."""

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give a file with its words, and a name as it is."""
        from netprobe.load.matrix.bundled import is_path

        text = str(super().convert(value, param, ctx))
        return GivenFile(text, self._what) if is_path(text) else text


INVENTORY = "the inventory"

FILE = FileType()


def read_outputs(
    texts: Sequence[str], formats: Sequence[str], asked: object, option: str = "-o"
) -> tuple[OutputTarget, ...]:
    """Read ``-o``, or another option like it. Raises RequestError, also where it names an input.

    ``asked``: the options of the verb, a class of ``cli/asked.py``.
    """
    outputs = parse_outputs(texts, formats, option)
    named = list(_list_files(asked))
    for output in outputs:
        for file in named:
            if output.path is not None and _is_same_file(output.path, file):
                raise RequestError(
                    f"{option} {output.format}={output.path}: that is {file.what}, "
                    "which would be overwritten; choose another name"
                )
    return outputs


def _list_files(asked: object) -> Iterator[GivenFile]:
    """Give the files that a command reads or records."""
    for name, given in vars(asked).items():
        if name == "inventories" and not given:
            from netprobe.load.inventory.discover import find_inventories

            yield from (GivenFile(path, INVENTORY) for path in find_inventories())
        for one in given if isinstance(given, tuple) else (given,):
            if isinstance(one, GivenFile):
                yield one


def _is_same_file(output: str, path: str) -> bool:
    """Tell whether writing the one changes the other; devices and pipes may be named twice."""
    try:
        return os.path.samefile(output, path) and os.path.isfile(path)
    except OSError:  # one of them is not there yet
        return os.path.realpath(output) == os.path.realpath(path)


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


def read_seconds(name: str, text: str) -> float:
    """Read ``90s``, ``10m``, ``2h`` or plain seconds. Raises RequestError."""
    match = re.fullmatch(r"\+?(\d{1,6})([smh]?)", text, re.ASCII)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if not 0 < seconds <= 24 * 3600:
        raise RequestError(f"{name} {text}: expected a time up to a day, such as 90s, 10m or 2h")
    return float(seconds)


def read_start(text: str, now: datetime) -> float:
    """Read when to begin, in seconds UTC: ``+2m`` from now, or a time; one without a day is the
    next one. Raises RequestError, also for times that are over."""
    found = _parse_start(text, now)
    if found <= now:
        raise RequestError(f"--start {text}: that is over, it is {_word_time(now)} now")
    return found.timestamp()


def _parse_start(text: str, now: datetime) -> datetime:
    if text.startswith("+"):
        return now + timedelta(seconds=read_seconds("--start", text))
    normal = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        if "T" in normal or " " in normal:
            return _with_zone(datetime.fromisoformat(normal))
        at = time.fromisoformat(normal)
    except ValueError:
        raise RequestError(
            f"--start {text}: expected a time such as +10m, 14:00Z, 14:00 or 2027-01-31T14:00Z"
        ) from None
    zone = at.tzinfo or datetime.now().astimezone().tzinfo
    today: date = now.astimezone(zone).date()
    found = datetime.combine(today, at.replace(tzinfo=None), zone)
    return found if found > now else found + timedelta(days=1)


def _with_zone(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.astimezone()


def _word_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

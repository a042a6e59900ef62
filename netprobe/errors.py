"""Every exception that netprobe raises on purpose.

A network that misbehaves never raises: silence, a reset or an ICMP error is an outcome.

    NetprobeError           netprobe could not do its own job          exit 4
    ├── RequestError        usage, YAML, names: the request was wrong  exit 2
    │   └── FileErrors      every problem of every file, at once
    └── AgentError          an agent could not be started or was lost  (becomes not-tested)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

# The exit status of a command that could not do its job; model/exit.py has the others.
REQUEST: Final = 2
FAILED: Final = 4
INTERRUPTED: Final = 130
# The reason of a flow that is not tested because netprobe itself failed at it.
FAULT: Final = "netprobe-fault"


class NetprobeError(Exception):
    """netprobe could not do its own job; the text is one clear line for the user."""

    exit_status: int = FAILED


class RequestError(NetprobeError):
    """The request was wrong: usage, a name that nobody knows, a file that does not parse."""

    exit_status = REQUEST


class Problem(NamedTuple):
    """One thing that is wrong in a file: ``file:line:column: what is wrong, what was expected``.

    ``line`` and ``column`` count from 1; 0 means that no place is known (a missing file).
    """

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.text}"


class FileErrors(RequestError):
    """All problems of all files of one request, sorted by file and place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


@contextmanager
def all_problems() -> Iterator[list[Problem]]:
    """Give a list for the problems of a request. Raises FileErrors where any are in it at last."""
    problems: list[Problem] = []
    yield problems
    if problems:
        raise FileErrors(problems)


def show_traceback(error: Exception) -> None:
    """Print it to standard error, but only with NETPROBE_DEBUG=1."""
    if os.environ.get("NETPROBE_DEBUG", "0") not in ("", "0"):
        import traceback  # noqa: PLC0415 (few runs need it)

        for line in "".join(traceback.format_exception(error)).splitlines():
            # Its words may be another program's, and a terminal obeys some characters.
            shown = (char if char.isprintable() else ascii(char)[1:-1] for char in line)
            sys.stderr.write("".join(shown) + "\n")


def bug_words(error: Exception) -> str:
    """Word an exception that nobody foresaw, where the rest goes on without what raised it."""
    from netprobe.agent.wire.failures import find_shortage  # noqa: PLC0415

    show_traceback(error)
    shortage = find_shortage(error)
    if shortage is not None:
        return (
            f"this machine has no {shortage} left for netprobe; give it more, or take fewer hosts"
        )
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}"
    return f"{type(error).__name__}: {error}; a bug in netprobe, NETPROBE_DEBUG=1 shows where"


class AgentError(NetprobeError):
    """An agent could not be started, or was lost; its own flows become ``not-tested``.

    ``reason`` is a reason word of the result (``no-python``, ``no-vantage``, ``agent-lost`` ...);
    the text holds the words of ssh or of the host, and the ``fix``.
    """

    def __init__(self, reason: str, words: str, fix: str = "") -> None:
        super().__init__(f"{words}; {fix}" if fix else words)
        self.reason = reason
        self._words = words

    def with_cause(self, reason: str, fix: str) -> AgentError:
        """Give the same words with a cause that is known better, and with its fix."""
        return AgentError(reason, self._words, fix)

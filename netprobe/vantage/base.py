"""What every vantage gives: an argv, the hop that its starts share, and words for its failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netprobe.model.inventory import Host


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a start failed: whether another try may help, and what to tell the user."""

    transient: bool
    words: str


@dataclass(frozen=True, slots=True)
class Way:
    """One kind of vantage.

    ``argv(host, script, folder)`` is the command that runs the shell script on the host; ``folder``
    is private to this run, and None where the kind does not say ``needs_folder``. ``hop(host)``
    names what its starts have in common (None: nothing). ``explain(host, status, said)`` reads the
    exit status and the last lines of stderr.
    """

    argv: Callable[[Host, str, Path | None], list[str]]
    hop: Callable[[Host], Awaitable[str | None]]
    explain: Callable[[Host, int, Sequence[str]], Trouble]
    needs_folder: bool = False


async def no_hop(_host: Host) -> str | None:
    """For vantages that do not cross a network of their own."""
    return None


def ended_words(command: str, status: int, said: Sequence[str]) -> str:
    """``command ended with status 1: its last words``."""
    end = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"{command} {end}" + (": " + "; ".join(said) if said else "")

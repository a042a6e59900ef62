"""The vantage ``local``: this machine, by the very same path as every other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netprobe.model.inventory import Host
from netprobe.vantage.base import Trouble, Way, ended_words, no_hop


def argv(_host: Host, script: str, _folder: Path | None) -> list[str]:
    """The script, run here."""
    return ["sh", "-c", script]


def explain(_host: Host, status: int, said: Sequence[str]) -> Trouble:
    """A local start that fails once fails again."""
    return Trouble(False, ended_words("the agent on this machine", status, said))


LOCAL = Way(argv, no_hop, explain)

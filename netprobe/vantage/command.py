"""The vantage ``command``: any prefix that runs a command with stdin and stdout on the host.

``ip netns exec NAME``, ``docker exec -i NAME``, ``kubectl exec -i POD --``, ``podman run -i ...``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netprobe.model.inventory import Host
from netprobe.vantage.base import Trouble, Way, ended_words, no_hop


def argv(host: Host, script: str, _folder: Path | None) -> list[str]:
    """The prefix, then the script; no shell reads the prefix."""
    return [*host.vantage.command, "sh", "-c", script]


def explain(host: Host, status: int, said: Sequence[str]) -> Trouble:
    """The command's own words, and how to see them again."""
    command = " ".join(host.vantage.command)
    words = ended_words(f"`{command}`", status, said)
    return Trouble(False, f"{words} (try: {command} sh -c 'command -v python3')")


COMMAND = Way(argv, no_hop, explain)

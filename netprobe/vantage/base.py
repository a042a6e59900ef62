"""The form of every vantage, and the two that run the script here or behind a prefix.

A prefix runs a command with stdin and stdout on the host: ``ip netns exec NAME``, ``docker exec -i
NAME``, ``kubectl exec -i POD --``, ``podman run -i ...``. No shell reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct

from netprobe.errors import AgentError
from netprobe.model.host_key import HostKey
from netprobe.model.inventory import Host
from netprobe.model.printable import word_command

# Of what a program said before it ended, these lines stand in an error.
LAST_LINES = 4


class Trouble(Struct, frozen=True):
    """Why a start failed: whether another try may help, the words for the user, and the fix.

    ``host_key``: it is the host's key that ssh does not trust.
    """

    transient: bool
    words: str
    fix: str = ""
    host_key: HostKey | None = None


class HostKeyError(AgentError):
    """ssh does not trust the host's key."""

    def __init__(self, words: str, fix: str, host_key: HostKey) -> None:
        super().__init__("no-vantage", words, fix)
        self.host_key = host_key


class Way(Struct, frozen=True):
    """One kind of vantage.

    ``argv(host, script, folder)`` is the command that runs the shell script on the host; ``folder``
    is private to this run, and None where the kind does not say ``needs_folder``.
    ``explain(host, status, said, began)`` reads the exit status and the lines of stderr; ``began``
    tells whether our script ran there.
    ``hop(host)`` names the hop that its starts share; None where they cross no network together.
    ``small(host, script)`` is a command of its own that runs a script with small packets, as far as
    it can, and ``target(host)`` where it goes to; None: it crosses no network.
    """

    argv: Callable[[Host, str, Path | None], list[str]]
    explain: Callable[[Host, int, Sequence[str], bool], Trouble]
    hop: Callable[[Host], Awaitable[str | None]] | None = None
    needs_folder: bool = False
    small: Callable[[Host, str], list[str]] | None = None
    target: Callable[[Host], str] | None = None


def ended_words(command: str, status: int, said: Sequence[str]) -> str:
    """Word an end: ``command ended with status 1: its last words``."""
    end = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"{command} {end}" + (": " + "; ".join(said[-LAST_LINES:]) if said else "")


def _make_argv(host: Host, script: str, _folder: Path | None) -> list[str]:
    # This machine itself has no prefix.
    return [*host.vantage.command, "sh", "-c", script]


def _explain_local(_host: Host, status: int, said: Sequence[str], _began: bool) -> Trouble:
    # A local start that fails once fails again.
    return Trouble(False, ended_words("the agent on this machine", status, said))


def _explain_command(host: Host, status: int, said: Sequence[str], _began: bool) -> Trouble:
    command = host.vantage.command
    words = ended_words(f"`{word_command(command)}`", status, said)
    look = word_command([*command, "sh", "-c", "command -v python3"])
    return Trouble(False, f"{words} (try: {look})")


LOCAL = Way(_make_argv, _explain_local)
COMMAND = Way(_make_argv, _explain_command)

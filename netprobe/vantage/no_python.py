"""A host without a Python of use: what is said of it, and which Python can be sent to it."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.errors import AgentError
from netprobe.vantage.runtime.cache import NoRuntime, Runtimes
from netprobe.vantage.runtime.file import Runtime
from netprobe.vantage.runtime.script import USELESS_RUNTIME_LINE
from netprobe.vantage.script import USELESS_LINE

# What a host says about the Python that it got may be long.
MOST_WORDS = 400

# What helps where a host has no Python, and cannot get ours.
_WAYS = (
    "or install python3 there, or start the agent in a container that has one (`vantage: {command: "
    "[podman, ...]}`, docs/compose.md), or say `vantage: none`: then the host is a destination only"
)


class NoPython(Exception):
    """The host has no Python; the text says so, and ``machine`` is what it is (``uname -m``)."""

    def __init__(self, said: Sequence[str], machine: str) -> None:
        super().__init__(_word_useless_pythons(said))
        self.machine = machine


async def find_runtime(host: str, none: NoPython, runtimes: Runtimes) -> Runtime:
    """Find the Python for the host. Raises AgentError, which says why there is none."""
    try:
        return await runtimes.find(none.machine)
    except NoRuntime as error:
        raise AgentError("no-python", f"{host}: {none}; {error}; {_WAYS}") from None


def read_useless_runtime(host: str, said: Sequence[str]) -> AgentError | None:
    """Read why the Python that was sent is of no use on the host; None: nothing says so."""
    for line in said:
        before, found, words = line.partition(f"{USELESS_RUNTIME_LINE}: ")
        if found and not before:
            none = "no Python 3.6 or later is there, and the one that netprobe sent cannot run"
            return AgentError("no-python", f"{host}: {none}: {words[:MOST_WORDS]}; {_WAYS}")
    return None


def _word_useless_pythons(said: Sequence[str]) -> str:
    """Say why no Python of a host is of use; one that does not start says why itself."""
    useless = [line.partition(USELESS_LINE)[2].strip() for line in said if USELESS_LINE in line]
    for found in filter(None, useless):
        path, _, printed = found.partition(":")
        told = f"prints: {printed.strip()}" if printed else "prints nothing when it is asked by -V"
        return f"no Python 3.6 or later works there ({path} {told}); repair it"
    return "no Python 3.6 or later was found there (python3, platform-python, python3.N)"

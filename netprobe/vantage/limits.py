"""Limits of this process: room for the files that a run has open, and no core dump.

Every agent is a child process with pipes. In a core dump a password would be.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Iterable

from netprobe.errors import RequestError
from netprobe.model.inventory import Host

# The pipes of a child's input, output and errors; asyncio waits for its end with one more file
# where the kernel can (PidfdChildWatcher, Python 3.12).
FILES_PER_AGENT = 3 + (sys.version_info >= (3, 12))
# Reports, records, spools, the loop's own, and a start's while it runs.
OTHER_FILES = 64

PR_SET_DUMPABLE = 4


def make_room_for_agents(hosts: Iterable[Host]) -> None:
    """Raise this process's limit of open files (``ulimit -Sn``) to what agents on all hosts need.

    Raises RequestError where that is more than this login may have (``ulimit -Hn``).
    """
    agents = sum(host.vantage.kind != "none" for host in hosts)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OTHER_FILES + FILES_PER_AGENT * agents
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise RequestError(
            f"{agents:,} agents at once need {needed:,} open files, and this login may have "
            f"{hard:,} (ulimit -Hn): raise that limit, or take fewer hosts at a time (--limit)"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def forbid_core_dumps() -> None:
    """Forbid them from now on, also those that the kernel hands to a program (core_pattern ``|``).

    Commands that are started later inherit the limit; whether they are dumpable is their own.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)

"""Room for the files that a run has open: every agent is a child process with pipes."""

from __future__ import annotations

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

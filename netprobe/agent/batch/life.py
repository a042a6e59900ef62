"""What both kinds of runs need: one run of a host at a time, and its end."""

import os
import socket
import time
from typing import Optional

from ..core import loop as looping
from ..core.agent import end_on_signals
from ..wire.batch import BatchStart
from .results import HostClock, ResultFile
from .runner import BatchAgent
from .summary import WRONG_STATUS


class WrongUse(Exception):
    """What was asked for cannot be done; one line for the user."""


def take_lock(start: BatchStart) -> Optional[socket.socket]:
    """Hold the name of this run at this host, in this network stack, as long as the process lives.

    Gives None where another process holds it.
    """
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind("\0netprobe-%s-%d" % (start.run, start.host))
    except OSError:
        held.close()
        return None
    return held


def check_deadline(start: BatchStart, clock: HostClock) -> None:
    """Raise WrongUse where it is too late to begin."""
    ends_at = start.ends_at
    if start.starts_at is not None:
        ends_at = min(ends_at or start.starts_at + start.window_s, start.starts_at + start.window_s)
    now = clock.now()
    if ends_at is not None and now > ends_at:
        raise WrongUse(
            "too late: this run ended at %s, and this host's clock says %s; make a new bundle, or "
            "set the clock" % (format_time(ends_at), format_time(now))
        )


def format_time(time_s: float) -> str:
    """Give a time as people write UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s))


def make_agent(descriptor: int, start: BatchStart, clock: HostClock) -> BatchAgent:
    """Make the agent of a run, whose results go to the descriptor."""
    loop = looping.Loop()
    agent = BatchAgent(loop, ResultFile(loop, descriptor, start, clock))
    end_on_signals(agent)
    return agent


def say(words: str) -> None:
    """Say something to whoever has started this."""
    print_line("netprobe: %s" % words, 2)


def print_line(words: str, descriptor: int = 1) -> None:
    """Print a line, if anybody reads it; not every host's Python writes more than ASCII."""
    try:
        os.write(descriptor, words.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass


def refuse(error: Exception) -> int:
    """Say why nothing was done; gives the exit status."""
    say(str(error))
    return WRONG_STATUS

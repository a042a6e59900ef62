"""Runs whose agents, or whose coordinator, are killed at some moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from tests.lab.cli import environment
from tests.lab.netlab import Namespace, wait_for


@contextmanager
def killed_run(
    words: Sequence[str], hosts: Iterable[Namespace], who: str, *, begins: Callable[[], object],
    moment_s: float,
) -> Iterator[None]:  # fmt: skip
    """Start a run, and kill it so long after what ``begins``; the block runs just before.

    ``who``: ``agents`` first, or only the ``coordinator``. Both are gone afterwards.
    """
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(words, stdout=quiet, stderr=quiet, env=environment())
    try:
        wait_for(lambda: begins() or running.poll() is not None, "the rehearsal's begin", 60)
        assert running.poll() is None
        time.sleep(moment_s)
        yield
        for pid in [pid for host in hosts for pid in host.pids()] if who == "agents" else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    finally:
        running.kill()
        running.wait()

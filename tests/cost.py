"""What a command costs: its processor time, and the most memory that it had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.patience import PATIENCE_S

# A process begins with the memory that its parent had (Linux counts it into ru_maxrss at exec), and
# a worker of pytest is large: so the command's parent is a small one.
SMALL = """
import os, sys
answer = int(sys.argv[1])
pid = os.fork()
if not pid:
    os.close(answer)
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(pid, 0)
seconds = used.ru_utime + used.ru_stime
os.write(answer, f"{os.waitstatus_to_exitcode(status)} {seconds} {used.ru_maxrss}".encode())
"""


class Cost(NamedTuple):
    """Exit status, seconds of processor, and the most memory in KiB (getrusage(2))."""

    status: int
    seconds: float
    kib: int


def run_measured(command: Sequence[str | os.PathLike[str]], **streams: Any) -> Cost:
    """Run it to its end; ``streams``: as of Popen. Raises TimeoutExpired, with all of it killed."""
    near, far = os.pipe()
    with os.fdopen(near) as answer:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SMALL, str(far), *command],
                pass_fds=[far], start_new_session=True, **streams,
            )  # fmt: skip
        finally:
            os.close(far)
        limit = threading.Timer(PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        words = answer.read().split()
        process.wait()
        limit.cancel()
    if not words:
        raise subprocess.TimeoutExpired([str(word) for word in command], PATIENCE_S)
    return Cost(int(words[0]), float(words[1]), int(words[2]))

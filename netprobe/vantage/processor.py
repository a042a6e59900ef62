"""How long processes waited for a processor of this machine: then it is busy, and no host slow."""

from __future__ import annotations

import contextlib
from pathlib import Path

PROC = Path("/proc")
_NS_PER_S = 1e9


def measure_wait_s(pid: int) -> float:
    """Give the seconds for which a process and all that it started were ready and did not run.

    0 where they are gone, or where the kernel does not say.
    """
    waited_ns, left = 0, [pid]
    while left:
        folder = PROC / str(left.pop())
        with contextlib.suppress(OSError, ValueError, IndexError):
            waited_ns += int((folder / "schedstat").read_text().split()[1])
            left += map(int, (folder / "task" / folder.name / "children").read_text().split())
    return waited_ns / _NS_PER_S

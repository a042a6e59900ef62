"""No core dump of this process: a password would be in it."""

from __future__ import annotations

import ctypes
import resource

PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Forbid them from now on, also those that the kernel hands to a program (core_pattern ``|``).

    Commands that are started later inherit the limit; whether they are dumpable is their own.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)

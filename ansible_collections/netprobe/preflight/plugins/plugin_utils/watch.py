# Copyright: (c) 2026, The netprobe authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends what a worker of Ansible waits for: a host that hangs or floods, and a play that has died.

Connection plugins wait without end, and keep all that a host prints. A thread looks on. It raises
an exception in the worker's main thread by a signal, because that thread is inside of a plugin.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time

LOOK_S = 0.05
# What plugins make of a byte before they return it: pieces, joined, as text, in lines.
COPIES = 8
SPARE_BYTES = 64 * 1024 * 1024
# What the body does at its own end, after the exception, gets so long.
AGAIN_S = 5.0
SIGNAL = signal.SIGUSR1


class HostFailed(BaseException):
    """A host is above a limit. No Exception: connection plugins would try again after one."""


class Watch:
    """Watches its body: HostFailed is raised in it above a limit, and its parent's end is ours.

    ``most_s``, ``most_bytes``: None for no limit; ``what``: in words, for the reason.
    """

    def __init__(self, what, most_s=None, most_bytes=None):
        self._what, self._most_bytes = what, most_bytes
        self._most_s = most_s
        parent = multiprocessing.parent_process()
        self._parent = parent.pid if parent else os.getppid()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._reason = ""

    def __enter__(self):
        """Begin to watch."""
        self._base = _read_memory()
        self._main = threading.get_ident()
        signal.signal(SIGNAL, self._raise_reason)
        threading.Thread(target=self._look_on, daemon=True).start()
        return self

    def __exit__(self, kind, error, trace):
        """End: nothing is raised any more."""
        self._over.set()
        with self._lock:
            pass

    def check_size(self, count):
        """Raise HostFailed where a host has printed more characters than it may."""
        if self._most_bytes is not None and count > self._most_bytes:
            raise HostFailed(self._word_size())

    def _look_on(self):
        begun, again_at = time.monotonic(), 0.0
        while not self._over.wait(LOOK_S):
            if os.getppid() != self._parent:
                _kill_descendants()
                os._exit(1)
            now = time.monotonic()
            self._reason = self._reason or self._find_reason(now - begun)
            if self._reason and now >= again_at:
                again_at = now + AGAIN_S
                self._interrupt_body()

    def _interrupt_body(self):
        with self._lock:
            if not self._over.is_set():
                signal.pthread_kill(self._main, SIGNAL)
                # A thread that reads without a pause looks for signals only at the end.
                _kill_descendants()

    def _find_reason(self, waited_s):
        if self._most_s is not None and waited_s > self._most_s:
            return f"{self._what} took longer than {self._most_s} s"
        if self._most_bytes is not None:
            grown = _read_memory() - self._base
            if grown > SPARE_BYTES + COPIES * self._most_bytes:
                return self._word_size()
        return ""

    def _word_size(self):
        return f"{self._what} printed more than {self._most_bytes // 1048576} MiB"

    def _raise_reason(self, _number, _frame):
        if not self._over.is_set():
            raise HostFailed(self._reason)


def _read_memory():
    """Give the most bytes of memory that this process has ever had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _kill_descendants():
    """Kill what this process has started, as far as it has not detached itself."""
    parents = dict(_list_parents())
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    for pid in found[1:]:
        # It may be gone, or another user's: that ends when nobody reads it any more.
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _list_parents():
    """List all processes with their parents, where there is a /proc."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # A program's name, in parentheses, may have spaces and parentheses in it.
                    yield int(name), int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                pass  # it has ended

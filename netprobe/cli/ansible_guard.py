"""The process around ansible-playbook: what that has begun on hosts ends, whatever becomes of us.

It is a program of its own (``python -I -S ansible_guard.py DESCRIPTOR FOLDER``), and imports only
the standard library. The descriptor is a socket to netprobe (``ansible_play.py``).

First comes a line of JSON: ``play``, the words of ansible-playbook; ``end``, those of the play that
ends early what goes on; ``results``, the folder of answers; ``password``, for sudo, or null. Later
may come ``end``, which ends the play in order, and ``now``, which waits for nothing. The answer is
a line with the status of ansible-playbook, when nothing of it runs any more. The end of the socket
is the end of netprobe: then FOLDER is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

END, NOW = b"end", b"now"
# Workers of ansible-playbook end with it, or a moment later.
END_S = 2.0
READ_BYTES = 65536
PR_SET_DUMPABLE = 4


class AnsibleGuard:
    """Plays, and ends what it has begun."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self._is_open = True
        # What netprobe wants, beside the play itself.
        self._word = b""
        self._wake = _heed_signals()

    def serve(self) -> None:
        """Play what netprobe asks for, and come back at its end."""
        while self._is_open and b"\n" not in self._buffer:
            self._receive_some()
        order, _, self._buffer = self._buffer.partition(b"\n")
        if order and self._is_open:
            status = self._run_play(**json.loads(order))
            with contextlib.suppress(OSError):
                self._control.sendall(b"%d\n" % status)
        while self._is_open:
            self._receive_some()

    def _run_play(
        self, play: Sequence[str], end: Sequence[str], results: str, password: str | None
    ) -> int:
        """Play, and then end the hosts on which something may go on; give the play's status."""
        if password:
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        process = _start_program(play, password)
        self._wait_for_end(process, (END, NOW))
        status = _end_program(process)
        if self._word != NOW and _goes_on(Path(results)):
            # A session of its own: what the terminal says a second time is not meant for it.
            ending = _start_program(end, password, start_new_session=True)
            self._wait_for_end(ending, (NOW,))
            _end_program(ending)
        return status

    def _wait_for_end(self, process: subprocess.Popen[bytes], words: Sequence[bytes]) -> None:
        """Wait until a program has ended, or is to be ended."""
        self._take_words()
        while process.poll() is None and self._word not in words:
            ready, _, _ = select.select([self._wake, *[self._control] * self._is_open], [], [])
            if self._wake in ready and signal.SIGTERM in self._wake.recv(READ_BYTES):
                self._word = END
            if self._control in ready:
                self._receive_some()
                self._take_words()

    def _take_words(self) -> None:
        """Take what netprobe says; that it says nothing more is an ``end``, too."""
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in (*lines, *[END] * (not self._is_open)):
            self._word = line

    def _receive_some(self) -> None:
        """Wait for what netprobe says, or its end."""
        try:
            data = self._control.recv(READ_BYTES)
        except OSError:
            data = b""  # it has left our answer unread
        self._is_open = bool(data)
        self._buffer += data


def _heed_signals() -> socket.socket:
    """Let signals end nothing, and wake whoever waits; give where their numbers come.

    They are not ignored: what we start would ignore them as well. Who wants no hangup has none.
    """
    ours, signals = socket.socketpair()
    ours.setblocking(False)
    signals.setblocking(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(signals.detach())
    return ours


def _start_program(
    words: Sequence[str], password: str | None, *, start_new_session: bool = False
) -> subprocess.Popen[bytes]:
    """Start ansible-playbook, with the password as its standard input: no other process reads it.

    It reads all of it before it does anything else.
    """
    stdin = subprocess.PIPE if password else None
    process = subprocess.Popen(words, stdin=stdin, start_new_session=start_new_session)
    if process.stdin is not None and password:
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(os.fsencode(password))
    return process


def _end_program(process: subprocess.Popen[bytes]) -> int:
    """End a program that may run still, and give its status."""
    if process.poll() is None:
        process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(END_S)
    process.kill()
    return process.wait()


def _goes_on(results: Path) -> bool:
    """Tell whether on any host something may go on: the collection keeps what it has tried."""
    return any(
        not path.with_suffix(".ended").exists()
        and (path.with_suffix(".npr").exists() or not path.with_suffix(".error").exists())
        for path in results.glob("*.begun")
    )


def main(arguments: Sequence[str]) -> None:
    """Guard a run of the netprobe at the other end of a descriptor."""
    descriptor, folder = arguments
    with socket.socket(fileno=int(descriptor)) as control:
        AnsibleGuard(control).serve()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])

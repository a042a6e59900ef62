"""Runs netprobe's command line in processes that have imported it already.

A test process starts one of these at its first command and asks it for each: it forks, and the copy
becomes the command, with an environment, a folder and streams of its own. That saves the half
second of processor time that Python takes to import netprobe. What an interpreter does at its start
is tested with real starts (``tests/cli/test_start.py``, the labs' hosts, the demo).
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
MOST_BYTES = 1 << 17


def run_warm(
    words: Sequence[str], environment: Mapping[str, str], cwd: Path, limit_s: float
) -> subprocess.CompletedProcess[bytes]:
    """Run ``netprobe WORDS`` to its end. Raises TimeoutExpired, with the command killed."""
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        # A stream would join the two numbers that come where they are read late.
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with near:
            with far:
                request = json.dumps([list(words), dict(environment), str(cwd)]).encode()
                handles = array.array("i", [one.fileno() for one in (nothing, out, err, far)])
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)
                _server().sendmsg([request], [rights])
            status = _await_status(near, words, limit_s)
        # The command has moved the position that it shares with us.
        printed = [os.pread(one.fileno(), os.fstat(one.fileno()).st_size, 0) for one in (out, err)]
    return subprocess.CompletedProcess(list(words), status, *printed)


def run_warm_text(
    words: Sequence[str], environment: Mapping[str, str], cwd: Path, limit_s: float
) -> subprocess.CompletedProcess[str]:
    """Do the same, and give text as ``subprocess.run(text=True)`` does."""
    done = run_warm(words, environment, cwd, limit_s)
    printed = (io.TextIOWrapper(io.BytesIO(some)).read() for some in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, *printed)


def _await_status(near: socket.socket, words: Sequence[str], limit_s: float) -> int:
    pid = int(near.recv(64))
    near.settimeout(limit_s)
    try:
        return os.waitstatus_to_exitcode(int(near.recv(64)))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(words), limit_s) from None


@functools.cache
def _server() -> socket.socket:
    """The way to the process that forks; it ends when this one does."""
    from tests.open_files import keeping_files  # noqa: PLC0415 # no netprobe has pytest in it

    with keeping_files():
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", str(far.fileno())],
        cwd=ROOT, env=environment, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL,
    )  # fmt: skip
    far.close()
    atexit.register(_end, near, process)
    return near


def _end(near: socket.socket, process: subprocess.Popen[bytes]) -> None:
    near.close()
    process.wait()


def _serve(asked: socket.socket) -> None:
    """Fork for each command; return in the copy that becomes it."""
    gc.freeze()
    while True:
        request, handles, _, _ = socket.recv_fds(asked, MOST_BYTES, 4)
        if not request:
            os._exit(0)
        if not os.fork():
            asked.close()
            return _keep(request, handles)
        for one in handles:
            os.close(one)
        # Those that have ended meanwhile.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(request: bytes, handles: list[int]) -> None:
    """Tell the asker the command's process, and at its end how it ended."""
    pid = os.fork()
    if not pid:
        return _become(request, handles)
    with socket.socket(fileno=handles.pop()) as asker, contextlib.suppress(OSError):
        for one in handles:
            os.close(one)
        asker.send(b"%d" % pid)
        asker.send(b"%d" % os.waitpid(pid, 0)[1])
    os._exit(0)


def _become(request: bytes, handles: list[int]) -> None:
    words, environment, cwd = json.loads(request)
    for number, one in enumerate(handles[:3]):
        os.dup2(one, number)
    for one in handles:
        os.close(one)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["netprobe", *words]


def main(number: int) -> NoReturn:
    """Import what a run imports, then serve; a copy goes on as the command line."""
    from netprobe import pipeline  # noqa: F401, PLC0415
    from netprobe.cli import run  # noqa: F401, PLC0415
    from netprobe.cli.main import main as netprobe  # noqa: PLC0415

    _serve(socket.socket(fileno=number))
    sys.exit(netprobe())


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Reads and writes the files that users name.

What is read is a regular file or a pipe, and nothing that never ends: a device, a FIFO that nobody
writes to, and a pipe that does not end are refused in bounded time and memory. Opening some devices
does things to the machine, so they are not even opened.

What is written names hosts and addresses, whatever its format: a new file is for its owner alone.
"""

from __future__ import annotations

import io
import os
import select
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TextIO

from netprobe.errors import FileErrors, Problem

MIB = 1024 * 1024
# Of a text that people write: matrices, inventories, certificates.
MAX_TEXT_BYTES = 16 * MIB
MAX_PIPE_BYTES = 64 * MIB
SILENCE_S = 10.0

# A pipe can be read once only; what it gave is kept for those who read the same path again.
_pipes: dict[tuple[str, int, int], bytes] = {}


@contextmanager
def open_file(path: str, expected: str) -> Iterator[BinaryIO]:
    """Open a regular file, or what a pipe has to say.

    ``expected`` ends the sentence of a refusal: ``there is no such file, expected a YAML file``.
    Raises FileErrors with that one problem, also where the file cannot be read to its end.
    """
    try:
        _check_kind(path)
        with _open_known_kind(path) as stream:
            yield stream
    except (OSError, _Unreadable) as error:
        raise FileErrors(
            [Problem(path, 0, 0, f"{_word_error(error)}, expected {expected}")]
        ) from None


def read_file(path: str, expected: str, most_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Give the bytes of a regular file or a pipe. Raises FileErrors as :func:`open_file` does."""
    with open_file(path, expected) as stream:
        # None: a file of /proc that has nothing to say yet.
        raw = stream.read(most_bytes + 1) or b""
        if len(raw) > most_bytes:
            raise _Unreadable(f"larger than {most_bytes // MIB} MiB")
    return raw


class _Unreadable(Exception):
    """The file is none that has an end; the text begins the sentence."""


@contextmanager
def open_output(path: str) -> Iterator[TextIO]:
    """Open a file to write a text in UTF-8; a reader finds all of it or what was there before.

    Devices, pipes and ``/dev/stdout`` are written to, never replaced. Raises OSError.
    """
    if is_special(path):
        with open(path, "w", encoding="utf-8") as stream:
            yield stream
        return
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        yield stream


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a new file beside the one of this path; at the end of the block it takes its place.

    It can be read by its owner alone (0600), whatever the umask, unless there was a file already:
    that one's rights stay. After an exception it is gone, and what was there is as it was. Raises
    OSError.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    os.close(handle)
    try:
        yield temporary
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def is_special(path: str) -> bool:
    """Tell devices, pipes and the like from regular files and from what is not there yet."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def write_secret(path: str, data: bytes) -> None:
    """Write a file that holds a key: only its owner may read it, whatever was there before.

    Raises OSError.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)
    create_secret(path, data)


def create_secret(path: str, data: bytes) -> None:
    """Create a file that holds a key, for its owner alone. Raises OSError where one is there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as stream:
        stream.write(data)


@contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    """Give the descriptor of a file in memory, for libraries and programs that want a path.

    ``/dev/fd/N`` is its path here, and in a child that the descriptor is passed to.
    """
    handle = os.memfd_create("netprobe")
    try:
        os.fchmod(handle, 0o600)
        with open(handle, "wb", closefd=False) as stream:
            stream.write(content)
        yield handle
    finally:
        os.close(handle)


def _check_kind(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise _Unreadable("no file can have this name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise _Unreadable(_word_kind(mode))


def _open_known_kind(path: str) -> BinaryIO:
    # The file may be another one by now. Without O_NONBLOCK a FIFO would wait for its writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode):
        return open(handle, "rb")
    try:
        if not stat.S_ISFIFO(about.st_mode):
            raise _Unreadable(_word_kind(about.st_mode))
        key = (path, about.st_dev, about.st_ino)
        if key not in _pipes:
            _pipes[key] = _drain_pipe(handle)
    finally:
        os.close(handle)
    return io.BytesIO(_pipes[key])


def _drain_pipe(handle: int) -> bytes:
    """Read a pipe to its end. Raises _Unreadable where that does not come."""
    seen = bytearray()
    # Nobody can begin to write to a pipe without a name; to a FIFO somebody may.
    named = not os.readlink(f"/proc/self/fd/{handle}").startswith("pipe:")
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    while True:
        try:
            data = os.read(handle, MIB)
        except BlockingIOError:
            data = None
        if data:
            seen += data
            if len(seen) > MAX_PIPE_BYTES:
                raise _Unreadable(f"more than {MAX_PIPE_BYTES // MIB} MiB come out of this pipe")
            continue
        if data is not None and (seen or not named):
            return bytes(seen)
        events = poll.poll(SILENCE_S * 1000)
        if not events:
            raise _Unreadable(f"nothing came out of this pipe for {SILENCE_S:g} s")
        if not events[0][1] & select.POLLIN:
            return bytes(seen)


def _word_kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "this is a directory"
    return "this is a socket" if stat.S_ISSOCK(mode) else "this is a device"


def _word_error(error: Exception) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be read ({error.strerror})"
    return str(error)

"""Files that users name: what ends is read, whatever else is there is refused in bounded time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from netprobe import files
from netprobe.errors import FileErrors
from netprobe.files import memory_file, open_file, read_file


def refusal(path: str, most_bytes: int = 100) -> str:
    """The problem of a file that is not read, without its name."""
    with pytest.raises(FileErrors) as caught:
        read_file(path, "a test", most_bytes)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (path, 0)
    return problem.text


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    """A FIFO that nobody has opened."""
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    return path


@pytest.fixture
def pipe() -> Iterator[tuple[str, int]]:
    """The path of a pipe without a name, as ``<(command)`` gives one, and the end to write to."""
    reader, writer = os.pipe()
    yield f"/dev/fd/{reader}", writer
    os.close(reader)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/full", "/dev/urandom"])
def test_a_device_is_refused(path: str) -> None:
    """A device has no end, and opening some does things to the machine."""
    assert refusal(path) == "this is a device, expected a test"


def test_other_kinds(tmp_path: Path) -> None:
    """What is no file says what it is."""
    here = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(here)
        assert refusal(here) == "this is a socket, expected a test"
    assert refusal(str(tmp_path)) == "this is a directory, expected a test"
    assert refusal(str(tmp_path / "no")) == "there is no such file, expected a test"
    assert refusal(f"{here}/x") == "there is no such file, expected a test"
    assert refusal("a\0b") == "no file can have this name, expected a test"
    assert refusal("x" * 5000) == "it cannot be read (File name too long), expected a test"


def test_a_large_file(tmp_path: Path) -> None:
    """A file over the limit is refused; one of exactly the limit is read."""
    path = tmp_path / "f"
    path.write_bytes(b"x" * files.MIB)

    assert len(read_file(str(path), "a test", files.MIB)) == files.MIB
    path.write_bytes(b"x" * (files.MIB + 1))
    assert refusal(str(path), files.MIB) == "larger than 1 MiB, expected a test"


def test_a_fifo_that_nobody_writes_to(fifo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is waited for, and not for ever; the limit for users is 10 s."""
    assert files.SILENCE_S == 10
    monkeypatch.setattr(files, "SILENCE_S", 0.05)

    assert refusal(fifo) == "nothing came out of this pipe for 0.05 s, expected a test"


def test_a_pipe_that_falls_silent(pipe: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that stays and says no more does not hold the command."""
    monkeypatch.setattr(files, "SILENCE_S", 0.05)
    os.write(pipe[1], b"schema: ")

    assert refusal(pipe[0]).startswith("nothing came out of this pipe for")
    os.close(pipe[1])


def test_a_fifo_with_a_writer(fifo: str) -> None:
    """The writer may come later, and may write more than a pipe holds."""
    content = os.urandom(300_000)
    writer = threading.Thread(target=lambda: Path(fifo).write_bytes(content))
    writer.start()

    assert read_file(fifo, "a test") == content
    writer.join()


def test_a_fifo_whose_writer_says_nothing(fifo: str) -> None:
    """A writer that comes and goes without a word leaves an empty file."""
    writer = threading.Thread(target=lambda: Path(fifo).write_bytes(b""))
    writer.start()

    assert read_file(fifo, "a test") == b""
    writer.join()


def test_a_pipe_is_read_again(pipe: tuple[str, int]) -> None:
    """A pipe gives its bytes once; who asks for the same path later gets them too."""
    os.write(pipe[1], b"hello")
    os.close(pipe[1])

    assert [read_file(pipe[0], "a test") for _ in range(3)] == [b"hello"] * 3
    with open_file(pipe[0], "a test") as stream:
        assert stream.readline() == b"hello"


def test_an_empty_pipe(pipe: tuple[str, int]) -> None:
    """Nobody can begin to write to it: that needs no wait."""
    os.close(pipe[1])

    assert read_file(pipe[0], "a test") == b""


def test_a_pipe_without_end(pipe: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes out of a pipe is held in memory, so it has a limit: 64 MiB for users."""
    assert files.MAX_PIPE_BYTES == 64 * files.MIB
    monkeypatch.setattr(files, "MAX_PIPE_BYTES", 1000)
    os.write(pipe[1], b"x" * 1001)

    assert refusal(pipe[0]).startswith("more than ")
    os.close(pipe[1])


def test_a_file_in_memory() -> None:
    """It has a path, holds what was given, and nobody else may read it."""
    with memory_file(b"secret") as handle:
        path = Path(f"/dev/fd/{handle}")
        assert (path.read_bytes(), path.read_bytes()) == (b"secret", b"secret")
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()

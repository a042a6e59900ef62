"""Where reports go, and what happens where they cannot."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from netprobe.errors import RequestError
from netprobe.report.outputs import OutputTarget, parse_outputs, write_outputs

FORMATS = ("text", "json")


WRITERS = {
    "text": lambda stream: stream.write("a text report\n"),
    "json": lambda stream: stream.write("a json report\n"),
}


def test_parse(tmp_path: Path) -> None:
    """Formats with and without a file; none at all is the default."""
    assert parse_outputs((), FORMATS) == (OutputTarget("text"),)
    assert parse_outputs(("text", f"json={tmp_path}/x=y"), FORMATS) == (
        OutputTarget("text"),
        OutputTarget("json", f"{tmp_path}/x=y"),
    )
    assert parse_outputs(("json=-",), FORMATS) == (OutputTarget("json"),)


def test_a_folder_that_may_not_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere: the kernel's answer is a fake. A device is no new file."""
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (str(tmp_path), os.W_OK))

    with pytest.raises(RequestError) as caught:
        parse_outputs([f"json={tmp_path}/x"], FORMATS)

    words = f"you may not write to the folder {tmp_path}"
    assert str(caught.value) == f"-o json={tmp_path}/x: {words}"
    assert parse_outputs(["json=/dev/null"], FORMATS)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["xml"], "-o xml: no such format, expected one of text, json"),
        (["json="], "-o json=: the file's name is missing after '='"),
        (["text", "json"], "-o: standard output is given more than once"),
        (["text=a", "json=a"], "-o: a is given more than once"),
        (["json=/no/such/x"], "-o json=/no/such/x: there is no folder /no/such"),
        (["json=/tmp"], "-o json=/tmp: that is a folder, expected a file"),
    ],
)
def test_wrong_outputs(texts: list[str], problem: str) -> None:
    """What cannot be meant is refused before a run that takes minutes."""
    with pytest.raises(RequestError) as caught:
        parse_outputs(texts, FORMATS)
    assert str(caught.value).startswith(problem)


def test_file_appears_whole(tmp_path: Path) -> None:
    """A file is replaced when the new one is whole; its rights stay, nothing else is left."""
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    seen: list[str] = []

    def slow(stream: TextIO) -> None:
        stream.write("new")
        stream.flush()
        seen.append(path.read_text())

    assert write_outputs([OutputTarget("text", str(path))], {"text": slow}) == []
    assert (seen, path.read_text()) == (["old"], "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_links_stay_links(tmp_path: Path) -> None:
    """A link is followed, not replaced."""
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_outputs([OutputTarget("text", str(tmp_path / "link"))], WRITERS)

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "a text report\n"


def test_one_full_disk_does_not_cost_the_others(tmp_path: Path) -> None:
    """Each output that cannot be written is one line; the others still come."""
    good = tmp_path / "good"
    problems = write_outputs(
        [
            OutputTarget("text", "/dev/full"),
            OutputTarget("json", str(good)),
            OutputTarget("json", "/no/x"),
        ],
        WRITERS,
    )

    assert problems == [
        "cannot write text to /dev/full: No space left on device",
        "cannot write json to /no/x: No such file or directory",
    ]
    assert good.read_text() == "a json report\n"


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A report that fails halfway leaves the file that was there."""
    path = tmp_path / "out"
    path.write_text("old")

    def fail(stream: TextIO) -> None:
        stream.write("half")
        raise OSError(28, "No space left on device")

    assert write_outputs([OutputTarget("text", str(path))], {"text": fail}) == [
        f"cannot write text to {path}: No space left on device"
    ]
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


PRINT = """
import sys
from netprobe.report.outputs import OutputTarget, write_outputs
writers = {"text": lambda stream: stream.write("x" * 1_000_000)}
problems = write_outputs([OutputTarget("text")], writers)
print(problems, file=sys.stderr)
"""


def test_full_standard_output() -> None:
    """A full disk behind standard output is said once, and Python's exit does not fail again."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PRINT], stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert done.stderr == b"['cannot write text to standard output: No space left on device']\n"
    assert done.returncode == 0


def test_reader_that_goes_away() -> None:
    """`| head` is no failure and prints nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", PRINT], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)

    assert (done.stderr, done.returncode) == (b"[]\n", 0)

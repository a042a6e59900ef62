"""Standard streams and disks that take nothing: told where that can be, and no verdict changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment, netprobe

# They start whole commands.
pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")
HERE = (*TINY, "--from", "here", "--to", "here")


def shell(words: tuple[str, ...], redirection: str, cwd: Path) -> int:
    """The exit status of ``netprobe WORDS`` with the shell's redirection."""
    line = f'exec "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *words], cwd=cwd, env=environment(), check=False
    )
    return done.returncode


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("words", "status"),
    [(("run", *HERE), 0), (("run", *TINY), 3), (("run", "-m", "./no.yaml"), 2), (("--no",), 2)],
)
def test_standard_error_decides_nothing(
    folder: Path, words: tuple[str, ...], status: int, stderr: str
) -> None:
    """What cannot be said is not said; the exit status is that of the verdicts."""
    assert shell(words, f">/dev/null {stderr}", folder) == status


def test_closed_standard_output(folder: Path) -> None:
    """A daemon without standard output gets its status all the same."""
    assert shell(("run", *HERE), ">&- 2>/dev/null", folder) == 0


def test_reader_of_standard_error_that_goes_away(folder: Path) -> None:
    """Progress that nobody reads any more ends nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "run", *TINY],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        check=False,
    )
    os.close(writer)

    assert done.returncode == 3
    assert done.stdout.startswith("UNKNOWN: ")


@pytest.fixture
def tight(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one page: a record's header and a few results."""
    place = tmp_path / "tight"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(place)]
    subprocess.run(mount, capture_output=True, check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.needs("mounts")
def test_disk_that_fills_up_under_the_record(folder: Path, tight: Path) -> None:
    """The run goes on, its report is whole, and the status says that netprobe failed."""
    done = netprobe("run", *TINY, "--record", str(tight / "r"), "-o", "text", cwd=folder)

    assert done.returncode == 4
    assert done.stdout.splitlines()[-1].startswith("92 flows: 46 pass")
    full = f"netprobe: cannot write the record {tight}/r: No space left on device"
    assert full in done.stderr.splitlines()
    assert netprobe("report", str(tight / "r"), cwd=folder).returncode == 3


@pytest.mark.needs("mounts")
def test_disk_without_room_for_a_report(folder: Path, tight: Path) -> None:
    """No half file is left."""
    (tight / "fill").write_bytes(bytes(4096))
    path = tight / "run.json"
    done = netprobe("run", *HERE, "-o", f"json={path}", cwd=folder)

    assert done.returncode == 4
    assert f"netprobe: cannot write json to {path}: No space left on device" in done.stderr
    assert os.listdir(tight) == ["fill"]


def test_record_that_breaks_off_behind_its_header(folder: Path) -> None:
    """Nobody knows how far that run came: the first and the last line say what the record holds."""
    netprobe("run", *TINY, "--record", "r", cwd=folder)
    header = (folder / "r").read_text().splitlines(keepends=True)[0]
    (folder / "header").write_text(header)
    done = netprobe("report", "header", cwd=folder)

    assert done.returncode == 3
    first, *_, last = done.stdout.splitlines()
    assert first == "NOTHING WAS TESTED: the record ends before any of 92 flows had a result"
    assert "0 not tested; 92 more without a result; no name was looked up; " in last


@pytest.mark.usefixtures("heeds_signals")
def test_interrupt_while_it_is_imported(folder: Path) -> None:
    """A Ctrl-C that comes before the first line of a verb is the same silent end."""
    program = (
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'click':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from netprobe.__main__ import run\n"
        "run()"
    )
    words = [COMMAND[0], "-c", program, "matrix", "list"]
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

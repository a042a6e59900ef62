"""Wrong requests and full disks: clear lines, the right status, never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from netprobe.errors import bug_words
from tests.cli.command import COMMAND, environment, netprobe

# They start whole commands.
pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run"], "netprobe: no matrix: give --matrix NAME or FILE"),
        (["init"], "netprobe: no matrix: give --matrix NAME or FILE"),
        (["run", *TINY, "--timeout", "0"], "0.0 is not in the range 0.1<=x<=600"),
        (["run", *TINY, "--forks", "0"], "0 is not in the range 1<=x<=100000"),
        (["run", *TINY, "--retries", "many"], "'many' is not a valid integer range"),
        (["run", *TINY, "-o", "xml"], "netprobe: -o xml: no such format, expected one of text,"),
        (["run", *TINY, "-o", "json=/no/x"], "netprobe: -o json=/no/x: there is no folder /no"),
        (["run", *TINY, "--record", "/no/x"], "netprobe: --record /no/x: there is no folder /no"),
        (
            ["run", *TINY, "--record", "/"],
            "netprobe: --record /: that is a folder, expected a file",
        ),
        (["run", *TINY, "--only", "wep"], "netprobe: --only wep: no requirement of that name; did"),
        (["run", *TINY, "--from", "hear"], "netprobe: --from hear: no host or role of that name"),
        (["run", *TINY, "--protocol", "sctp"], "netprobe: --protocol sctp: expected one of tcp,"),
        (["run", *TINY, "--set", "web-prot=1"], "web-prot"),
        (["run", *TINY, "--resume", "none"], "none: there is no such file, expected a JSON report"),
        (["run", *TINY, "--max-results", "3"], "netprobe: the plan has 12 results, more than 3"),
        (["run", "-m", "deckhouse"], "there is no bundled matrix"),
        (["report", "tiny.yaml"], "tiny.yaml:1:1: is not JSON, expected a JSON report (netprobe."),
        (["report", "none"], "none: there is no such file, expected a JSON report"),
        (["check", "--hosts", "tiny.yaml", *TINY], "--hosts takes no FILES"),
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "-m"], "Option '-m' requires an argument"),
    ],
)
def test_wrong_requests(folder: Path, words: list[str], problem: str) -> None:
    """Each wrong request is exit 2 and says what is wrong, without a traceback."""
    done = netprobe(*words, cwd=folder)

    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_inventory(folder: Path) -> None:
    """Without any inventory the user is told how to get one."""
    (folder / "inventory.yaml").unlink()
    done = netprobe("plan", *TINY, cwd=folder)

    assert done.returncode == 2
    assert "netprobe init --matrix NAME > inventory.yaml" in done.stderr


def test_problems_of_files_stand_alone(folder: Path) -> None:
    """Problems of files are plain ``file:line:column:`` lines that an editor can jump to."""
    (folder / "inventory.yaml").write_text(
        "schema: netprobe.inventory/1\nhosts: {a: {adress: 1}}\n"
    )
    done = netprobe("plan", *TINY, cwd=folder)

    assert done.returncode == 2
    assert all(line.startswith("inventory.yaml:2:") for line in done.stderr.splitlines())


def test_unexpected_errors_are_one_line(folder: Path) -> None:
    """A bug is called one, with the way to its traceback; NETPROBE_DEBUG shows it."""
    (folder / "broken").mkdir()
    (folder / "broken" / "click").mkdir()
    program = (
        "import netprobe.cli.main as c, netprobe.cli.files as f\n"
        "f.matrix_list_verb = lambda: 1 / 0\n"
        "import sys; sys.argv = ['netprobe', 'matrix', 'list']; c.main()"
    )
    for debug in ("", "1"):
        done = subprocess.run(
            [COMMAND[0], "-c", program],
            env=environment(NETPROBE_DEBUG=debug),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 4
        assert "netprobe: ZeroDivisionError: division by zero\n" in done.stderr
        assert "run again with NETPROBE_DEBUG=1 for the traceback" in done.stderr
        assert ("Traceback" in done.stderr) == bool(debug)


@pytest.mark.parametrize(
    "words", [["matrix", "list"], ["plan", *TINY], ["matrix", "show", "dce", "-o", "yaml"]]
)
def test_full_disk(folder: Path, words: list[str]) -> None:
    """A full disk behind standard output is one line and exit 4."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=folder,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].endswith("standard output: No space left on device")
    assert len(done.stderr.splitlines()) == 1


def test_reader_that_goes_away(folder: Path) -> None:
    """A reader that went away is silent, and never exit 1, which means that flows are blocked."""
    reader, writer = os.pipe()
    os.close(reader)
    for words in (["matrix", "list"], ["--help"], ["plan", *TINY]):
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=folder,
            env=environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.stderr, done.returncode in (0, 141)) == (b"", True)
    os.close(writer)


def test_password_needs_a_terminal(folder: Path) -> None:
    """Without a terminal nobody can be asked; the message names the variable."""
    done = subprocess.run(
        [*COMMAND, "run", *TINY, "--ask-become-pass"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )

    assert done.returncode == 2
    assert "set NETPROBE_BECOME_PASSWORD instead" in done.stderr


def test_what_a_machine_has_no_more_of_is_no_bug() -> None:
    """Each host costs a thread and some descriptors; what is left of the run goes on."""
    for error, word in (
        (RuntimeError("can't start new thread"), "memory or threads (ulimit -v, -u)"),
        (OSError(errno.EMFILE, "x"), "file descriptors (ulimit -n)"),
        (MemoryError(), "memory"),
    ):
        words = bug_words(error)
        assert words.startswith(f"this machine has no {word} left for netprobe; ")
    assert "a bug in netprobe" in bug_words(RuntimeError("can't"))

"""``--evidence`` where nothing can be kept, and folders that it does not take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, environment, netprobe
from tests.patience import PATIENCE_S
from tests.rights import lack_of

RUN = ("run", "-m", "./tiny.yaml")


@pytest.mark.slow
@pytest.mark.needs("setpriv")
def test_a_run_says_that_nobody_may_record(folder: Path) -> None:
    """One line, beside the report as it is."""
    # Only who has rights can give one away.
    setpriv = ("setpriv", "--bounding-set=-net_raw") if lack_of("raw sockets") is None else ()
    words = (*setpriv, *COMMAND, *RUN, "--evidence", "ev")
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert "note: --evidence kept nothing: agents need root to record packets" in done.stderr
    assert list((folder / "ev").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", '--evidence "": expected a folder'),
        ("a/b/c", "--evidence a/b/c: there is no folder {folder}/a/b"),
        ("tiny.yaml", "--evidence tiny.yaml: that is a file, expected a folder"),
    ],
)
def test_what_is_no_folder_is_refused(folder: Path, path: str, words: str) -> None:
    """Before anything is probed."""
    done = netprobe(*RUN, "--evidence", path, cwd=folder)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"netprobe: {words.format(folder=folder)}\n"

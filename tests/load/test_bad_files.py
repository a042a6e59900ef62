"""Every file in ``bad/`` says in its first lines what netprobe must say about it, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.check import check_files

BAD = Path(__file__).parent / "bad"
MARK = b"# error: "


def expected(path: Path) -> list[str]:
    """The problems that the file's own first lines announce, as netprobe prints them."""
    said = [line for line in path.read_bytes().split(b"\n") if line.startswith(MARK)]
    texts = [line.removeprefix(MARK).decode() for line in said]
    return [path.name + (":" if text[0].isdigit() else ": ") + text for text in texts]


@pytest.mark.parametrize("path", sorted(BAD.glob("*.yaml")), ids=lambda path: path.stem)
def test_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad file gives exactly the announced problems, in the order of their places."""
    monkeypatch.chdir(BAD)

    with pytest.raises(FileErrors) as caught:
        check_files([path.name])

    assert str(caught.value).splitlines() == expected(path)
    assert caught.value.exit_status == 2


@pytest.mark.slow
def test_all_files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One error holds the problems of all files that were given."""
    monkeypatch.chdir(BAD)
    paths = sorted(BAD.glob("*.yaml"))

    with pytest.raises(FileErrors) as caught:
        check_files([path.name for path in paths])

    # A file that another extends is told once: these texts are a set of all.
    announced = {text for path in paths for text in expected(path)}
    assert {str(problem) for problem in caught.value.problems} == announced


def test_there_are_many() -> None:
    """The folder is found: an empty one would pass every test above."""
    assert len(list(BAD.glob("*.yaml"))) > 70

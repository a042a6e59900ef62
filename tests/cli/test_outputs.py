"""No command writes over what it reads or records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from netprobe.cli.given import FileType, MatrixType
from netprobe.cli.main import cli, status_of

RUN = ("run", "-m", "okd-hcp")
ACCEPT = ("--accepted", "f")


@pytest.mark.parametrize("given", ["f", "link", "hard", "../here/f"])
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("report", "f", "-o", "html=GIVEN"), "the file to read"),
        (("report", "other", *ACCEPT, "-o", "json=GIVEN"), "--accepted"),
        (("request", "f", "-o", "json=GIVEN"), "the file to read"),
        (("request", "f", "--undo", "nftables=GIVEN"), "the file to read"),
        (("diff", "f", "other", "-o", "json=GIVEN"), "the earlier run"),
        (("diff", "other", "f", "-o", "text", "-o", "json=GIVEN"), "the later run"),
        ((*RUN, "--record", "f", "-o", "json=GIVEN"), "--record"),
        ((*RUN, "--resume", "f", "-o", "json=GIVEN"), "--resume"),
        ((*RUN, "--retry", "f", "-o", "text=GIVEN"), "--retry"),
        ((*RUN, "--baseline", "f", "-o", "junit=GIVEN"), "--baseline"),
        ((*RUN, *ACCEPT, "-o", "json=GIVEN"), "--accepted"),
        ((*RUN, "-i", "f", "-o", "json=GIVEN"), "the inventory"),
        ((*RUN, "-m", "./f", "-o", "json=GIVEN"), "--matrix"),
        (("plan", "-m", "okd-hcp", "-i", "f", "-o", "json=GIVEN"), "the inventory"),
        (("check", "--hosts", "-m", "okd-hcp", "-i", "f", "-o", "json=GIVEN"), "the inventory"),
        (("explain", "a", "b", "icmp", "-i", "f", "-o", "json=GIVEN"), "the inventory"),
        (("matrix", "show", "./f", "-o", "yaml=GIVEN"), "the matrix"),
    ],
)
def test_inputs_stay(
    words: tuple[str, ...],
    what: str,
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Under its own name or another, in one line, before anything is read or written."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "f").write_text("hours of work\n")
    (folder / "link").symlink_to("f")
    (folder / "hard").hardlink_to(folder / "f")
    monkeypatch.chdir(folder)

    assert status_of([word.replace("GIVEN", given) for word in words]) == 2
    where = f"{words[-2]} {words[-1].replace('GIVEN', given)}"
    told = f"netprobe: {where}: that is {what}, which would be "
    assert capfd.readouterr() == ("", f"{told}overwritten; choose another name\n")
    assert (folder / "f").read_text() == "hours of work\n"
    assert sorted(one.name for one in folder.iterdir()) == ["f", "hard", "link"]


def test_what_is_not_there_yet_or_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A record to be, and the inventory that nobody named; a device may be named twice."""
    monkeypatch.chdir(tmp_path)
    assert status_of((*RUN, "--record", "r", "-o", "json=./r")) == 2
    assert "-o json=./r: that is --record, which" in capfd.readouterr().err
    (tmp_path / "inventory.yaml").touch()
    assert status_of((*RUN, "-o", "json=inventory.yaml")) == 2
    assert "that is the inventory, which" in capfd.readouterr().err
    status_of((*RUN, "--record", "/dev/null", "-o", "json=/dev/null"))
    assert "overwritten" not in capfd.readouterr().err


def find_commands(group: click.Group) -> Iterator[click.Command]:
    """Every command, also of groups."""
    for command in group.commands.values():
        yield from find_commands(command) if isinstance(command, click.Group) else (command,)


def test_every_file_is_known() -> None:
    """An option or argument that names a file says so by its type, so that no output overwrites it;
    an argument has words for it."""
    files = [
        one
        for command in find_commands(cli)
        for one in command.params
        if isinstance(one.type, click.Path) or "FILE" in (one.metavar or "").split("|")
    ]

    assert len(files) > 20
    assert [one.name for one in files if not isinstance(one.type, FileType | MatrixType)] == []
    unnamed = [one for one in files if isinstance(one, click.Argument)]
    assert [one.name for one in unnamed if not one.type.convert("x", one, None).what] == [
        "run_file"
    ]

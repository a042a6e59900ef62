"""Files that extend files: how many, and what is told of a file in another folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.matrix.bundled import bundled_path
from netprobe.load.matrix.file import MAX_CHAIN, load_matrices

BASE = Path(__file__).parents[1] / "good" / "base.yaml"
SECRET = "root:$6$saltsalt$notforyou:19000:0:99999:7:::"


def extending(path: Path, other: str) -> str:
    """A matrix that extends another file, and no more."""
    path.write_text(f"schema: netprobe.matrix/1\nextends: {other}\n")
    return str(path)


def chain(folder: Path, length: int) -> str:
    """The last of so many files, each of which extends the one before."""
    (folder / "m1.yaml").write_bytes(BASE.read_bytes())
    for number in range(2, length + 1):
        extending(folder / f"m{number}.yaml", f"./m{number - 1}.yaml")
    return str(folder / f"m{length}.yaml")


def refusal(path: str) -> str:
    """The one problem of a file."""
    with pytest.raises(FileErrors) as caught:
        load_matrices([path])
    (problem,) = caught.value.problems
    return str(problem)


def test_a_long_chain(tmp_path: Path) -> None:
    """As many files as the limit says extend each other."""
    (matrix,) = load_matrices([chain(tmp_path, MAX_CHAIN)])

    assert len(matrix.requirements) == 4


@pytest.mark.slow
@pytest.mark.parametrize("length", [MAX_CHAIN + 1, 3000])
def test_an_endless_chain(tmp_path: Path, length: int) -> None:
    """A longer chain is one problem at the place where it went too far."""
    words = f"{MAX_CHAIN} files extend each other up to here, expected fewer"
    last = length - MAX_CHAIN + 1

    assert refusal(chain(tmp_path, length)) == f"{tmp_path}/m{last}.yaml:2:10: {words}"


def test_a_circle_by_another_way(tmp_path: Path) -> None:
    """A file is the same file by every path."""
    (tmp_path / "sub").mkdir()
    path = extending(tmp_path / "a.yaml", "./sub/../a.yaml")

    assert "the files extend each other in a circle (a.yaml > a.yaml)" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        SECRET,
        f"{SECRET}\n  x: [",
        f"password: {SECRET}",
        f"schema: netprobe.matrix/1\nroles: {{{SECRET!r}: 5}}\nname: [{SECRET!r}]",
        f"schema: netprobe.matrix/1\nextends: {SECRET!r}",
        f"schema: {SECRET!r}",
    ],
    ids=["text", "syntax", "mapping", "matrix", "extends", "schema"],
)
@pytest.mark.parametrize("by_link", [False, True])
def test_another_folder_stays_private(tmp_path: Path, content: str, by_link: bool) -> None:
    """Who extends a file of another folder may not be its reader: nothing of it is quoted."""
    (tmp_path / "site").mkdir()
    (tmp_path / "etc").mkdir()
    secret = tmp_path / "etc" / "shadow.yaml"
    secret.write_text(content)
    other = "../etc/shadow.yaml"
    if by_link:
        (tmp_path / "site" / "link.yaml").symlink_to(secret)
        other = "./link.yaml"
    path = extending(tmp_path / "site" / "m.yaml", other)

    line = refusal(path)
    assert line.startswith(f"{path}:2:10: {tmp_path}/site/{other.removeprefix('./')} is no matrix")
    assert f"netprobe check {tmp_path}/site/" in line
    assert not [piece for piece in (SECRET, "$6$", "19000") if piece in line]


def test_a_file_in_the_same_folder_is_quoted(tmp_path: Path) -> None:
    """In its own folder, or below, a file's problems are told with their places."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.yaml").write_text("schema: netprobe.matrix/1\nname: 5\n")
    path = extending(tmp_path / "a.yaml", "./below/b.yaml")
    with pytest.raises(FileErrors, match=r"b\.yaml:2:7: 5 is a number, expected text"):
        load_matrices([path])


def test_a_good_file_of_another_folder(tmp_path: Path) -> None:
    """A matrix in another folder is extended as any other, and so are the bundled ones."""
    (tmp_path / "site").mkdir()
    (tmp_path / "base.yaml").write_bytes(BASE.read_bytes())
    extended = load_matrices([extending(tmp_path / "site" / "m.yaml", "../base.yaml")])
    away = os.path.relpath(bundled_path("dce"), tmp_path / "site")

    assert extended[0].requirements == load_matrices([str(BASE)])[0].requirements
    assert load_matrices([extending(tmp_path / "site" / "d.yaml", away)])
    assert load_matrices([extending(tmp_path / "site" / "e.yaml", "dce")])

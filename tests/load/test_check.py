"""``netprobe check FILE...``: the kind of each file is found, and its content summed up."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.check import check_accepted_names, check_files
from netprobe.load.matrix.file import load_matrices
from netprobe.load.request import load_request
from netprobe.load.starter import starter_inventory

GOOD = Path(__file__).parent / "good"


def test_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line a file says what it is; a bundled name is its file."""
    monkeypatch.chdir(GOOD)

    assert check_files(["base.yaml", "inventory.yaml", "base.yaml"]).splitlines() == [
        "base.yaml: matrix base, 4 requirements, no problems",
        "inventory.yaml: inventory, 5 hosts, no problems",
    ]
    assert check_files(["dce"]).startswith("dce: matrix dce, ")


def test_notes(tmp_path: Path) -> None:
    """What an inventory's reader should know stands under its line."""
    path = tmp_path / "i.yaml"
    path.write_text(
        "schema: netprobe.inventory/1\nhosts:\n  a: {address: x, roles: [a]}\n"
        "  b: {address: x, roles: [a], vantage: none}\n"
    )

    assert check_files([str(path)]).splitlines() == [
        f"{path}: inventory, 2 hosts, no problems",
        "  note: hosts a, b share the address x: is it a virtual one?",
    ]


def test_addresses_of_init_are_a_note(tmp_path: Path) -> None:
    """Nothing is wrong with the file, but a run would refuse it."""
    path = tmp_path / "i.yaml"
    path.write_text(starter_inventory(load_matrices(["okd-hcp"])))

    first, *notes = check_files([str(path)]).splitlines()

    assert first.endswith("no problems")
    assert [note[:16] for note in notes] == ["  note: worker-0"]
    assert notes[0].endswith("that `netprobe init` wrote: `netprobe run` refuses them")


def test_names_of_accepted_flows(tmp_path: Path) -> None:
    """Each that the run does not know is a problem at its place; other runs' matrices are not."""
    path = tmp_path / "a.yaml"
    text = (GOOD / "accepted.yaml").read_text().replace("requirement: icmp", "requirement: api")
    chosen, inventory, _ = load_request(
        [str(GOOD / "base.yaml")], [str(GOOD / "inventory.yaml")], []
    )
    names = [host.name for host in inventory.hosts][:2]
    requirement = chosen[0].matrix.requirements[0].id
    text = text.replace("master-0", names[0]).replace("master-1", names[1])
    for old in ("requirement: etcd", "requirement: api"):
        text = text.replace(old, f"requirement: {requirement}")
    path.write_text(text)
    check_accepted_names([str(path), str(GOOD / "base.yaml")], chosen, inventory)

    path.write_text(text.replace("matrix: base", "matrix: okd-hcp", 1))
    check_accepted_names([str(path)], chosen, inventory)

    first, _, second = text.partition("  - id: a2")
    first = first.replace(f"requirement: {requirement}", f"requirement: {requirement}x")
    first = first.replace(f"to: [{names[0]}, {names[1]}]", f"to: [{names[0]}, {names[1]}x]")
    path.write_text(f"{first}  - id: a2{second.replace('matrix: base', 'matrix: bas')}")
    with pytest.raises(FileErrors) as caught:
        check_accepted_names([str(path)], chosen, inventory)
    told = str(caught.value).splitlines()
    assert len(told) == 3
    assert told[0].startswith(
        f'{path}:5:18: unknown requirement "{requirement}x", did you mean "{requirement}"'
    )
    assert told[1].startswith(f'{path}:7:{12 + len(names[0])}: unknown host "{names[1]}x", did you')
    assert told[2].startswith(f'{path}:19:13: unknown matrix "bas", did you mean "base"')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no such file, expected a YAML file"),
        ("requirements: []\n", 'the key "schema" is missing, expected "schema: netprobe.matrix/1"'),
        ("hosts: []\n", 'the key "schema" is missing, expected "schema: netprobe.inventory/1"'),
        ("schema: netprobe.record/1\n", "this is a netprobe.record file, expected a matrix, an"),
    ],
)
def test_kinds(text: str | None, words: str, tmp_path: Path) -> None:
    """What a file was meant to be is told from its keys where it does not say so."""
    path = tmp_path / "f.yaml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(FileErrors, match=words):
        check_files([str(path)])


def test_directory(tmp_path: Path) -> None:
    """A directory with the name of a file is told as one."""
    (tmp_path / "m.yaml").mkdir()

    with pytest.raises(FileErrors, match="this is a directory, expected a YAML file"):
        check_files([str(tmp_path / "m.yaml")])

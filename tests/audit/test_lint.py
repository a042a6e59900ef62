"""A matrix as a registry of ports, checked by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.audit.lint import RegistryLint, lint_registry
from netprobe.load.matrix.file import load_matrices
from tests.audit.builders import site

ROW = "  - {{id: {0}, from: node, to: {1}, tcp: [{2}]{3}}}\n"


def _lint(folder: Path, *rows: tuple[str, ...], more: str = "") -> RegistryLint:
    text = "".join(ROW.format(*row, *[""] * (4 - len(row))) for row in rows)
    (matrix,) = load_matrices([site(folder, text, more)])
    return lint_registry(matrix)


def _said(lint: RegistryLint) -> list[str]:
    return [one.text for one in lint.problems]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        # Duplicates: the same row twice, a range, a role that implies nothing of the other.
        ((("a", "node", "80"), ("b", "node", "80")),
         "tcp 80 stands here twice: a and b hold at once, whatever the settings"),
        ((("a", "node", '"70-90"'), ("b", "node", "80")),
         "tcp 80 stands here twice: a and b hold at once, whatever the settings"),
        ((("a", "node", "80"), ("b", "db", "80")), None),
        ((("a", "node", "80"), ("b", "node", "81")), None),
        # Two owners, one owner.
        ((("a", "node", "80", ", owner: x"), ("b", "node", "80", ", owner: y")),
         "tcp 80 has two owners, x and y: a and b hold at once, whatever the settings"),
        # For the host only, and for others.
        ((("a", "node", "80"), ("b", "node", "80", ", expect: denied")),
         "tcp 80 is for the host only and for others too: a and b, whatever the settings"),
        # Settings that exclude each other, and settings that do not.
        ((("a", "node", "80", ", when: {cni: a}"), ("b", "node", "80", ", when: {cni: b}")), None),
        ((("a", "node", "80", ", when: {cni: a}"), ("b", "node", "80", ", unless: {cni: a}")),
         None),
        ((("a", "node", "80", ", when: {cni: a}"), ("b", "node", "80", ", when: {cni: [a, b]}")),
         "tcp 80 stands here twice: a and b hold at once (for example with cni=a)"),
        ((("a", "node", "80", ', when: {version: "<4.9"}'),
          ("b", "node", "80", ', when: {version: ">=4.9"}')), None),
        ((("a", "node", "80", ', when: {version: "<=4.9"}'),
          ("b", "node", "80", ', when: {version: ">=4.9"}')),
         "tcp 80 stands here twice: a and b hold at once (for example with version=4.9)"),
    ],
)  # fmt: skip
def test_rows_with_one_port(
    rows: tuple[tuple[str, ...], ...], words: str | None, tmp_path: Path
) -> None:
    """Two rows that one host may have at once are a mistake; exclusive rows are told as such."""
    lint = _lint(tmp_path, *rows)

    assert _said(lint) == ([words] if words else [])
    exclusive = words is None and len({row[2] for row in rows}) == 1 and rows[1][1] == "node"
    assert any("exclude each other" in note for note in lint.notes) == exclusive


def test_a_mistake_has_a_place(tmp_path: Path) -> None:
    """File, line and column of the later row."""
    (problem,) = _lint(tmp_path, ("a", "node", "80"), ("b", "node", "80")).problems

    assert (Path(problem.file).name, problem.line, problem.column) == ("site.yaml", 10, 6)


def test_a_row_for_a_port_that_was_given_up(tmp_path: Path) -> None:
    """Only while both hold: a version before may still have it."""
    retired = 'retired: [{tcp: [3306], purpose: gone, when: {version: ">=4.11"}}]\n'
    old = ("a", "node", "3306", ', when: {version: "<4.11"}')

    assert _said(_lint(tmp_path, ("a", "node", "3306"), more=retired)) == [
        "tcp 3306 of a was given up (gone) (for example with version=4.11)"
    ]
    assert not _said(_lint(tmp_path, old, more=retired))


def test_notes_on_ranges_and_clients(tmp_path: Path) -> None:
    """The ephemeral range, ports on the wrong side of the ranges, rows without owner, room."""
    lint = _lint(
        tmp_path,
        ("a", "node", "32768, 61000"),
        ("b", "node", "9001", ", owner: b"),
        ("c", "node", "9002", ", expect: denied"),
        more='ranges: [{tcp: ["9000-9009"], purpose: ours}]\n',
    )

    assert not lint.problems
    assert list(lint.notes) == [
        "site: ephemeral: tcp 32768 of a lies in 32768-60999, which Linux gives to clients: keep "
        "it free with net.ipv4.ip_local_reserved_ports",
        "site: range: tcp 32768 of a must be reachable, and lies outside of the documented ranges",
        "site: range: tcp 61000 of a must be reachable, and lies outside of the documented ranges",
        "site: range: tcp 9002 of c is local, and takes room in a documented range",
        "site: gap: 2 of 3 rows name no process (owner): a, c",
        "site: gap: tcp 9000-9009 (ours): 8 of 10 free: 9000, 9003-9009",
    ]


def test_the_registry_of_openshift() -> None:
    """No port twice at once; 9101, 9102, 10256 and 4789 stand twice for exclusive plugins; 39300,
    39301 and 60000 lie in the ephemeral range; only rows of CSI drivers name nobody."""
    (matrix,) = load_matrices(["openshift-host-ports"])
    lint = lint_registry(matrix)
    notes = [note.removeprefix("openshift-host-ports: ") for note in lint.notes]

    assert not lint.problems
    assert [note.split(": ")[1] for note in notes if note.startswith("exclusive")] == [
        "tcp 9101", "tcp 9102", "tcp 10256", "udp 4789",
    ]  # fmt: skip
    assert sorted(note.split()[2] for note in notes if note.startswith("ephemeral")) == [
        "39300", "39301", "60000",
    ]  # fmt: skip
    assert any(note.startswith("gap: 5 of 98 rows name no process (owner): csi") for note in notes)
    assert any(note.startswith("gap: tcp 9000-9999 (") for note in notes)

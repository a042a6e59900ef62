"""``netprobe check FILE...``: any file of ours, its kind told by its ``schema:`` line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netprobe.errors import FileErrors, Problem
from netprobe.load.inventory.discover import check_loopback, is_ansible, read_one
from netprobe.load.inventory.loopback import loopback_notes
from netprobe.load.matrix.bundled import SUFFIXES, bundled_folder, bundled_names, is_path
from netprobe.load.matrix.file import read_matrices
from netprobe.load.yaml.document import KINDS, kind_of
from netprobe.load.yaml.source import read_bytes, top_keys

_MATRIX_KEYS = {"extends", "requirements", "roles", "override", "waive", "name", "title"}


def check_files(paths: Sequence[str]) -> str:
    """One line a file that says what is in it; FileErrors with every problem of all files."""
    problems: list[Problem] = []
    lines = [_check(path, problems) for path in dict.fromkeys(paths)]
    if problems:
        raise FileErrors(problems)
    return "\n".join(lines)


def _check(given: str, problems: list[Problem]) -> str:
    path = _path(given)
    kind = _kind(path)
    if kind not in KINDS:
        words = f"this is a netprobe.{kind} file, expected a matrix or an inventory"
        problems.append(Problem(path, 0, 0, words))
        return ""
    if kind == "inventory":
        inventory = read_one(path, problems)
        if inventory is None:
            return ""
        check_loopback(inventory, problems)
        every = (*inventory.notes, *loopback_notes(inventory.hosts))
        notes = "".join(f"\n  note: {note}" for note in every)
        return f"{given}: inventory, {_count(len(inventory.hosts), 'host')}, no problems{notes}"
    matrices = read_matrices([path], problems)
    if not matrices:
        return ""
    count = _count(len(matrices[0].requirements), "requirement")
    return f"{given}: matrix {matrices[0].name}, {count}, no problems"


def _path(given: str) -> str:
    """A bundled name stands for its file, unless there is a file of this name."""
    if not is_path(given) and not Path(given).exists() and given in bundled_names():
        return str(bundled_folder() / f"{given}.yaml")
    return given if is_path(given) else f"./{given}"


def _kind(path: str) -> str:
    """Files without ``schema:`` are told by their keys; what is neither is read as a matrix."""
    if Path(path).is_dir():
        return "matrix" if path.endswith(SUFFIXES) else "inventory"
    raw = read_bytes(path, [], path)
    keys = (top_keys(raw) or {}) if raw else {}
    kind = kind_of(keys.get("schema"))
    if kind is not None:
        return kind
    is_inventory = "hosts" in keys or (not _MATRIX_KEYS & set(keys) and is_ansible(path))
    return "inventory" if is_inventory else "matrix"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

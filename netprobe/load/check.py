"""``netprobe check FILE...``: any file that people write; its ``schema:`` line tells the kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct

from netprobe.errors import Problem, all_problems
from netprobe.load.accepted import check_names, read_accepted
from netprobe.load.inventory.discover import is_ansible, read_inventories
from netprobe.load.inventory.suspects import placeholder_notes
from netprobe.load.manifest.file import MANIFEST_KEYS
from netprobe.load.manifest.hosts import make_role_book
from netprobe.load.manifest.manifests import GivenManifests, check_manifests, read_manifests
from netprobe.load.manifest.settings import word_unknown_values
from netprobe.load.matrix.bundled import SUFFIXES, bundled_names, bundled_path, is_path
from netprobe.load.matrix.file import read_matrices
from netprobe.load.yaml.document import KINDS, kind_of
from netprobe.load.yaml.source import read_bytes, top_keys
from netprobe.model.accepted import MAX_ACCEPTANCE_DAYS, Acceptance
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix
from netprobe.model.printable import word_note

_MATRIX_KEYS = {"extends", "requirements", "roles", "override", "waive", "name", "title"}


class GivenBeside(Struct, frozen=True):
    """Manifests to check, and what a run would hold them against."""

    manifests: GivenManifests
    matrices: Sequence[str] = ()
    sets: Sequence[str] = ()


def check_files(
    paths: Sequence[str],
    max_days: int = MAX_ACCEPTANCE_DAYS,
    beside: GivenBeside | None = None,
) -> str:
    """Give one line of contents for each file; FileErrors with every problem of all files.

    Manifests ``beside`` them are held against all inventories among the files.
    ``max_days``: how long an accepted failure may be accepted.
    """
    with all_problems() as problems:
        lines = [_check_file(path, problems, max_days) for path in dict.fromkeys(paths)]
        if beside is not None:
            lines += _check_manifests(beside, list_inventories(paths), problems)
    return "\n".join(lines)


def is_manifest(given: str) -> bool:
    """Tell whether a file is a manifest: what Kubernetes and installers read, and netprobe not."""
    path = _path_of(given)
    if not os.path.isfile(path):
        return False
    raw = read_bytes(path, []) or b""
    keys = top_keys(raw) or {}
    return "schema" not in keys and bool(MANIFEST_KEYS & set(keys))


def list_inventories(paths: Sequence[str]) -> tuple[str, ...]:
    """List the inventories among these files."""
    given = dict.fromkeys(map(_path_of, paths))
    return tuple(path for path in given if _find_kind(path) == "inventory")


def _find_kind(path: str) -> str:
    return _guess_kind(path, b"" if os.path.isdir(path) else read_bytes(path, []) or b"")


def _check_manifests(
    beside: GivenBeside, inventories: Sequence[str], problems: list[Problem]
) -> Iterator[str]:
    """Give a line for each file, and notes. Problems of other files are told by these."""
    given = beside.manifests
    manifests = read_manifests(given, problems)
    hosts = read_inventories(inventories, []).hosts if inventories else ()
    book = make_role_book(read_matrices(beside.matrices, []))
    told = check_manifests(manifests, hosts, book, beside.sets, problems)
    for path in dict.fromkeys(given.files):
        titles = (one.title for one in manifests.objects if one.document.file == path and one.kind)
        yield f"{path}: {', '.join(dict.fromkeys(titles))}, no problems"
    if manifests.said and not beside.matrices:
        told += word_unknown_values(manifests.said, read_matrices(bundled_names(), []))
    yield from map(word_note, (*manifests.notes, *told))


def check_accepted_names(
    paths: Sequence[str], chosen: Sequence[ChosenMatrix], inventory: Inventory
) -> None:
    """Hold the accepted flows among these files against a run. Raises FileErrors."""
    with all_problems() as problems:
        for path in map(_path_of, dict.fromkeys(paths)):
            if _find_kind(path) == "accepted":
                check_names(path, chosen, inventory, problems)


def _check_file(given: str, problems: list[Problem], max_days: int) -> str:
    path = _path_of(given)
    raw = b"" if os.path.isdir(path) else read_bytes(path, problems)
    if raw is None:
        return ""
    kind = _guess_kind(path, raw)
    if kind not in KINDS:
        words = f"this is a netprobe.{kind} file, expected a matrix, an inventory or accepted flows"
        problems.append(Problem(path, 0, 0, words))
        return ""
    if kind == "inventory":
        inventory = read_inventories([path], problems)
        told = (*inventory.notes, *placeholder_notes(inventory.hosts))
        notes = "".join(f"\n  note: {note}" for note in told)
        return f"{given}: inventory, {_count_text(inventory.hosts, 'host')}, no problems{notes}"
    if kind == "accepted":
        return _word_accepted(given, read_accepted([path], problems, max_days))
    return "".join(
        f"{given}: matrix {matrix.name}, {_count_text(matrix.requirements, 'requirement')}, "
        "no problems"
        for matrix in read_matrices([path], problems)
    )


def _word_accepted(given: str, entries: Sequence[Acceptance]) -> str:
    today = date.today()
    ended = (one for one in entries if one.has_ended(today))
    later = (one for one in entries if not one.has_begun(today))
    told = [f"{one.id} ended on {one.until}: it holds no more" for one in ended]
    told += [f"{one.id} begins on {one.since}: it does not hold yet" for one in later]
    notes = "".join(f"\n  note: {words}" for words in told)
    noun = "entry" if len(entries) == 1 else "entries"
    return f"{given}: accepted flows, {len(entries)} {noun}, no problems{notes}"


def _path_of(given: str) -> str:
    """A bundled name stands for its file, unless there is a file of this name."""
    if not is_path(given) and not os.path.exists(given) and given in bundled_names():
        return str(bundled_path(given))
    return given if is_path(given) else f"./{given}"


def _guess_kind(path: str, raw: bytes) -> str:
    """Guess the kind of a file without ``schema:`` by its keys; in doubt it is a matrix."""
    if os.path.isdir(path):
        return "matrix" if path.endswith(SUFFIXES) else "inventory"
    keys = top_keys(raw) or {}
    kind = kind_of(keys.get("schema"))
    if kind is not None:
        return kind
    if "accepted" in keys:
        return "accepted"
    is_inventory = "hosts" in keys or (not _MATRIX_KEYS & set(keys) and is_ansible(path, raw))
    return "inventory" if is_inventory else "matrix"


def _count_text(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"

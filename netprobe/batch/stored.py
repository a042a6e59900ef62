"""A run in batch mode as its owner has it: a bundle with result files, or an engine's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netprobe.batch.bundle import open_bundle
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.engine_folder import ENGINE_FILE, results_file
from netprobe.batch.limits import MOST_PLAN_BYTES
from netprobe.batch.request import BatchRequest, read_request
from netprobe.batch.results import HostRecording, read_results
from netprobe.errors import RequestError
from netprobe.files import read_file, write_secret
from netprobe.model.printable import clean

PLAN_FILE = "plan.json"
MOST_WORDS = 400


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What was asked, what hosts wrote, and ``missing``: why hosts have no results: in the words of
    an engine, or because their files were refused. ``notes``: on files that count for no host."""

    request: BatchRequest
    recordings: tuple[HostRecording, ...]
    missing: Mapping[str, str]
    notes: tuple[str, ...] = ()


def open_run(path: Path, results: Sequence[Path]) -> StoredRun:
    """Open a bundle and its results, or a folder. Raises RequestError, also where there are results
    and all of them are refused.

    Of ``results`` a folder stands for all files in it that end in .npr. One bad file is one host
    without results.
    """
    if os.path.isdir(path):
        if results:
            raise RequestError(f"{path}: is a folder, which holds its results itself")
        return _open_folder(path)
    opened = open_bundle(path)
    request = read_request(opened.plan, str(path))
    files = [(file, None) for one in results for file in _list_results(one)]
    stored = _read_all(request, files, {})
    if files and not stored.recordings and not stored.missing:
        raise RequestError("\n".join(stored.notes))
    return stored


def _read_all(
    request: BatchRequest, files: Iterable[tuple[Path, str | None]], words: Mapping[str, str]
) -> StoredRun:
    """Read files, each with the host that it must be of (None: any). A file that is refused counts
    for nothing, and its host has no results where it has no other file."""
    identity = request.identity
    found: list[HostRecording] = []
    refused: list[ResultsRefused] = []
    for path, host in files:
        try:
            found.append(_add_reason(read_results(path, identity, host=host), words))
        except ResultsRefused as error:
            refused.append(error)
    there = {one.name for one in found if one.header is not None}
    missing: dict[str, list[str]] = {}
    for one in refused:
        for name in (name for name in one.hosts if name not in there):
            missing.setdefault(name, []).append(str(one))
    for name, text in words.items():
        missing.setdefault(name, []).append(f"{name}: {text}")
    joined = {name: "; ".join(some) for name, some in missing.items()}
    notes = tuple(str(one) for one in refused if there.issuperset(one.hosts))
    return StoredRun(request, tuple(found), joined, notes)


def _add_reason(one: HostRecording, words: Mapping[str, str]) -> HostRecording:
    """Add to results that end early why they do, where an engine knows it."""
    reason = words.get(one.name)
    return replace(one, words=f"{one.words}: {reason}") if one.is_cut and reason else one


def write_private(path: Path, data: bytes) -> None:
    """Write a file that holds the run's key: nobody else may read it. Raises RequestError."""
    try:
        write_secret(str(path), data)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None


def end_rounds(folder: Path) -> None:
    """Tell the engine that no host has anything left to do."""
    path = folder / ENGINE_FILE
    told = json.loads(path.read_bytes())
    write_private(path, json.dumps({**told, "hosts": {}}, indent=1).encode("ascii"))


def _open_folder(folder: Path) -> StoredRun:
    plan = folder / PLAN_FILE
    data = read_file(str(plan), "a folder of `netprobe bundle --folder`", MOST_PLAN_BYTES)
    request = read_request(data, str(plan))
    files = {name: results_file(folder, name) for name in request.hosts}
    there = [(file, name) for name, file in files.items() if os.path.lexists(file)]
    words = {
        name: words
        for name, file in files.items()
        if (words := _read_words(file.with_suffix(".error")))
    }
    return _read_all(request, there, words)


def _list_results(path: Path) -> Sequence[Path]:
    found = sorted(path.glob("*.npr")) if os.path.isdir(path) else []
    return found or (path,)


def _read_words(path: Path) -> str:
    """Read what an engine said of a host that it did not reach; nothing where it said nothing."""
    try:
        data = read_file(str(path), "the words of an engine")
    except RequestError:
        return ""
    return clean(" ".join(data.decode("utf-8", "replace")[:MOST_WORDS].split()))

"""A run in batch mode as its owner has it: a bundle with result files, or an engine's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netprobe.batch.bundle import open_bundle
from netprobe.batch.engine_folder import ENGINE_FILE, results_file
from netprobe.batch.request import BatchRequest, read_request
from netprobe.batch.results import HostRecording
from netprobe.batch.rounds import read_recordings
from netprobe.errors import RequestError
from netprobe.files import write_secret
from netprobe.model.printable import clean

PLAN_FILE = "plan.json"
MOST_WORDS = 400


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What was asked, what hosts wrote, and ``missing``: why hosts wrote nothing, as far as an
    engine said it."""

    request: BatchRequest
    recordings: tuple[HostRecording, ...]
    missing: Mapping[str, str]


def open_run(path: Path, results: Sequence[Path]) -> StoredRun:
    """Open a bundle and its results, or a folder. Raises RequestError.

    Of ``results`` a folder stands for all files in it that end in .npr.
    """
    if path.is_dir():
        if results:
            raise RequestError(f"{path}: is a folder, which holds its results itself")
        return _open_folder(path)
    opened = open_bundle(path)
    request = read_request(opened.plan, str(path))
    files = [file for one in results for file in _list_results(one)]
    return StoredRun(request, tuple(read_recordings(request, files)), {})


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
    try:
        request = read_request(plan.read_bytes(), str(plan))
    except OSError as error:
        words = f"cannot be read: {error.strerror}; expected a folder of `netprobe bundle --folder`"
        raise RequestError(f"{plan}: {words}") from None
    files = {name: results_file(folder, name) for name in request.hosts}
    there = [file for file in files.values() if file.exists()]
    missing = {
        name: f"{name}: {words}"
        for name, file in files.items()
        if (words := _read_words(file.with_suffix(".error")))
    }
    return StoredRun(request, tuple(read_recordings(request, there)), missing)


def _list_results(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    found = sorted(path.glob("*.npr"))
    if not found:
        raise RequestError(f"{path}: holds no file that ends in .npr")
    return found


def _read_words(path: Path) -> str:
    """Read what an engine said of a host that it did not reach; nothing where it said nothing."""
    try:
        return clean(" ".join(path.read_text("utf-8", "replace")[:MOST_WORDS].split()))
    except OSError:
        return ""

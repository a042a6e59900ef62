"""Reads what hosts have written: as far as it is whole, and refusing what is not of this run.

A run in batch mode as its owner has it: a bundle with result files, or an engine's folder.
"""

from __future__ import annotations

import json
import os
import zlib
from base64 import b85decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.agent.wire.answers import HelloLine
from netprobe.agent.wire.batch import IN_RESULTS, PhaseClock, ResultHeader
from netprobe.agent.wire.codec import decode_message
from netprobe.batch.bundle import open_bundle
from netprobe.batch.checked_lines import BatchIdentity, LineReader, ResultsRefused
from netprobe.batch.engine_folder import ENGINE_FILE, results_file
from netprobe.batch.file_names import find_host
from netprobe.batch.limits import MOST_PLAN_BYTES, Allowance, count_values
from netprobe.batch.messages import MessageSorter
from netprobe.batch.request import BatchRequest, read_request
from netprobe.errors import FileErrors, RequestError
from netprobe.files import read_file, write_secret
from netprobe.model.printable import clean

# After these a host has nothing more to say of a round.
WHOLE = frozenset(("told", "end"))
# Five characters are four bytes.
PIECE_BYTES = 5 * 20_000

PLAN_FILE = "plan.json"
MOST_WORDS = 400


class HostRecording(Struct, frozen=True):
    """What one host has written, in the order in which it happened.

    ``orders``: what it carried out and has answers to, its own ones too, each before its answers.
    ``answers``: by the ids of orders. ``faults``: bugs that name no order. ``is_cut``: something
    is missing at the end; ``words``: what, for a reader.
    """

    source: str
    name: str
    header: ResultHeader | None
    hello: HelloLine | None = None
    marks: tuple[PhaseClock, ...] = ()
    orders: tuple[Any, ...] = ()
    answers: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    is_cut: bool = True
    words: str = ""


def read_results(
    source: Path | Iterable[bytes],
    run: BatchIdentity,
    *,
    host: str | None = None,
    label: str | None = None,
) -> HostRecording:
    """Read one host's results: a file, or its lines in any pieces, which ``label`` names.

    ``host``: whose they must be; None: a file's own name must not be that of another host. Lines of
    banners are skipped, and lines that came twice count once. Raises ResultsRefused, after bounded
    time and memory: no file may hold more than the plan allows.
    """
    if isinstance(source, Path):
        label = label or str(source)
        host = host or find_host(source.stem, run.hosts.values())
        data = _read_file(source, label, run, host)
    else:
        data = b"".join(source)
    label = label or "results"
    lines = LineReader(label, run, host).read(data)
    header = lines.header
    if header is None:
        if host is None:
            raise ResultsRefused(label, "holds no results: not even its first line is whole")
        return HostRecording(label, host, None, words="holds no results")
    allowance = run.allow(header.name)
    found = MessageSorter(run, header.host, allowance.asked)
    try:
        for message in _open_lines(lines.contents, allowance):
            found.take(message)
    except (ValueError, zlib.error) as error:
        # The line's MAC is genuine, so that the fault is the host's own.
        words = f"holds what no host of this version writes ({error})"
        raise ResultsRefused(label, words, (header.name,)) from None
    is_cut = lines.is_partial or not found.marks or found.marks[-1].phase not in WHOLE
    return HostRecording(
        label, header.name, header, found.hello, tuple(found.marks), tuple(found.orders),
        {number: tuple(some) for number, some in found.answers.items()},
        is_cut, _word_cut(found.marks, len(lines.contents) + 1) if is_cut else "",
    )  # fmt: skip


def _read_file(path: Path, label: str, run: BatchIdentity, host: str | None) -> bytes:
    """Read a regular file or a pipe, and no more than the plan allows. Raises ResultsRefused."""
    most = run.allow(host).bytes
    try:
        return read_file(str(path), "results of a host", most)
    except FileErrors as error:
        words = error.problems[0].text
        raise ResultsRefused(label, words, () if host is None else (host,)) from None


def _open_lines(contents: Sequence[bytes], allowance: Allowance) -> Iterator[Any]:
    """Give the messages of all lines. Raises ValueError for more than there can be, before it is
    unpacked or read."""
    messages, values, left = allowance.messages, allowance.values, allowance.bytes
    for content in contents:
        text = _unpack_line(content, left)
        left -= len(text)
        messages -= text.count(b"\n") + 1
        values -= count_values(text)
        if left < 0 or messages < 0 or values < 0:
            most = f"{allowance.messages:,} messages of {allowance.bytes:,} bytes"
            raise ValueError(f"more than the plan allows, which is {most}")
        for line in text.split(b"\n"):
            yield decode_message(line, IN_RESULTS)


def _unpack_line(content: bytes, most: int) -> bytes:
    """Unpack a line, or so much of it that it is longer than ``most``. Raises ValueError."""
    unpacker = zlib.decompressobj()
    text = bytearray()
    for at in range(0, len(content), PIECE_BYTES):
        text += unpacker.decompress(b85decode(content[at : at + PIECE_BYTES]), most + 1 - len(text))
        if len(text) > most:
            return bytes(text)
    if not unpacker.eof:
        raise ValueError("a line that is cut off inside")
    return bytes(text)


def _word_cut(marks: Sequence[PhaseClock], lines: int) -> str:
    """Say what is missing, for a reader."""
    if marks and marks[-1].phase == "stopped":
        return "the host was stopped before it had finished"
    last = f"; the last that it tells is {marks[-1].phase!r}" if marks else ""
    return f"is cut off after {lines} lines{last}"


class StoredRun(Struct, frozen=True):
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

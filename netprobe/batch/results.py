"""Reads what hosts have written: as far as it is whole, and refusing what is not of this run."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b85decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from pathlib import Path
from typing import Any

from netprobe.agent.wire.answers import Fault, HelloLine
from netprobe.agent.wire.batch import BATCH_FORMAT, IN_RESULTS, PhaseClock, ResultHeader
from netprobe.agent.wire.codec import decode_message, read_record
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.result_lines import chain_mac
from netprobe.batch.keys import derive_result_key
from netprobe.errors import RequestError
from netprobe.model.printable import clean

MIB = 1024 * 1024
MOST_FILE_BYTES = 1024 * MIB
MOST_LINE_BYTES = 64 * MIB
# After these a host has nothing more to say of a round.
WHOLE = frozenset(("told", "end"))

# Engines glue lines together where one was cut off, and prompts stand before others.
_LINES = re.compile(rb"(?=NPR1 \d)")
_LINE = re.compile(rb"NPR1 (\d{1,9}) ([^ \r\n]{1,64}) ([^ \r\n]+)(\r?\n)?")


class ResultsRefused(RequestError):
    """A result file that is not of this run, or that somebody has changed. The text names it."""


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """Which results belong to a run: its id, rounds so far, hosts by their indices, and the key of
    which that of each host's results is made."""

    run: str
    results_key: bytes
    rounds: frozenset[int]
    hosts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class HostRecording:
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
    faults: tuple[Fault, ...] = ()
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
    banners are skipped, and lines that came twice count once. Raises ResultsRefused.
    """
    if isinstance(source, Path):
        label = label or str(source)
        if host is None and source.stem in run.hosts.values():
            host = source.stem
        data = _read_file(source, label)
    else:
        data = b"".join(source)
    return _FileReader(label or "results", run, host).read(data)


def _read_file(path: Path, label: str) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ResultsRefused(f"{label}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_FILE_BYTES:
        raise ResultsRefused(f"{label}: is larger than {MOST_FILE_BYTES // MIB} MiB")
    return data


class _FileReader:
    """The lines of one file, checked one after the other."""

    def __init__(self, label: str, run: BatchIdentity, host: str | None) -> None:
        self._label = label
        self._run = run
        self._host = host
        # What every line that was taken says: its MAC and its content.
        self._lines: list[tuple[bytes, bytes]] = []
        self._header: ResultHeader | None = None
        self._key = b""
        # Whether the line that is due has come, and was not what the host had written; or in parts.
        self._is_changed = False
        self._is_partial = False

    def read(self, data: bytes) -> HostRecording:
        """Read all lines, then what they hold. Raises ResultsRefused."""
        for piece in _LINES.split(data):
            if piece.startswith(b"NPR1 "):
                self._take_piece(piece)
        if self._is_changed:
            raise self._refuse_change()
        if self._header is None:
            return self._make_empty()
        messages = [one for _, content in self._lines[1:] for one in self._open_line(content)]
        recording = _sort_messages(messages)
        is_cut = recording.is_cut or self._is_partial
        words = _word_cut(recording, len(self._lines)) if is_cut else ""
        return replace(
            recording, source=self._label, name=self._header.name, header=self._header,
            is_cut=is_cut, words=words,
        )  # fmt: skip

    def _take_piece(self, piece: bytes) -> None:
        """Take a line that follows on those before. Raises ResultsRefused.

        A line that came in parts, and then again as a whole, has done no harm.
        """
        found = _LINE.match(piece)
        number = int(found[1]) if found else len(self._lines)
        if found is None or (number == len(self._lines) and not self._is_next(found)):
            self._is_partial = found is None or found[4] is None
            self._is_changed = self._is_changed or not self._is_partial
        elif number == 0 and self._lines and self._lines[0] != (found[2], found[3]):
            self._begin_again(found)
        elif number < len(self._lines):
            if self._lines[number] != (found[2], found[3]) and found[4] is not None:
                raise self._refuse_file(f"line {number} is there twice, and not alike")
        elif number > len(self._lines):
            raise self._refuse_gap(number)
        else:
            self._is_changed = self._is_partial = False
            self._lines.append((found[2], found[3]))

    def _is_next(self, found: re.Match[bytes]) -> bool:
        """Tell whether it is the line that is due. Raises ResultsRefused of another's header."""
        if not self._lines:
            return self._is_header(found)
        before = self._lines[-1][0]
        mac = chain_mac(self._key, before, len(self._lines), found[3])
        return compare_digest(mac, found[2])

    def _is_header(self, found: re.Match[bytes]) -> bool:
        """Tell whether it is the first line of a host of this run; a part of it is none. Raises
        ResultsRefused."""
        is_whole = found[4] is not None
        try:
            header = self._read_header(found[3])
        except ResultsRefused:
            if is_whole:
                raise
            return False
        key = derive_result_key(self._run.results_key, header.host)
        if not compare_digest(chain_mac(key, b"", 0, found[3]), found[2]):
            if is_whole:
                raise self._refuse_file(
                    f"says that it is of {header.name}, and was not written with the key of "
                    f"{header.name}: somebody else wrote it, or its first line was changed"
                )
            return False
        self._header, self._key = header, key
        return True

    def _begin_again(self, found: re.Match[bytes]) -> None:
        """Take the header of a host that was started a second time; the last start counts."""
        if found[4] is None:
            self._is_partial = True
            return
        self._lines, self._is_changed, self._is_partial = [], False, False
        self._is_next(found)
        self._lines.append((found[2], found[3]))

    def _read_header(self, content: bytes) -> ResultHeader:
        """Read line 0, and hold it against the run. Raises ResultsRefused."""
        try:
            fields = json.loads(content)
            if fields["format"] != BATCH_FORMAT or fields["wire"] != WIRE_VERSION:
                raise self._refuse_file("was written by another version of netprobe")
            header: ResultHeader = read_record(
                ResultHeader, [fields[name] for name in ResultHeader._fields]
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._refuse_file("its first line was changed") from None
        if header.run != self._run.run:
            raise self._refuse_file(f"is of run {clean(header.run)[:40]}, not of {self._run.run}")
        if header.round not in self._run.rounds:
            known = ", ".join(map(str, sorted(self._run.rounds)))
            raise self._refuse_file(f"is of round {header.round}; expected: {known}")
        if self._run.hosts.get(header.host) != header.name:
            raise self._refuse_file(
                f"is of {clean(header.name)[:80]}, which is no host of this run"
            )
        if self._host not in (None, header.name):
            raise self._refuse_file(
                f"is of {header.name}, not of {self._host}: were files swapped?"
            )
        return header

    def _open_line(self, content: bytes) -> Iterator[Any]:
        """Give a line's messages. Its MAC is genuine, so a fault is one of the host's own."""
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(b85decode(content), MOST_LINE_BYTES)
            if not unpacker.eof:
                raise ValueError(f"a line of more than {MOST_LINE_BYTES // MIB} MiB")
            yield from [decode_message(line, IN_RESULTS) for line in text.split(b"\n")]
        except (ValueError, zlib.error) as error:
            raise self._refuse_file(
                f"holds what no host of this version writes ({error})"
            ) from None

    def _make_empty(self) -> HostRecording:
        if self._host is None:
            raise self._refuse_file("holds no results: not even its first line is whole")
        return HostRecording(self._label, self._host, None, words="holds no results")

    def _refuse_change(self) -> ResultsRefused:
        return self._refuse_file(
            f"line {len(self._lines)} is not as the host wrote it: somebody or something changed it"
        )

    def _refuse_gap(self, number: int) -> ResultsRefused:
        if self._is_changed or self._is_partial:
            return self._refuse_change()
        due = len(self._lines)
        missing = f"line {due} is" if due == number - 1 else f"lines {due} to {number - 1} are"
        return self._refuse_file(f"{missing} missing")

    def _refuse_file(self, words: str) -> ResultsRefused:
        return ResultsRefused(f"{self._label}: {words}")


def _sort_messages(messages: Iterable[Any]) -> HostRecording:
    """Tell marks, orders and answers apart."""
    hello: HelloLine | None = None
    marks: list[PhaseClock] = []
    orders: list[Any] = []
    faults: list[Fault] = []
    answers: defaultdict[int, list[Any]] = defaultdict(list)
    for message in messages:
        identity = getattr(message, "id", None)
        if isinstance(message, HelloLine):
            hello = message
        elif isinstance(message, PhaseClock):
            marks.append(message)
        elif type(message).__name__ not in ANSWERS:
            orders.append(message)
        elif identity is not None:
            answers[identity].append(message)
        elif isinstance(message, Fault):
            faults.append(message)
    return HostRecording(
        "", "", None, hello, tuple(marks), tuple(orders),
        {identity: tuple(some) for identity, some in answers.items()}, tuple(faults),
        is_cut=not marks or marks[-1].phase not in WHOLE,
    )  # fmt: skip


def _word_cut(recording: HostRecording, lines: int) -> str:
    """Say what is missing, for a reader."""
    if recording.marks and recording.marks[-1].phase == "stopped":
        return "the host was stopped before it had finished"
    last = f"; the last that it tells is {recording.marks[-1].phase!r}" if recording.marks else ""
    return f"is cut off after {lines} lines{last}"

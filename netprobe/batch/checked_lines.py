"""The lines of a result file, held against the run: whose they are, and that nobody changed one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hmac import compare_digest
from typing import NamedTuple

from msgspec import Struct

from netprobe.agent.wire.batch import BATCH_FORMAT, ResultHeader
from netprobe.agent.wire.codec import read_record
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.result_lines import chain_mac
from netprobe.batch.limits import Allowance, allow
from netprobe.batch.script import derive_result_key, is_own_id
from netprobe.errors import RequestError
from netprobe.model.printable import clean

MOST_HEADER_BYTES = 4096

# Engines glue lines together where one was cut off, and prompts stand before others.
_BEGIN = re.compile(rb"NPR1 \d")
_LINE = re.compile(rb"NPR1 (\d{1,9}) ([^ \r\n]{1,64}) ([^ \r\n]+)(\r?\n)?")


class ResultsRefused(RequestError):
    """A result file that is not of this run, or that somebody has changed. The text names it.

    ``hosts``: whose it is, as far as its lines or its name say so.
    """

    def __init__(self, label: str, words: str, hosts: tuple[str, ...] = ()) -> None:
        super().__init__(f"{label}: {words}")
        self.hosts = hosts


class BatchIdentity(Struct, frozen=True):
    """Which results belong to a run.

    ``results_key``: of which the key of each host's results is made. ``rounds``: how many there
    were; ``hosts``: by their indices; ``next_id``: no order of a script has such an id or a higher
    one. ``flows``: how many are planned of each host.
    """

    run: str
    results_key: bytes
    rounds: int
    hosts: Mapping[int, str]
    next_id: int
    flows: Mapping[str, int]

    def allow(self, host: str | None) -> Allowance:
        """Give what one file of a host may hold; None: of any of them."""
        most = max(self.flows.values(), default=0)
        return allow(most if host is None else self.flows.get(host, 0))

    def may_have(self, host: int, order_id: int) -> bool:
        """Tell whether a host can have got this order, or have thought of it."""
        return order_id < self.next_id or is_own_id(host, order_id)


class CheckedLines(NamedTuple):
    """``contents`` of the lines behind the header, packed; ``is_partial``: the next one is there in
    parts. Without a header there are none."""

    header: ResultHeader | None
    contents: list[bytes]
    is_partial: bool


class LineReader:
    """Reads one file; ``host``: whose it must be, None: any host's of the run."""

    def __init__(self, label: str, run: BatchIdentity, host: str | None) -> None:
        self._label = label
        self._run = run
        self._host = host
        # What every line that was taken says: its MAC and its content.
        self._lines: list[tuple[bytes, bytes]] = []
        self._header: ResultHeader | None = None
        self._key = b""
        # The host that the first line says; who wrote it is another question.
        self._claimed: str | None = None
        # Whether the line that is due has come, and was not what the host had written; or in parts.
        self._is_changed = False
        self._is_partial = False

    def read(self, data: bytes) -> CheckedLines:
        """Take all lines. Raises ResultsRefused."""
        for begin, end in _find_pieces(data):
            self._take_piece(_LINE.match(data, begin, end))
        if self._is_changed:
            raise self._refuse_change()
        return CheckedLines(self._header, [one for _, one in self._lines[1:]], self._is_partial)

    def _take_piece(self, found: re.Match[bytes] | None) -> None:
        """Take a line that follows on those before. Raises ResultsRefused.

        A line that came in parts, and then again as a whole, has done no harm.
        """
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
        mac = chain_mac(self._key, self._lines[-1][0], len(self._lines), found[3])
        return compare_digest(mac, found[2])

    def _is_header(self, found: re.Match[bytes]) -> bool:
        """Tell whether it is the first line of a host of this run; a part of it is none. Raises
        ResultsRefused."""
        is_whole = found[4] is not None
        try:
            header = self._read_header(found[3])
            self._check_header(header)
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
        before = self._header
        self._lines, self._is_changed, self._is_partial = [], False, False
        self._is_next(found)
        if before is not None and self._header is not None and before.host != self._header.host:
            names = before.name, self._header.name
            raise ResultsRefused(self._label, f"holds lines of {' and of '.join(names)}", names)
        self._lines.append((found[2], found[3]))

    def _read_header(self, content: bytes) -> ResultHeader:
        """Read line 0. Raises ResultsRefused."""
        try:
            if len(content) > MOST_HEADER_BYTES:
                raise ValueError
            fields = json.loads(content)
            if fields["format"] != BATCH_FORMAT or fields["wire"] != WIRE_VERSION:
                self._claimed = str(fields.get("name"))
                raise self._refuse_file("was written by another version of netprobe")
            header: ResultHeader = read_record(
                ResultHeader, [fields[name] for name in ResultHeader._fields]
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._refuse_file("its first line was changed") from None
        self._claimed = header.name
        return header

    def _check_header(self, header: ResultHeader) -> None:
        """Hold line 0 against the run. Raises ResultsRefused."""
        if header.run != self._run.run:
            raise self._refuse_file(f"is of run {clean(header.run)[:40]}, not of {self._run.run}")
        if not 1 <= header.round <= self._run.rounds:
            rounds = f"1 to {self._run.rounds}" if self._run.rounds > 1 else "1"
            raise self._refuse_file(f"is of round {header.round}; expected: {rounds}")
        if self._run.hosts.get(header.host) != header.name:
            raise self._refuse_file(
                f"is of {clean(header.name)[:80]}, which is no host of this run"
            )
        if self._host not in (None, header.name):
            raise self._refuse_file(
                f"is of {header.name}, not of {self._host}: were files swapped?"
            )

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
        known = (self._host, self._header and self._header.name, self._claimed)
        owner = next((one for one in known if one in self._run.hosts.values()), None)
        return ResultsRefused(self._label, words, () if owner is None else (owner,))


def _find_pieces(data: bytes) -> Iterator[tuple[int, int]]:
    """Give begin and end of what may be a line each."""
    begin: int | None = None
    for found in _BEGIN.finditer(data):
        if begin is not None:
            yield begin, found.start()
        begin = found.start()
    if begin is not None:
        yield begin, len(data)

"""Results on disk, so that memory stays flat however many come; read back in plan order."""

from __future__ import annotations

import contextlib
import heapq
import operator
import os
import pickle
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO

from netprobe.errors import NetprobeError
from netprobe.model.result import Result

# About 10 MB of results; fewer than that, an ordinary run, never touch the disk.
CHUNK_RESULTS = 20_000
# Results packed together: few enough to merge hundreds of runs, enough to pack well.
BATCH_RESULTS = 128

_NAMES = Result.__struct_fields__
_as_tuple = operator.attrgetter(*_NAMES)

FileSlice = tuple[int, int]  # offset and length in the file


def place(result: Result) -> tuple[tuple[int, int, int], str, int]:
    """Sort key of every report: place in the plan, address (a name has several), port."""
    return (result.order, result.address, -1 if result.port is None else result.port)


class Spool:
    """Takes results in any order and gives them back sorted, as often as asked.

    Full chunks are sorted and written to an unlinked temporary file (as pickle, which only this
    process reads); reading merges them. Raises NetprobeError where that file cannot be written.
    """

    def __init__(self, chunk_results: int = CHUNK_RESULTS) -> None:
        self._chunk_results = chunk_results
        self._chunk: list[Result] = []
        self._runs: list[list[FileSlice]] = []
        self._file: IO[bytes] | None = None

    def add(self, result: Result) -> None:
        """Keep one result."""
        self._chunk.append(result)
        if len(self._chunk) >= self._chunk_results:
            self._spill_to_disk()

    def __iter__(self) -> Iterator[Result]:
        self._chunk.sort(key=place)
        runs: list[Iterator[Result]] = [self._read_slices(run) for run in self._runs]
        return heapq.merge(*runs, iter(tuple(self._chunk)), key=place)

    def close(self) -> None:
        """Give the disk space back."""
        if self._file is not None:
            # What its buffer still holds is written once more, on a disk that may be full.
            with contextlib.suppress(OSError):
                self._file.close()

    def _spill_to_disk(self) -> None:
        self._chunk.sort(key=place)
        starts = range(0, len(self._chunk), BATCH_RESULTS)
        try:
            if self._file is None:
                # Open as long as the spool lives; close() ends it.
                self._file = tempfile.TemporaryFile(prefix="netprobe-")  # noqa: SIM115
            self._runs.append([self._write_slice(self._file, start) for start in starts])
        except OSError as error:
            folder = tempfile.gettempdir()
            raise NetprobeError(
                f"cannot keep the results in {folder}: {error.strerror}; set TMPDIR to a folder "
                "with more room"
            ) from error
        self._chunk = []

    def _write_slice(self, file: IO[bytes], start: int) -> FileSlice:
        rows = [_as_tuple(result) for result in self._chunk[start : start + BATCH_RESULTS]]
        packed = zlib.compress(pickle.dumps(rows, pickle.HIGHEST_PROTOCOL), 1)
        offset = file.seek(0, os.SEEK_END)
        file.write(packed)
        file.flush()
        return offset, len(packed)

    def _read_slices(self, run: list[FileSlice]) -> Iterator[Result]:
        assert self._file is not None
        for offset, length in run:
            packed = os.pread(self._file.fileno(), length, offset)
            for row in pickle.loads(zlib.decompress(packed)):
                yield Result(**dict(zip(_NAMES, row, strict=True)))

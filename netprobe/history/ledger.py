"""The file that keeps looks: SQLite, one transaction a look.

A look is kept twice: as the run's own file, compressed, for the report of that moment, and as what
did not pass, for the outages. What is asked, and what fails, is the same in many looks and kept
once. Nothing is ever rewritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Self

from netprobe.errors import NetprobeError, RequestError
from netprobe.history.looks import failures_to_json, flows_from_json, flows_to_json, look_from_json
from netprobe.model.outage import FlowPorts, RunLook

# What sqlite3 writes into the header of the file: "npHi", and the number of the schema.
APPLICATION: Final = 0x6E704869
SCHEMA: Final = 1
# So long a writer waits for another one.
BUSY_S: Final = 10.0
_HEADER: Final = b"SQLite format 3\x00"
_TABLES: Final = """
CREATE TABLE text (id INTEGER PRIMARY KEY, digest BLOB UNIQUE NOT NULL, packed BLOB NOT NULL);
CREATE TABLE look (
    id INTEGER PRIMARY KEY, begun REAL NOT NULL, decided REAL NOT NULL, name TEXT NOT NULL,
    asked INTEGER NOT NULL REFERENCES text, failures INTEGER NOT NULL REFERENCES text,
    run INTEGER UNIQUE NOT NULL REFERENCES text
);
CREATE INDEX look_begun ON look (begun);
"""


class HistoryFile:
    """A history that is open. Use it as a context manager."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, look: RunLook, name: str, run: bytes) -> bool:
        """Keep a look, and the file of its run; False: that file is there already."""
        with self._writing() as connection:
            if connection.execute(
                "SELECT 1 FROM look JOIN text ON look.run = text.id WHERE digest = ?",
                [_hash_text(run)],
            ).fetchone():
                return False
            asked, failures = map(_pack_json, (flows_to_json(look.asked), failures_to_json(look)))
            ids = [self._keep_text(text) for text in (asked, failures, run)]
            connection.execute(
                "INSERT INTO look (begun, decided, name, asked, failures, run)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [look.begun, look.decided, name, *ids],
            )
        return True

    def _keep_text(self, text: bytes) -> int:
        connection, digest = self._connection, _hash_text(text)
        connection.execute(
            "INSERT OR IGNORE INTO text (digest, packed) VALUES (?, ?)",
            [digest, zlib.compress(text)],
        )
        found = connection.execute("SELECT id FROM text WHERE digest = ?", [digest]).fetchone()
        return int(found[0])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise NetprobeError(f"cannot write {self._path}: {error}") from error

    def looks(self) -> Iterator[RunLook]:
        """Give all looks, in the order of their times."""
        asked = lru_cache(64)(self._read_asked)
        with self._reading() as rows:
            for begun, decided, asked_id, failures_id in rows:
                data = json.loads(self._read_text(failures_id))
                yield look_from_json(begun, decided, asked(asked_id), data)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        try:
            yield self._connection.execute(
                "SELECT begun, decided, asked, failures FROM look ORDER BY begun, id"
            )
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            raise NetprobeError(f"cannot read {self._path}: {error}") from error

    def _read_asked(self, identity: int) -> FlowPorts:
        return flows_from_json(json.loads(self._read_text(identity)))

    def _read_text(self, identity: int) -> bytes:
        found = self._connection.execute("SELECT packed FROM text WHERE id = ?", [identity])
        return zlib.decompress(found.fetchone()[0])

    def run_at(self, moment: float) -> bytes:
        """Give the file of the last run that began at that moment or before.

        Raises RequestError where there is none.
        """
        found = self._connection.execute(
            "SELECT run FROM look WHERE begun <= ? ORDER BY begun DESC, id DESC LIMIT 1", [moment]
        ).fetchone()
        if found is None:
            at = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            raise RequestError(f"--when: {self._path} has no look at {at} or before")
        return self._read_text(found[0])


def open_ledger(path: str, *, create: bool = False) -> HistoryFile:
    """Open a history; ``create``: make it where there is none.

    Raises RequestError where there is no such file, or it is no history of this schema; it is not
    touched then. Raises NetprobeError where it cannot be opened.
    """
    if not os.path.exists(path):
        if not create:
            raise RequestError(f"{path}: there is no history; netprobe history add RUN makes one")
        _create_file(path)
    else:
        _refuse_others(path)
    try:
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise NetprobeError(f"cannot open {path}: {error}") from error
    return HistoryFile(path, connection)


def _create_file(path: str) -> None:
    """Make it under another name first: a history is whole, or it is not there."""
    temporary = f"{path}.{os.getpid()}.new"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.executescript(f"PRAGMA application_id = {APPLICATION}; BEGIN; {_TABLES}"
                                     f"PRAGMA user_version = {SCHEMA}; COMMIT;")  # fmt: skip
        os.link(temporary, path)
    except FileExistsError:
        pass  # another one was quicker
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise NetprobeError(f"cannot make {path}: {reason}") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _refuse_others(path: str) -> None:
    """Raises RequestError for a file that is no history, or one of another schema."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error
    # https://www.sqlite.org/fileformat2.html, section 1.3: the user's number is at 60, the
    # application's at 68.
    if head[:16] != _HEADER or int.from_bytes(head[68:72], "big") != APPLICATION:
        raise RequestError(f"{path}: this is no history of netprobe; it is left as it is")
    schema = int.from_bytes(head[60:64], "big")
    if schema != SCHEMA:
        raise RequestError(
            f"{path}: this is a history of schema {schema}, expected {SCHEMA}; it is left as it is"
        )


def _hash_text(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _pack_json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii")

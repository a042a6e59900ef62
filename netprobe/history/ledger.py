"""The file that keeps looks: SQLite, one transaction a look.

A look is kept twice: as the run's own file, compressed, for the report of that moment, and as what
it asked and what did not pass, for the outages. These flows and each finding are texts of their
own: they are the same in many looks, kept once, and read once. Nothing is rewritten but looks of a
watch that saw the same as those around them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from netprobe.errors import NetprobeError, RequestError
from netprobe.files import is_special, open_file
from netprobe.history.looks import (
    AskedFlows,
    asked_to_json,
    finding_from_json,
    finding_to_json,
    flows_from_json,
    flows_to_json,
    mark_from_json,
    mark_to_json,
    required_from_json,
    required_to_json,
)
from netprobe.model.outage import FlowPorts, RunLook, SeenFinding
from netprobe.model.ports import Ports
from netprobe.model.printable import clean
from netprobe.model.required import RequiredFlows

# What sqlite3 writes into the header of the file: "npHi", and the number of the schema.
APPLICATION: Final = 0x6E704869
SCHEMA: Final = 2
# So long a writer waits for another one.
BUSY_S: Final = 10.0
# What comes of bytes that something else has changed.
_DAMAGES: Final = (
    sqlite3.Error, zlib.error, ValueError, TypeError, LookupError, ArithmeticError, OSError,
)  # fmt: skip
# What begins the list of the parts of a run's file, and how many lines a part has, about.
_PARTS: Final = b"parts "
_PART_LINES: Final = 64
_HEADER: Final = b"SQLite format 3\x00"
_TABLES: Final = """
CREATE TABLE text (id INTEGER PRIMARY KEY, digest BLOB UNIQUE NOT NULL, packed BLOB NOT NULL);
CREATE TABLE look (
    id INTEGER PRIMARY KEY, begun REAL NOT NULL, decided REAL NOT NULL, retried REAL,
    asked INTEGER NOT NULL REFERENCES text, seen INTEGER NOT NULL REFERENCES text,
    run INTEGER NOT NULL REFERENCES text
);
CREATE INDEX look_begun ON look (begun);
CREATE INDEX look_run ON look (run);
CREATE TABLE held (
    host TEXT NOT NULL, protocol TEXT NOT NULL, address TEXT NOT NULL, ports TEXT NOT NULL,
    PRIMARY KEY (host, protocol, address)
);
CREATE TABLE told (
    receiver TEXT NOT NULL, finding TEXT NOT NULL, status TEXT NOT NULL,
    PRIMARY KEY (receiver, finding)
);
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

    def add(self, look: RunLook, run: bytes) -> bool:
        """Keep a look, and the file of its run; False: that run is there already."""
        with self._writing():
            values = self._keep_look(look)
            # Two files of one run, its record and its report, are one look.
            if self._connection.execute(
                "SELECT 1 FROM look WHERE run = (SELECT id FROM text WHERE digest = ?)"
                " OR (begun, decided, retried, asked, seen) IS (?, ?, ?, ?, ?)",
                [_hash_text(run), *values],
            ).fetchone():
                self._connection.execute("ROLLBACK")
                return False
            self._insert_look(values, self._keep_text(run))
        return True

    def follow(self, look: RunLook, run: bytes | None) -> None:
        """Keep the next look of a watch; ``run`` None: the report of the one before holds for it.

        Of looks in a row that saw the same, the first and the last stay.
        """
        with self._writing():
            values = self._keep_look(look)
            last = self._connection.execute(
                "SELECT id, asked, seen, run FROM look ORDER BY id DESC LIMIT 2"
            ).fetchall()
            kept = last[0][3] if run is None else self._keep_parts(run)
            if [one[1:] for one in last] == [(*values[3:], kept)] * 2:
                self._connection.execute("DELETE FROM look WHERE id = ?", [last[0][0]])
            self._insert_look(values, kept)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is kept, or nothing. Raises NetprobeError."""
        with self._guard("write"):
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def _keep_look(self, look: RunLook) -> list[Any]:
        """Keep what a look asked and saw, and give the values of its row."""
        seen: dict[str, Any] = {
            "findings": [self._keep_json(finding_to_json(one)) for one in look.findings],
            "blind": [
                [*source, self._keep_json(flows_to_json(flows))]
                for source, flows in look.blind.items()
            ],
        }
        if look.marks:
            seen["marks"] = [mark_to_json(one) for one in look.marks]
        if look.unasked:
            seen["unasked"] = self._keep_json(flows_to_json(look.unasked))
        if look.required is not None:
            seen["required"] = self._keep_json(required_to_json(look.required))
        ids = [self._keep_json(asked_to_json(look.asked)), self._keep_json(seen)]
        return [look.begun, look.decided, look.retried, *ids]

    def _insert_look(self, values: list[Any], run: int) -> None:
        self._connection.execute(
            "INSERT INTO look (begun, decided, retried, asked, seen, run)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [*values, run],
        )

    def keep_held(self, place: tuple[str, str, str], ports: Ports) -> None:
        """Keep which ports of a place (host, protocol, address) services hold."""
        with self._writing():
            self._connection.execute(
                "INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?)", [*place, json.dumps(ports)]
            )

    def held(self) -> dict[tuple[str, str, str], Ports]:
        """Give the ports that services have held, by their place."""
        with self._guard("read"):
            rows = self._connection.execute("SELECT * FROM held").fetchall()
            return {
                (host, protocol, address): tuple((first, last) for first, last in json.loads(ports))
                for host, protocol, address, ports in rows
            }

    def keep_told(self, receiver: str, told: Mapping[str, str]) -> None:
        """Keep what a receiver was told of outages."""
        with self._writing():
            self._connection.executemany(
                "INSERT OR REPLACE INTO told VALUES (?, ?, ?)",
                [[receiver, *one] for one in told.items()],
            )

    def told(self, receiver: str) -> dict[str, str] | None:
        """Give what a receiver was told of outages; None where it is a new one."""
        with self._guard("read"):
            query = "SELECT finding, status FROM told WHERE receiver = ?"
            return dict(self._connection.execute(query, [receiver]).fetchall()) or None

    def _keep_json(self, data: Any) -> int:
        return self._keep_text(json.dumps(data, separators=(",", ":")).encode("ascii"))

    def _keep_parts(self, run: bytes) -> int:
        """Keep a run's file as its parts: those that are there already are not kept again."""
        parts = [self._keep_text(b"".join(lines)) for lines in _cut_lines(run)]
        return self._keep_text(_PARTS + json.dumps(parts, separators=(",", ":")).encode("ascii"))

    def _keep_text(self, text: bytes) -> int:
        digest = _hash_text(text)
        query = "SELECT id FROM text WHERE digest = ?"
        found = self._connection.execute(query, [digest]).fetchone()
        if found:
            return int(found[0])
        values = [digest, zlib.compress(text)]
        kept = self._connection.execute("INSERT INTO text (digest, packed) VALUES (?, ?)", values)
        return int(kept.lastrowid or 0)

    @contextmanager
    def _guard(self, verb: str) -> Iterator[None]:
        """Raises NetprobeError for what SQLite cannot do, and for what is not as it was written."""
        try:
            yield
        except _DAMAGES as error:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            raise NetprobeError(f"cannot {verb} {self._path}: {_word_damage(error)}") from error

    def looks(self) -> Iterator[RunLook]:
        """Give all looks, in the order of their times. What they have in common is one object."""
        read_asked, read_flows, read_finding, read_required = (
            lru_cache(64)(self._read_asked),
            lru_cache(64)(self._read_flows),
            lru_cache(64)(self._read_finding),
            lru_cache(64)(self._read_required),
        )
        with self._guard("read"):
            # All at once: a statement that is half read would hold the file.
            rows = self._connection.execute(
                "SELECT begun, decided, retried, asked, seen FROM look ORDER BY begun, id"
            ).fetchall()
            for begun, decided, retried, asked, seen in rows:
                data = json.loads(self._read_text(seen))
                findings = tuple(map(read_finding, data["findings"]))
                blind = {(host, reason): read_flows(flows) for host, reason, flows in data["blind"]}
                times = (_check_time(begun), _check_time(decided))
                marks = tuple(map(mark_from_json, data.get("marks", ())))
                unasked = read_flows(data["unasked"]) if "unasked" in data else {}
                required = read_required(data["required"]) if "required" in data else None
                yield RunLook(
                    *times, read_asked(asked), findings, blind, retried, marks, unasked, required
                )

    def _read_asked(self, identity: int) -> FlowPorts:
        return AskedFlows(json.loads(self._read_text(identity)))

    def _read_flows(self, identity: int) -> FlowPorts:
        return flows_from_json(json.loads(self._read_text(identity)))

    def _read_finding(self, identity: int) -> SeenFinding:
        return finding_from_json(json.loads(self._read_text(identity)))

    def _read_required(self, identity: int) -> RequiredFlows:
        return required_from_json(json.loads(self._read_text(identity)))

    def _read_run(self, identity: int) -> bytes:
        text = self._read_text(identity)
        if not text.startswith(_PARTS):
            return text
        return b"".join(map(self._read_text, json.loads(text.removeprefix(_PARTS))))

    def _read_text(self, identity: int) -> bytes:
        found = self._connection.execute(
            "SELECT digest, packed FROM text WHERE id = ?", [identity]
        ).fetchone()
        text = zlib.decompress(found[1])
        if _hash_text(text) != found[0]:
            raise ValueError("this text is not as it was written")
        return text

    def run_at(self, moment: float) -> bytes:
        """Give the file of the last run that began at that moment or before.

        Raises RequestError where there is none.
        """
        with self._guard("read"):
            found = self._connection.execute(
                "SELECT run FROM look WHERE begun <= ? ORDER BY begun DESC, id DESC LIMIT 1",
                [moment],
            ).fetchone()
            if found is not None:
                return self._read_run(found[0])
        at = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise RequestError(f"--when: {self._path} has no look at {at} or before")


def _cut_lines(run: bytes) -> Iterator[list[bytes]]:
    """Cut a file after lines that are chosen by their own words: what changes in one part moves no
    other cut."""
    lines: list[bytes] = []
    for line in run.splitlines(keepends=True):
        lines.append(line)
        if zlib.crc32(line) % _PART_LINES == 0:
            yield lines
            lines = []
    yield lines


def _check_time(seconds: float) -> float:
    datetime.fromtimestamp(seconds, UTC)
    return seconds


def _word_damage(error: Exception) -> str:
    return clean(str(error)) if isinstance(error, sqlite3.Error) else "it is damaged"


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
        refuse_others(path)
    try:
        connection = _connect_file(path)
    except _DAMAGES as error:
        raise NetprobeError(f"cannot open {path}: {_word_damage(error)}") from error
    return HistoryFile(path, connection)


def _connect_file(path: str) -> sqlite3.Connection:
    """Open a file that is there; as an address, no name has another meaning to SQLite."""
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except _DAMAGES:
        connection.close()
        raise
    return connection


def _create_file(path: str) -> None:
    """Make it under another name first: a history is whole, or it is not there."""
    temporary = f"{path}.{os.getpid()}.new"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_connect_file(temporary)) as connection:
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


def refuse_others(path: str) -> None:
    """Raises RequestError for what is no history, or one of another schema."""
    if is_special(path):
        raise RequestError(f"{path}: a history is a file, and this is none")
    with open_file(path, "a history") as file:
        head = file.read(100)
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

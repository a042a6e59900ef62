"""Each row of the verdict tables made wrong, one at a time: which of them no test notices.

One process collects the tests; for each wrong row a copy of it runs those that read the row, until
one fails. A wrong row is as whole as a right one: only somebody who knows better notices.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from msgspec.structs import force_setattr

from netprobe.judge.name_rows import NameRow
from netprobe.judge.rows import VerdictRow
from netprobe.model.result import Place, Verdict
from tests.rows.recording import Row, list_rows

_OTHER_VERDICT: dict[Verdict, Verdict] = {
    "pass": "blocked",
    "blocked": "inconclusive",
    "inconclusive": "blocked",
    "exposed": "pass",
    "not-tested": "blocked",
}
WRONG_REASON = "wrong-reason"


class WrongRow(NamedTuple):
    """A row, and the fields that make it wrong."""

    name: str
    row: Row
    fields: dict[str, Any]


def list_wrong_rows() -> Iterator[WrongRow]:
    """Every row with another verdict, at another place, for another reason."""
    for name, row in list_rows():
        if isinstance(row, NameRow):
            other = WRONG_REASON if row.reason is None else None
            yield WrongRow(f"{name}, reason {other}", row, {"reason": other})
            yield WrongRow(f"{name}, other words", row, {"said": "{name} is wrong"})
        else:
            yield from _spoil_verdict_row(name, row)


def _spoil_verdict_row(name: str, row: VerdictRow) -> Iterator[WrongRow]:
    verdict = _OTHER_VERDICT[row.verdict]
    where = () if verdict == "pass" else row.where or ("path",)
    proof = "refusal" if verdict == "pass" else "none"
    fields = {"verdict": verdict, "where": where, "proof": proof}
    yield WrongRow(f"{name}, verdict {verdict}", row, fields)
    if row.where:
        # Where every place is possible, to name one is wrong.
        place = next((one for one in get_args(Place) if one not in row.where), row.where[0])
        yield WrongRow(f"{name}, place {place}", row, {"where": (place,)})
    yield WrongRow(f"{name}, another reason", row, {"reason": WRONG_REASON})


class RowSpoiler:
    """A plugin of pytest: runs the tests once to see what they read, then for each wrong row."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.unnoticed = 0
        self.count = 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do it instead of running the tests."""
        assert not _fails(session.items), "tests fail with the rows as they are"
        readers = self._list_readers(session.items)
        for wrong in list_wrong_rows():
            self.count += 1
            some = readers[wrong.name.partition(", ")[0]]
            if not _fails(some, wrong):
                self.unnoticed += 1
                print(f"{wrong.name} ({len(some)} tests read it)", flush=True)
        return True

    def _list_readers(self, items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
        """For each row the tests that read it; those that read few rows come first."""
        read: dict[str, set[str]] = defaultdict(set)
        for line in self.record.read_text(encoding="utf-8").splitlines():
            test, row = line.split("\t")
            read[test].add(row)
        readers: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in sorted(items, key=lambda item: len(read[item.nodeid])):
            for row in read[item.nodeid]:
                readers[row].append(item)
        return readers


def _fails(items: list[pytest.Item], wrong: WrongRow | None = None) -> bool:
    """Whether a test fails in a copy of this process where a row is wrong."""
    if not items:
        return False
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    if wrong is not None:
        for field, value in wrong.fields.items():
            # Where it stands, so that it is wrong for whoever has it.
            force_setattr(wrong.row, field, value)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            os._exit(1)
    os._exit(0)

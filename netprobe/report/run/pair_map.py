"""Who reaches whom, as a map: role to role, and host to host within a cell of it.

A cell shows the worst fate of its flows. What is excused and did not pass decides nothing: it
makes no cell bad, and is no pass either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct, field

from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.result import Result, Verdict
from netprobe.model.run import RunIndex
from netprobe.report.page.wording import EXCUSES, excuse_of, number, plural
from netprobe.report.record.collector import Report
from netprobe.report.run.coverage_text import example_of

PairFate = Verdict | Literal["excused"]

# From the worst: a cell is what the first of these is that occurs in it.
WORST: tuple[PairFate, ...] = (
    "blocked", "exposed", "inconclusive", "not-tested", "excused", "covered", "pass",
)  # fmt: skip
# The role of a host of which the file tells none.
ANY_ROLE = "any host"

Pair = tuple[str, str]  # source and destination: roles or hosts
Row = dict[str, PairFate]  # of one source or several alike, by destination


class Cell(Struct):
    """All flows from one role to another; ``pairs`` has the worst fate of every pair of hosts.

    ``excuses`` counts the excused flows by why they do not decide. Memory grows with the pairs.
    """

    counts: dict[PairFate, int] = field(default_factory=dict)
    excuses: dict[str, int] = field(default_factory=dict)
    pairs: dict[Pair, PairFate] = field(default_factory=dict)

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return sum(self.counts.values())

    @property
    def worst(self) -> PairFate:
        """The worst fate that occurs."""
        return min(self.counts, key=WORST.index, default="pass")

    @property
    def words(self) -> str:
        """``2 blocked, 1 accepted, 41 pass of 44 flows``."""
        parts: list[tuple[int, str]] = []
        for one in WORST:
            if one == "excused":
                parts += [(self.excuses.get(word, 0), word) for word in EXCUSES]
            else:
                parts.append((self.counts.get(one, 0), one))
        told = ", ".join(f"{number(flows)} {word}" for flows, word in parts if flows)
        return f"{told} of {plural(self.flows, 'flow')}"

    def add(self, result: Result) -> None:
        """Take one more result in."""
        flows, fate = result.port_count, fate_of(result)
        if fate == "excused":
            excuse = str(excuse_of(result))
            self.excuses[excuse] = self.excuses.get(excuse, 0) + flows
        self.counts[fate] = self.counts.get(fate, 0) + flows
        pair = (result.source, result.destination)
        self.pairs[pair] = min(self.pairs.get(pair, "pass"), fate, key=WORST.index)

    def add_unprobed(self, group: Unprobed) -> None:
        """Take in flows that were not probed; their pairs of hosts are not listed."""
        self.counts[group.verdict] = self.counts.get(group.verdict, 0) + group.flows


def fate_of(result: Result) -> PairFate:
    """Give the verdict of a result that decides or passes; the others are excused."""
    return result.verdict if result.decides or result.verdict == "pass" else "excused"


class PairMap(Struct, frozen=True):
    """The cells by their roles; ``roles`` in the order of rows and columns."""

    roles: tuple[str, ...]
    cells: dict[Pair, Cell]

    @property
    def sources(self) -> list[str]:
        """The roles that flows start from."""
        return [role for role in self.roles if any(role == pair[0] for pair in self.cells)]

    @property
    def destinations(self) -> list[str]:
        """The roles that flows go to."""
        return [role for role in self.roles if any(role == pair[1] for pair in self.cells)]


def sort_hosts(report: Report) -> list[str]:
    """Hosts of one role and zone stand side by side: so what is blocked is seen as a block."""
    hosts = sorted(
        report.info.hosts, key=lambda host: (host.roles, host.zone or "", split_digits(host.name))
    )
    return [host.name for host in hosts]


def split_digits(name: str) -> list[tuple[str, int]]:
    """Give a key that sorts worker-9 before worker-10."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]


def map_pairs(report: Report, results: Iterable[Result]) -> PairMap:
    """Sort all results of a run in; roles stand in the order in which the plan names them."""
    index = RunIndex(report.info)
    cells: dict[Pair, Cell] = {}
    for result in results:
        cells.setdefault(_find_roles(index, result), Cell()).add(result)
    about = report.info.coverage or Coverage()
    for group in about.unprobed:
        example = example_of(about, group)
        cells.setdefault(_find_roles(index, example), Cell()).add_unprobed(group)
    named = [role for one in report.info.requirements for role in (*one.from_, *one.to)]
    met = [role for pair in cells for role in pair]
    order = dict.fromkeys([*(role for role in named if role in set(met)), *met])
    return PairMap(tuple(order), cells)


def _find_roles(index: RunIndex, result: Result) -> Pair:
    asked = index.requirement(result)
    return (
        _role_of(index, result.source, asked.from_ if asked else ()),
        _role_of(index, result.destination, asked.to if asked else ()),
    )


def _role_of(index: RunIndex, host: str, wanted: Sequence[str]) -> str:
    """Give the role that makes a requirement concern a host, its own first."""
    roles = index.roles(host)
    return next((role for role in roles if role in wanted), next(iter(roles), ANY_ROLE))


class Alike(Struct):
    """Hosts whose flows have one fate, and the fate towards each host at the other end."""

    names: list[str]
    row: Row


def group_alike(rows: Iterable[tuple[str, Row]], most: int) -> list[Alike] | None:
    """Join hosts of equal rows, in their order; None where more than ``most`` groups differ.

    A host has no flow to itself, which no other host's row contradicts.
    """
    groups: list[Alike] = []
    for name, row in rows:
        group = next((one for one in groups if _are_alike(one, name, row)), None)
        if group is None:
            groups.append(Alike([name], dict(row)))
            if len(groups) > most:
                return None
        else:
            group.names.append(name)
            group.row.update(row)
    return groups


def _are_alike(group: Alike, name: str, row: Row) -> bool:
    for end in group.row | row:
        ours, theirs = group.row.get(end), row.get(end)
        itself = (theirs is None and end == name) or (ours is None and end in group.names)
        if ours != theirs and not itself:
            return False
    return True


def rows_of(cell: Cell, hosts: Sequence[str]) -> list[tuple[str, Row]]:
    """Give the row of every source of a cell, in the order of ``hosts``."""
    rows: dict[str, Row] = {}
    for (source, destination), verdict in cell.pairs.items():
        rows.setdefault(source, {})[destination] = verdict
    return [(name, rows[name]) for name in hosts if name in rows]


def columns_of(groups: Sequence[Alike], hosts: Sequence[str]) -> list[tuple[str, Row]]:
    """Turn groups of sources into the columns of every destination; a group goes by its first."""
    columns: dict[str, Row] = {}
    for group in groups:
        for destination, verdict in group.row.items():
            columns.setdefault(destination, {})[group.names[0]] = verdict
    return [(name, columns[name]) for name in hosts if name in columns]

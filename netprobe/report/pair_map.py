"""Who reaches whom, as a map: role to role, and host to host within a cell of it.

A cell shows its worst verdict. What is excused and did not pass decides nothing, so
that it makes no cell bad: it is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from netprobe.model.result import Result, Verdict
from netprobe.model.run import RunIndex
from netprobe.report.collector import Report

# From the worst: a cell is what the first of these is that occurs in it.
WORST: tuple[Verdict, ...] = ("blocked", "exposed", "inconclusive", "not-tested", "pass")
# The role of a host of which the file tells none.
ANY_ROLE = "any host"

Pair = tuple[str, str]  # source and destination: roles or hosts
Row = dict[str, Verdict]  # of one source or several alike, by destination


@dataclass(slots=True)
class Cell:
    """All flows from one role to another; ``pairs`` has the worst verdict of every pair of hosts.

    ``excused`` counts flows that did not pass and do not decide. Memory grows with the pairs.
    """

    counts: dict[Verdict, int] = field(default_factory=dict)
    excused: int = 0
    pairs: dict[Pair, Verdict] = field(default_factory=dict)

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return sum(self.counts.values()) + self.excused

    @property
    def worst(self) -> Verdict:
        """The worst verdict that occurs."""
        return min(self.counts, key=WORST.index, default="pass")

    def add(self, result: Result) -> None:
        """Take one more result in."""
        pair = (result.source, result.destination)
        before = self.pairs.get(pair, "pass")
        if result.verdict != "pass" and not result.decides:
            self.excused += result.port_count
            self.pairs[pair] = before
            return
        self.counts[result.verdict] = self.counts.get(result.verdict, 0) + result.port_count
        self.pairs[pair] = min(before, result.verdict, key=WORST.index)


@dataclass(frozen=True, slots=True)
class PairMap:
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
        asked = index.requirement(result)
        roles = (
            _role_of(index, result.source, asked.from_ if asked else ()),
            _role_of(index, result.destination, asked.to if asked else ()),
        )
        cells.setdefault(roles, Cell()).add(result)
    named = [role for one in report.info.requirements for role in (*one.from_, *one.to)]
    met = [role for pair in cells for role in pair]
    order = dict.fromkeys([*(role for role in named if role in set(met)), *met])
    return PairMap(tuple(order), cells)


def _role_of(index: RunIndex, host: str, wanted: Sequence[str]) -> str:
    """Give the role that makes a requirement concern a host, its own first."""
    roles = index.roles(host)
    return next((role for role in roles if role in wanted), next(iter(roles), ANY_ROLE))


@dataclass(slots=True)
class Alike:
    """Hosts whose flows have one fate, and the verdict for each host at the other end."""

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

"""All flows of a run as data for the page: small, because what is alike is written once.

A *class* is everything that results have in common but their ends and ports, its sentences with
holes for the names. A *pattern* is what happened to one pair of hosts: its port ranges (a *shape*)
and a class for each. A *block* is one requirement and protocol: hosts, and the patterns of their
pairs, sources first, as runs of equal ones. 437,800 flows of one fate are a few hundred numbers.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct, field

from netprobe.model.plan import PlannedRequirement
from netprobe.model.printable import clean
from netprobe.model.result import Also, Result
from netprobe.model.run import RunIndex
from netprobe.model.struct_json import Json, to_json
from netprobe.report.page.wording import excuse_of, excuse_text, make_holes
from netprobe.report.record.collector import Report
from netprobe.report.record.spool import place
from netprobe.report.run.pair_map import sort_hosts

# With more than this, sentences are left out of the page: a run in which each flow has its own.
MOST_SENTENCE_CHARACTERS = 600_000
LEFT_OUT = "the page has no room for this sentence; the JSON report has it"

_FACTS = (
    "verdict", "state", "reason", "proof", "where", "rejected_by", "last_hop", "next_hop", "holder",
    "path_mtu_bytes", "device", "driver",
)  # fmt: skip
_read_facts = attrgetter(*_FACTS)
# Why a failure does not decide, as a word and as a sentence.
_EXCUSE = ("excuse", "excused")

EndAddress = tuple[str, str]  # a destination and its address
PortPair = tuple[int, int]  # first and last; (0, 0) where the protocol has none


class Table:
    """Gives equal things one number, in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}  # Any: what it holds is its owner's matter

    def number(self, item: Hashable) -> int:
        """Give the number of this thing, a new one where it is new."""
        return self.numbers.setdefault(item, len(self.numbers))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numbers)


class _Block(Struct):
    """The results of one requirement and protocol, by their pair of ends."""

    first: Result
    pairs: dict[tuple[str, EndAddress], list[tuple[PortPair, int]]] = field(default_factory=dict)


class Island:
    """Collects the data of a page; ``json`` gives it as text that may stand in a ``<script>``.

    A run is taken once.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._index = RunIndex(report.info)
        self._classes = Table()
        self._shapes = Table()
        self._patterns = Table()
        self._hosts = Table()
        self._blocks: dict[tuple[str, str, str, tuple[Also, ...]], _Block] = {}
        self._sentences = Table()
        self._characters = 0
        self._findings = {
            place(member): finding.number
            for finding in report.deciding_findings  # the page tells no other
            for member in finding.members
        }

    def take(self, results: Iterable[Result]) -> Iterator[Result]:
        """Take all results in, and hand them on: reading them is what takes long."""
        for host in sort_hosts(self._report):
            self._hosts.number(host)
        for result in results:
            self._take_result(result)
            yield result

    def json(self) -> str:
        """Write what was taken; ASCII, and without a character that HTML reads."""
        data = {
            "blocks": [self._write_block(block) for block in self._blocks.values()],
            "hosts": list(self._list_hosts()),
            "shapes": [[port for ports in shape for port in ports] for shape in self._shapes],
            "patterns": [[shape, *_join_runs(classes)] for shape, classes in self._patterns],
            "classes": [dict(_write_class(*one)) for one in self._classes],
            "sentences": list(self._sentences),
        }
        text = json.dumps(data, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def _take_result(self, result: Result) -> None:
        self._hosts.number(result.source)
        self._hosts.number(result.destination)
        key = (result.matrix, result.requirement, result.protocol, result.also)
        block = self._blocks.setdefault(key, _Block(result))
        ends = (result.source, (result.destination, result.address))
        ports = (result.port or 0, result.end_port or result.port or 0)
        failed = result.verdict != "pass"
        excuse = (excuse_of(result), excuse_text(result) or None) if failed else (None, None)
        class_ = self._classes.number(
            (
                (*_read_facts(result), *excuse),
                self._number_sentence(make_holes(result.because, result)),
                tuple(self._number_sentence(make_holes(one, result)) for one in result.warnings),
                None if result.verdict == "pass" else self._findings.get(place(result)),
            )
        )
        block.pairs.setdefault(ends, []).append((ports, class_))

    def _number_sentence(self, text: str) -> int:
        if text not in self._sentences.numbers:
            self._characters += len(text)
            if self._characters > MOST_SENTENCE_CHARACTERS:
                return self._sentences.number(LEFT_OUT)
        return self._sentences.number(text)

    def _write_block(self, block: _Block) -> Json:
        """Write a block; a pair without a result has the pattern -1.

        Where no host has a flow to itself, such pairs are left out: they would end every run.
        """
        order = self._hosts.number
        sources = sorted({source for source, _ in block.pairs}, key=order)
        ends = sorted({end for _, end in block.pairs}, key=lambda end: (order(end[0]), end[1]))
        local = any(source == end[0] for source, end in block.pairs)
        patterns = (
            self._number_pattern(block.pairs.get((source, end)))
            for source in sources
            for end in ends
            if local or source != end[0]
        )
        first = block.first
        return {
            **_describe_requirement(self._index.requirement(first), first),
            "sources": [order(source) for source in sources],
            "ends": [[order(name), clean(address)] for name, address in ends],
            "local": local,
            "runs": list(_join_runs(patterns)),
        }

    def _number_pattern(self, parts: list[tuple[PortPair, int]] | None) -> int:
        if parts is None:
            return -1
        shape = self._shapes.number(tuple(ports for ports, _ in parts))
        return self._patterns.number((shape, tuple(class_ for _, class_ in parts)))

    def _list_hosts(self) -> Iterator[Json]:
        for name in self._hosts:
            yield {
                "name": clean(name),
                "roles": [clean(role) for role in self._index.roles(name)],
                "zone": clean(self._index.zone(name) or ""),
            }


def _write_class(
    facts: tuple[Any, ...], because: int, warnings: tuple[int, ...], finding: int | None
) -> Iterator[tuple[str, Any]]:
    """Give the keys of a class that say something."""
    for key, value in zip((*_FACTS, *_EXCUSE), facts, strict=True):
        if value not in (None, ()):
            text = " ".join(value) if isinstance(value, tuple) else value
            yield key, clean(text) if isinstance(text, str) else text
    yield "because", because
    if warnings:
        yield "warnings", warnings
    if finding:
        yield "finding", finding


def _describe_requirement(asked: PlannedRequirement | None, first: Result) -> Json:
    """Give what a requirement says, with the roles where the file tells them."""
    words = {
        "matrix": first.matrix, "requirement": first.requirement, "protocol": first.protocol,
        "purpose": first.purpose, "row": first.row, "expect": first.expect,
    }  # fmt: skip
    return {
        **{key: clean(text) for key, text in words.items()},
        "optional": first.optional,
        **({"also": list(map(_describe_also, first.also))} if first.also else {}),
        "from": [clean(role) for role in asked.from_] if asked else [],
        "to": [clean(role) for role in asked.to] if asked else [],
    }


def _describe_also(row: Also) -> Json:
    return {key: clean(text) for key, text in to_json(row).items()}


def _join_runs(numbers: Iterable[int]) -> Iterator[int]:
    """Give each number with how often it stands there in a row."""
    for number, alike in groupby(numbers):
        yield from (number, sum(1 for _ in alike))

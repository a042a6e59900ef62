"""``check --registry``: a matrix as a registry of ports, checked by itself and without any host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from typing import Final, NamedTuple

from netprobe.audit.registry import SetApart, WirePorts, wires_of
from netprobe.errors import Problem
from netprobe.load.yaml.document import problem_at
from netprobe.model.matrix import (
    ChosenMatrix,
    Condition,
    DocumentedPorts,
    Matrix,
    Requirement,
    Setting,
    SettingValue,
    choose_settings,
)
from netprobe.model.ports import Ports, normalise, subtract, union
from netprobe.model.ports import count as count_ports
from netprobe.model.ports import text as ports_text
from netprobe.plan.conditions import holds, why_not

# What Linux gives to clients unless it is told otherwise (ip_local_port_range).
EPHEMERAL: Final = (32768, 60999)
PROTOCOLS: Final = ("tcp", "udp")


class RegistryLint(NamedTuple):
    """What is wrong, and what a reader should know; ``notes`` are whole lines."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


class _Meeting(NamedTuple):
    """Two rows that have ports in common on hosts in common."""

    first: Requirement
    second: Requirement
    ports: str


def lint_registry(matrix: Matrix) -> RegistryLint:
    """Check a matrix: duplicates, exclusive rows, ports given up, clients' ports, ranges, gaps."""
    chosen = choose_settings(matrix, {})
    problems: list[Problem] = []
    notes: list[str] = []
    for one in _list_meetings(chosen):
        both = _find_settings(matrix, (one.first, one.second))
        if both is None:
            settings = _word_common(one)
            notes.append(f"exclusive: {one.ports}: {_word_pair(one)} exclude each other{settings}")
        elif words := _word_clash(one):
            problems.append(problem_at(one.second.place, f"{words}{_word_settings(both)}"))
    problems += _list_reused(chosen)
    for kind, lines in (("ephemeral", _note_ephemeral(chosen)), ("range", _note_ranges(chosen)),
                        ("gap", _note_gaps(chosen))):  # fmt: skip
        notes += [f"{kind}: {line}" for line in lines]
    return RegistryLint(tuple(problems), tuple(f"{matrix.name}: {note}" for note in notes))


def _rows_with_ports(chosen: ChosenMatrix) -> list[tuple[Requirement, tuple[WirePorts, ...]]]:
    rows = ((row, tuple(wires_of(row, chosen))) for row in chosen.matrix.requirements)
    return [(row, wires) for row, wires in rows if wires]


def _list_meetings(chosen: ChosenMatrix) -> Iterator[_Meeting]:
    """Give the pairs of rows of which one host may have both, for the same port."""
    closures = [set(chosen.matrix.with_implied([role])) for role in chosen.matrix.roles]
    for (first, mine), (second, others) in combinations(_rows_with_ports(chosen), 2):
        common = _common_ports(mine, others)
        ends = (first.destinations, second.destinations)
        if common and any(all(roles & set(end) for end in ends) for roles in closures):
            yield _Meeting(first, second, common)


def _common_ports(mine: Iterable[WirePorts], others: Iterable[WirePorts]) -> str:
    """Word the ports that both have; empty where there are none."""
    found: dict[str, list[tuple[int, int]]] = {}
    for (protocol, (first, last)), (other, (begin, end)) in product(mine, tuple(others)):
        if protocol == other and max(first, begin) <= min(last, end):
            found.setdefault(protocol, []).append((max(first, begin), min(last, end)))
    return "; ".join(f"{name} {ports_text(normalise(ports))}" for name, ports in found.items())


def _word_clash(one: _Meeting) -> str:
    """Word what is wrong where both rows hold at once; empty where it is two ways to one port."""
    first, second = one.first, one.second
    names = [{*row.process, *row.owner} for row in (first, second)]
    if all(names) and names[0].isdisjoint(names[1]):
        who = " and ".join(" or ".join(sorted(some)) for some in names)
        return f"{one.ports} has two owners, {who}: {_word_pair(one)} hold at once"
    if set(first.sources).isdisjoint(second.sources):
        return ""
    if first.expect != second.expect:
        return f"{one.ports} is for the host only and for others too: {_word_pair(one)}"
    return f"{one.ports} stands here twice: {_word_pair(one)} hold at once"


def _word_pair(one: _Meeting) -> str:
    return f"{one.first.id} and {one.second.id}"


def _word_common(one: _Meeting) -> str:
    """Word the settings that both rows ask for."""
    names = [{name: None for c in _conditions_of(row) for name, _ in c.terms} for row in one[:2]]
    common = [name for name in names[0] if name in names[1]]
    return f" ({', '.join(common)})" if common else ""


def _word_settings(settings: Mapping[str, SettingValue]) -> str:
    listed = (f"{name}={_value_text(value)}" for name, value in settings.items())
    words = ", ".join(listed)
    return f" (for example with {words})" if words else ", whatever the settings"


def _value_text(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "+".join(value) or "none" if isinstance(value, tuple) else str(value)


def _list_reused(chosen: ChosenMatrix) -> Iterator[Problem]:
    """Rows for ports that were given up, where both hold at once."""
    for row, wires in _rows_with_ports(chosen):
        for group in chosen.matrix.retired:
            common = _common_ports(wires, tuple(wires_of(group, chosen)))
            both = _find_settings(chosen.matrix, (row, group)) if common else None
            if both is not None:
                words = f"{common} of {row.id} was given up ({group.purpose})"
                yield problem_at(row.place, f"{words}{_word_settings(both)}")


# Conditions that exclude each other: tried out, with the very function that plans use.


def _find_settings(
    matrix: Matrix, rows: tuple[Requirement | DocumentedPorts, ...]
) -> dict[str, SettingValue] | None:
    """Give settings under which all hold; None where they exclude each other."""
    terms: dict[str, list[str | bool | int]] = {}
    for condition in (part for row in rows for part in _conditions_of(row)):
        for name, wanted in condition.terms:
            terms.setdefault(name, []).extend(wanted)
    tried = [_list_values(matrix.settings[name], wanted) for name, wanted in terms.items()]
    for values in product(*tried):
        given = dict(zip(terms, values, strict=True))
        if all(_holds_with(row, choose_settings(matrix, given)) for row in rows):
            return given
    return None


def _conditions_of(row: Requirement | DocumentedPorts) -> tuple[Condition, ...]:
    return (row.when, row.unless) if isinstance(row, Requirement) else (row.when,)


def _holds_with(row: Requirement | DocumentedPorts, chosen: ChosenMatrix) -> bool:
    if isinstance(row, Requirement):
        return why_not(row, chosen) is None
    return holds(row.when, chosen)


def _list_values(setting: Setting, wanted: list[str | bool | int]) -> list[SettingValue]:
    """Give every value of a setting that conditions could tell apart."""
    if setting.type == "boolean":
        return [False, True]
    if setting.type == "choice":
        return list(setting.values)
    if setting.type == "list":
        named = sorted({str(one) for one in wanted})
        sizes = range(len(named) + 1)
        return list(chain.from_iterable(combinations(named, size) for size in sizes))
    if setting.type == "version":
        bounds = sorted({part for one in wanted for part in re.findall(r"\d+(?:\.\d+)*", str(one))})
        return [text for bound in bounds for text in (bound, f"{bound}.1")] + ["0"]
    other: SettingValue = 1 if setting.type == "port" else ""
    return [*dict.fromkeys(wanted), other]


# What is no mistake, and good to know.


def _note_ephemeral(chosen: ChosenMatrix) -> Iterator[str]:
    first, last = EPHEMERAL
    for row, wires in _rows_with_ports(chosen):
        common = _common_ports(wires, [(name, EPHEMERAL) for name in PROTOCOLS])
        if common:
            yield (
                f"{common} of {row.id} lies in {first}-{last}, which Linux gives to clients: keep "
                "it free with net.ipv4.ip_local_reserved_ports"
            )


def _note_ranges(chosen: ChosenMatrix) -> Iterator[str]:
    """Rows that others must reach outside of every range, and local ones inside."""
    ranges = _list_ranges(chosen)
    for row, wires in _rows_with_ports(chosen) if ranges else ():
        for protocol, ports in wires:
            known = union([_ports_of(one.wires, protocol) for one in ranges])
            outside = subtract((ports,), known)
            words = f"{protocol} {ports_text((ports,))} of {row.id}"
            if row.expect == "denied" and outside != (ports,):
                yield f"{words} is local, and takes room in a documented range"
            elif row.expect == "allowed" and outside:
                yield f"{words} must be reachable, and lies outside of the documented ranges"


def _note_gaps(chosen: ChosenMatrix) -> Iterator[str]:
    """Rows that name no process, and the room that is left in the first documented range."""
    rows = _rows_with_ports(chosen)
    nobody = [row.id for row, _ in rows if not row.process and not row.owner]
    if nobody:
        yield f"{len(nobody)} of {len(rows)} rows name no process (owner): {', '.join(nobody)}"
    for one in _list_ranges(chosen):
        for protocol in PROTOCOLS:
            whole = _ports_of(one.wires, protocol)
            taken = union([_ports_of(wires, protocol) for _, wires in rows])
            free = subtract(whole, taken)
            if whole:
                yield (
                    f"{protocol} {ports_text(whole)} ({one.purpose}): {count_ports(free):,} of "
                    f"{count_ports(whole):,} free{': ' if free else ''}{ports_text(free)}"
                )


def _list_ranges(chosen: ChosenMatrix) -> list[SetApart]:
    return [SetApart(tuple(wires_of(one, chosen)), one.purpose) for one in chosen.matrix.ranges]


def _ports_of(wires: Iterable[WirePorts], protocol: str) -> Ports:
    return normalise([ports for name, ports in wires if name == protocol])

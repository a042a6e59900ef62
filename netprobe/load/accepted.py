"""Files of accepted flows: who accepted which failure, why, and until when."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from netprobe.errors import Problem, all_problems
from netprobe.load.matrix.bundled import bundled_names
from netprobe.load.matrix.fields import PLAIN_PORT_SCHEMA, Date, FilledText, check_date, plain_port
from netprobe.load.yaml.document import Document, YamlPath, check_header
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import FileModel, NameField, fit, list_one, list_scalar, validate
from netprobe.load.yaml.wording import quoted, unknown
from netprobe.model.accepted import MAX_ACCEPTANCE_DAYS, NEVER, Acceptance, AcceptedVerdict
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix
from netprobe.model.plan import ADDED, REHEARSALS
from netprobe.model.ports import WITH_PORTS, normalise
from netprobe.model.result import Place
from netprobe.model.shapes import ADDRESS, LINE, PROTOCOL, ROW


def _check_until(text: str) -> str:
    if text == NEVER:
        return text
    try:
        return check_date(text)
    except ValueError as error:
        raise ValueError(f"{error}, or never") from None


def _check_hosts(hosts: list[str]) -> list[str]:
    if not hosts:
        raise ValueError("the list is empty, expected at least one host")
    return hosts


HostWord = Annotated[FilledText, fit(LINE.fits, f"does not fit, expected {LINE.words}")]
AddressWord = Annotated[FilledText, fit(ADDRESS.fits, f"does not fit, expected {ADDRESS.words}")]
RowWord = Annotated[
    str,
    fit(ROW.fits, f"is no requirement, expected {ROW.words}"),
    Field(json_schema_extra={"pattern": f"^({ROW.pattern})$"}),
]
Hosts = Annotated[
    list[HostWord],
    AfterValidator(_check_hosts),
    BeforeValidator(list_one, json_schema_input_type=FilledText | list[FilledText]),
]
AcceptedProtocol = Annotated[
    str,
    fit(PROTOCOL.fits, f"is no protocol, expected {PROTOCOL.words}"),
    Field(json_schema_extra={"pattern": f"^({PROTOCOL.pattern})$"}),
]
# Any: the validator takes whatever stands in the file.
PlainPort = Annotated[Any, PlainValidator(plain_port), WithJsonSchema(PLAIN_PORT_SCHEMA)]
PlainPorts = Annotated[
    list[PlainPort],
    BeforeValidator(list_scalar, json_schema_input_type=PlainPort | list[PlainPort]),
]
Until = Annotated[
    str,
    AfterValidator(_check_until),
    Field(json_schema_extra={"anyOf": [{"format": "date"}, {"const": NEVER}]}),
]


class AcceptanceFile(FileModel):
    """Failures of one requirement that somebody accepts until a day."""

    # The fields are those of model/accepted.py.

    id: NameField = Field(
        description="A name for the entry, unique in the file. `netprobe accept` makes one."
    )
    matrix: NameField = Field(description="The matrix of the flows.")
    requirement: RowWord = Field(description="The requirement of the flows.")
    from_: Hosts = Field(alias="from", description="The host, or the hosts, that flows start at.")
    to: Hosts = Field(
        description="The host, or the hosts, that they go to: all sources to all. A host to itself "
        "is meant only where it alone stands at both ends."
    )
    addresses: Annotated[list[AddressWord], BeforeValidator(list_one)] = Field(
        default=[], description="Only these addresses of the destinations; else all."
    )
    protocol: AcceptedProtocol = Field(description="Tcp, udp, icmp or ipproto/N.")
    ports: PlainPorts = Field(
        default=[], description='Ports of `tcp` and `udp`: numbers and `"FIRST-LAST"`.'
    )
    verdict: AcceptedVerdict = Field(
        description="The verdict that is accepted: blocked, exposed or inconclusive. With another "
        "verdict the flow decides again; nobody can accept what is `not-tested`."
    )
    where: Annotated[list[Place], BeforeValidator(list_one)] = Field(
        default=[],
        description="Only while every place that is possible is among these (`path`, `destination` "
        "...); else anywhere.",
    )
    reason: FilledText = Field(description="Why it is accepted; reports repeat it.")
    owner: FilledText = Field(description="Who answers for it.")
    ticket: FilledText = Field(description="Where it is written down.")
    since: Date = Field(description="The day on which it was accepted.")
    until: Until = Field(
        description="The last day on which it is accepted, or never. It is at most 365 "
        "days after `since` (`--max-acceptance 90d`)."
    )


class AcceptedFile(FileModel):
    """Accepted flows: failures that a run reports and that do not decide its exit status."""

    schema_: Literal["netprobe.accepted/1"] = Field(
        alias="schema", description="The format of this file: netprobe.accepted/1."
    )
    accepted: list[AcceptanceFile] = Field(description="The entries.")


def load_accepted(
    paths: Sequence[str], max_days: int = MAX_ACCEPTANCE_DAYS
) -> tuple[Acceptance, ...]:
    """Give the entries of these files; FileErrors with every problem of all files."""
    with all_problems() as problems:
        return read_accepted(paths, problems, max_days)


def read_accepted(
    paths: Sequence[str], problems: list[Problem], max_days: int = MAX_ACCEPTANCE_DAYS
) -> tuple[Acceptance, ...]:
    """As :func:`load_accepted`, but problems are added to a list and the rest goes on.

    ``max_days``: an entry may not hold longer, from ``since`` to ``until``.
    """
    entries: list[Acceptance] = []
    places: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        document = read_document(path, problems)
        if document is None or not check_header(document, "accepted"):
            continue
        before = len(problems)
        file = validate(AcceptedFile, document)
        _check_entries(document, places, max_days)
        if file is not None and len(problems) == before:
            entries += map(_make_acceptance, file.accepted)
    return tuple(entries)


def _list_rows(chosen: ChosenMatrix) -> list[str]:
    """List what results may be of: rows, and what is rehearsed of them."""
    rows = [one.id for one in chosen.matrix.requirements]
    return [*rows, *(f"{row}/{word}" for row in rows for word in REHEARSALS)]


def check_names(
    path: str, chosen: Sequence[ChosenMatrix], inventory: Inventory, problems: list[Problem]
) -> None:
    """Add a problem for every matrix, requirement and host of a file that a run does not know.

    Entries of a bundled matrix that is not among the chosen ones are for other runs.
    """
    document = read_document(path, [])
    if document is None:
        return
    requirements = {one.matrix.name: [*_list_rows(one), *ADDED] for one in chosen}
    hosts = [host.name for host in inventory.hosts]
    for index, entry in enumerate(read_accepted([path], [], sys.maxsize)):
        at = ("accepted", index)
        known: list[str] = [*requirements, *bundled_names()]
        checks: list[tuple[YamlPath, str, str, list[str]]] = [
            (("matrix",), "matrix", entry.matrix, known)
        ]
        if entry.matrix in requirements:
            known = requirements[entry.matrix]
            checks += [(("requirement",), "requirement", entry.requirement, known)]
            ends = (("from", entry.from_), ("to", entry.to))
            checks += [
                ((key, place), "host", name, hosts)
                for key, names in ends
                for place, name in enumerate(names)
            ]
        problems += [
            Problem(document.file, *document.mark_of((*at, *where)), unknown(kind, name, names))
            for where, kind, name, names in checks
            if name not in names
        ]


def _check_entries(document: Document, places: dict[str, str], max_days: int) -> None:
    """Check rules over several keys, on plain values, so that other problems do not hide them."""
    raw = document.get(("accepted",))
    for index, entry in enumerate(raw if isinstance(raw, list) else ()):
        if isinstance(entry, dict):
            path = ("accepted", index)
            _check_id(document, path, entry, places)
            _check_ports(document, path, entry)
            _check_dates(document, path, entry, max_days)


_EntryPath = tuple[str, int]


def _check_id(
    document: Document, path: _EntryPath, entry: dict[str, object], places: dict[str, str]
) -> None:
    name = entry.get("id")
    if not isinstance(name, str):
        return
    here = document.place((*path, "id"))
    first = places.setdefault(name, here)
    if first != here:
        words = f"the id {quoted(name)} stands at {first} already, expected every id once"
        document.add_problem((*path, "id"), words)


def _check_ports(document: Document, path: _EntryPath, entry: dict[str, object]) -> None:
    protocol, has_ports = entry.get("protocol"), entry.get("ports") not in (None, [])
    if protocol in WITH_PORTS and not has_ports:
        words = f'the key "ports" is missing or empty, expected the ports of {protocol}'
        document.add_key_problem((*path, "ports") if "ports" in entry else path, words)
    elif isinstance(protocol, str) and has_ports and re.fullmatch(r"icmp|ipproto/\d+", protocol):
        words = f"{protocol} has no ports, expected no such key"
        document.add_key_problem((*path, "ports"), words)


def _check_dates(
    document: Document, path: _EntryPath, entry: dict[str, object], max_days: int
) -> None:
    since, until = (_read_date(entry.get(key)) for key in ("since", "until"))
    if since is None or until is None:
        return
    days = (until - since).days
    if days < 0:
        words = f"{until} is before since ({since}), expected a later day"
        document.add_problem((*path, "until"), words)
    elif days > max_days:
        words = f"{until} is {days:,} days after since ({since})"
        expected = f"expected {max_days:,} at most (--max-acceptance), or never"
        document.add_problem((*path, "until"), f"{words}, {expected}")


def _read_date(value: object) -> date | None:
    try:
        return date.fromisoformat(check_date(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _make_acceptance(file: AcceptanceFile) -> Acceptance:
    # Any: the fields of both are the same.
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value.strip() for key, value in file
    }
    given["ports"] = normalise(file.ports)
    return Acceptance(**given)

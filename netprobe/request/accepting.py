"""What somebody accepts → entries of a file of accepted flows: these flows and nothing more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO, cast

from msgspec import Struct
from msgspec.structs import astuple, replace

from netprobe.model.accepted import ACCEPTED_SCHEMA, Acceptance, AcceptedVerdict
from netprobe.model.ports import Ports, union_by_key
from netprobe.model.printable import clean, yaml_scalar
from netprobe.model.result import PORTLESS, Place, Result
from netprobe.model.struct_json import to_json
from netprobe.request.boxes import Box, Pair, cover
from netprobe.request.safe import digest_of

# Matrix, requirement, protocol and destination: the addresses that a run probed there.
AddressesOfRun = Mapping[tuple[str, str, str, str], frozenset[str]]
EndAddress = tuple[str, str]  # destination and the address that was probed
# Flows that differ in none of these can share an entry.
_Alike = tuple[str, str, str, AcceptedVerdict, tuple[Place, ...]]


class Consent(Struct, frozen=True):
    """What people say when they accept: why, who, where it is written, from when to when."""

    reason: str
    owner: str
    ticket: str
    since: str
    until: str
    same_place: bool = False


def addresses_of_run(results: Iterable[Result]) -> AddressesOfRun:
    """Give the addresses at which a run probed each destination for each requirement."""
    found: defaultdict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for one in results:
        key = (one.matrix, one.requirement, one.protocol, one.destination)
        found[key].add(one.address)
    return {key: frozenset(some) for key, some in found.items()}


def accept(
    members: Iterable[Result], known: AddressesOfRun, consent: Consent
) -> tuple[Acceptance, ...]:
    """Give the entries that hold exactly these failures; a host to itself has one of its own."""
    parts: dict[_Alike, dict[bool, list[tuple[Pair, Ports]]]] = {}
    ends: dict[str, EndAddress] = {}
    for one in members:
        where = one.where if consent.same_place else ()
        verdict = cast(AcceptedVerdict, one.verdict)
        alike = (one.matrix, one.requirement, one.protocol, verdict, where)
        to_itself = one.source == one.destination
        flows = parts.setdefault(alike, {}).setdefault(to_itself, [])
        end = (one.destination, one.address)
        pair = (one.source, repr(end))
        ends[pair[1]] = end
        flows.append((pair, one.ports or PORTLESS))
    return tuple(
        entry
        for alike, kinds in parts.items()
        for box in _list_boxes({kind: union_by_key(some) for kind, some in kinds.items()}, ends)
        for entry in _make_entries(alike, box, ends, known, consent)
    )


def _list_boxes(
    kinds: Mapping[bool, Mapping[Pair, Ports]], ends: Mapping[str, EndAddress]
) -> Iterator[Box]:
    def host_of(end: str) -> str:
        return ends[end][0] if end in ends else end

    yield from cover(kinds.get(False, {}), host_of)
    by_host: dict[str, dict[Pair, Ports]] = {}
    for pair, ports in kinds.get(True, {}).items():
        by_host.setdefault(pair[0], {})[pair] = ports
    for flows in by_host.values():
        yield from cover(flows, host_of)


def _make_entries(
    alike: _Alike, box: Box, ends: Mapping[str, EndAddress], known: AddressesOfRun, consent: Consent
) -> Iterator[Acceptance]:
    """Give one entry, or two where only some addresses of some destinations are meant."""
    matrix, requirement, protocol, verdict, where = alike
    meant: dict[str, set[str]] = {}
    for host, address in sorted(ends[end] for end in box.destinations):
        meant.setdefault(host, set()).add(address)
    by_kind: dict[bool, list[str]] = {}
    for host, some in meant.items():
        whole = known.get((matrix, requirement, protocol, host), frozenset()) <= some
        by_kind.setdefault(whole, []).append(host)
    for whole, hosts in by_kind.items():
        addresses = () if whole else sorted(one for host in hosts for one in meant[host])
        entry = Acceptance(
            id="",
            matrix=matrix,
            requirement=requirement,
            from_=tuple(sorted(box.sources)),
            to=tuple(hosts),
            addresses=tuple(addresses),
            protocol=protocol,
            ports=() if box.ports == PORTLESS else box.ports,
            verdict=verdict,
            where=where,
            reason=consent.reason,
            owner=consent.owner,
            ticket=consent.ticket,
            since=consent.since,
            until=consent.until,
        )
        yield replace(entry, id=digest_of([repr(astuple(entry))]))


def write_accepted(
    parts: Sequence[tuple[str, Sequence[Acceptance]]], stream: TextIO, *, is_new: bool
) -> None:
    """Write entries in YAML, each part below its comment; a new file begins with its schema."""
    if is_new:
        stream.write(f"schema: {ACCEPTED_SCHEMA}\naccepted:\n")
    for comment, entries in parts:
        stream.write(f"  # {clean(comment)}\n")
        for entry in entries:
            stream.write("".join(_entry_lines(entry)))


def _entry_lines(entry: Acceptance) -> Iterator[str]:
    ports = [first if first == last else f"{first}-{last}" for first, last in entry.ports]
    values: dict[str, object] = {**to_json(entry), "ports": ports}
    before = "  - "
    for key, value in values.items():
        if isinstance(value, list):
            if value:
                yield f"{before}{key}: [{', '.join(map(yaml_scalar, value))}]\n"
        else:
            yield f"{before}{key}: {yaml_scalar(value)}\n"
        before = "    "

"""What the rehearsal of a segment saw of an address → verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from netprobe.judge.rehearsed import RehearsedRow
from netprobe.judge.words import join_some
from netprobe.model.result import Result
from netprobe.model.segment import DhcpFacts, RouterSeen, SegmentFacts

SegmentFate = Literal[
    "in-use", "id-taken", "two-machines", "elsewhere", "dhcp", "silent", "free", "alone"
]


# From the gravest to the least.
ROWS: Final[Mapping[SegmentFate, RehearsedRow]] = {
    "in-use": RehearsedRow(
        "blocked", "open", "address-in-use", "none", ("host",),
        "the address should be free (`free: true`), and {holders} {answers} {question} for it "
        "({asker} asked)",
    ),
    "id-taken": RehearsedRow(
        "blocked", "open", "vrid-taken", "none", ("host",),
        "the address will have the id {vrid} (`vrid:`), and a router of no host of the inventory "
        "has it already: {clashing}; both would use the same link-layer address",
    ),
    "two-machines": RehearsedRow(
        "blocked", "unreachable", "other-machine", "none", ("path",),
        "{holders} {answers} {question} for the address, beside {host} ({asker} asked)",
    ),
    "elsewhere": RehearsedRow(
        "blocked", "unreachable", "other-machine", "none", ("path",),
        "{holders} {answers} {question} for the address, and {host} does not ({asker} asked)",
    ),
    "dhcp": RehearsedRow(
        "blocked", "open", "dhcp-foreign", "none", ("service",),
        "the network of the address should have no DHCP server (`dhcp: none`), and {servers} "
        "({dhcp_asker} asked by a {discover}; nothing was requested)",
    ),
    "silent": RehearsedRow(
        "inconclusive", "unknown", "segment-silent", "none", ("path", "host"),
        "nobody answers {question} for the address, and no host there answered for its own: "
        "something drops them, such as a switch ({asker} asked)",
    ),
    "free": RehearsedRow(
        "pass", "unreachable", "address-free", "witness", (),
        "nobody answers {question} for the address ({asker} asked three times)",
    ),
    "alone": RehearsedRow(
        "pass", "open", "one-machine", "witness", (),
        "{host} alone answers {question} for the address ({asker} asked)",
    ),
}  # fmt: skip


def judge_segment(base: Result, facts: SegmentFacts) -> Result:
    """Give the result of one address; foreign routers that are no fault of it are warnings."""
    row = ROWS[find_segment_fate(facts)]
    stated = facts.clashing if row.reason == "vrid-taken" else ()
    warnings = [*base.warnings, *_list_warnings(facts, stated)]
    if facts.dhcp is not None:
        warnings += _list_dhcp_warnings(facts.dhcp, stated=row.reason == "dhcp-foreign")
    return row.make_result(base, _word_facts(base, facts), warnings=tuple(warnings))


def find_segment_fate(facts: SegmentFacts) -> SegmentFate:
    """Give the key of the table."""
    if facts.is_free and facts.holders:
        return "in-use"
    if facts.clashing:
        return "id-taken"
    if facts.holders:
        return "two-machines" if facts.itself else "elsewhere"
    if facts.dhcp is not None and facts.dhcp.is_barred and facts.dhcp.servers:
        return "dhcp"
    if facts.is_free:
        return "silent" if facts.is_silent else "free"
    return "alone"


def _list_warnings(facts: SegmentFacts, stated: Iterable[RouterSeen]) -> Iterator[str]:
    known = {*stated}
    if facts.is_deaf:
        yield "no host there could listen for routers that share virtual addresses"
    for one in facts.routers:
        if one not in known:
            too = ", too" if one in facts.clashing else ""
            who = "no host of the inventory"
            if one.maybe:
                who = f"perhaps {join_some(one.maybe)}: no agent is there to tell"
            yield f"vrid-taken{too}: {one.words()}, which is {who}"


def _list_dhcp_warnings(dhcp: DhcpFacts, *, stated: bool) -> Iterator[str]:
    if dhcp.failure is not None and dhcp.is_barred:
        yield f"{dhcp.asker} could not ask for DHCP servers ({dhcp.failure})"
    if dhcp.servers and not stated:
        word = "dhcp-foreign, too" if dhcp.is_barred else "DHCP on the network of this address"
        yield f"{word}: {dhcp.words()}"


def _word_facts(base: Result, facts: SegmentFacts) -> dict[str, str]:
    return {
        "holders": join_some(facts.holders),
        "answers": "answers" if len(facts.holders) == 1 else "answer",
        "question": "neighbour solicitations" if ":" in base.address else "ARP requests",
        "asker": f"{facts.asker} on {facts.device}",
        "host": base.destination,
        "servers": facts.dhcp.words() if facts.dhcp else "",
        "dhcp_asker": facts.dhcp.asker if facts.dhcp else "",
        "discover": "SOLICIT" if ":" in base.address else "DISCOVER",
        "vrid": str(facts.vrid),
        "clashing": "; ".join(one.words() for one in facts.clashing),
    }

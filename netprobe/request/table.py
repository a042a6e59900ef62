"""The rules as a table: the columns that the forms of most network teams have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.model.ports import PortRange
from netprobe.model.printable import clean
from netprobe.request.services import echo_type, protocol_number, range_text

# The order and the words are what people map their forms by: add to them, never rename.
COLUMNS = (
    "ID",
    "Action",
    "Source",
    "Source Name",
    "Destination",
    "Destination Name",
    "Protocol",
    "Port",
    "Direction",
    "Stateful Return",
    "Justification",
    "Requirement",
    "Evidence",
    "Enforced By",
    "Requested Until",
    "Finding",
)

# A cell holds several values; the format says what stands between them.
TableRows = tuple[tuple[str, ...], ...]


def columns_of(request: FirewallRequest) -> tuple[str, ...]:
    """Give the head of the table; what --ticket names comes last."""
    return (*COLUMNS, *map(clean, request.ticket))


def rows_of(request: FirewallRequest) -> Iterator[TableRows]:
    """Give one row a rule, or with --one-per-row one for each pair of addresses and range."""
    more = tuple((clean(value),) for value in request.ticket.values())
    for rule in request.rules:
        for part in _split_rule(rule) if request.one_per_row else (rule,):
            yield (*_cells_of(request, part), *more)


def _split_rule(rule: FirewallRule) -> Iterator[FirewallRule]:
    ranges: tuple[PortRange | None, ...] = rule.ports or (None,)
    for source, destination, entry in product(rule.sources, rule.destinations, ranges):
        if source.host != destination.host:
            yield replace(
                rule,
                sources=(source,),
                destinations=(destination,),
                ports=() if entry is None else (entry,),
            )


def _cells_of(request: FirewallRequest, rule: FirewallRule) -> TableRows:
    rows = (
        (request.mark(rule).removeprefix("netprobe "),),
        ("Allow" if rule.action == "allow" else "Deny",),
        tuple(end.address for end in rule.sources),
        tuple(end.host for end in rule.sources),
        tuple(end.address for end in rule.destinations),
        tuple(end.host for end in rule.destinations),
        (protocol_text(rule),),
        tuple(range_text(entry) for entry in rule.ports),
        ("Answers" if rule.answers else "Request",),
        ("No: this is the way back" if rule.answers else "Yes",),
        tuple(need.purpose or need.requirement for need in rule.needs),
        tuple(
            f"{need.matrix}/{need.requirement}{f': {need.row}' if need.row else ''}"
            for need in rule.needs
        ),
        (*rule.evidence, *rule.notes),
        (rule.who,),
        (rule.until,),
        tuple(map(str, rule.findings)),
    )
    return tuple(tuple(map(clean, cell)) for cell in rows)


def protocol_text(rule: FirewallRule) -> str:
    """``tcp``, ``icmp type 8 (echo request)``, ``112``."""
    if rule.protocol == "icmp":
        name = "icmpv6" if rule.family == 6 else "icmp"
        return f"{name} type {echo_type(rule)} (echo {'reply' if rule.answers else 'request'})"
    number = protocol_number(rule)
    return rule.protocol if number is None else str(number)

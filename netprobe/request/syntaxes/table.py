"""The rules as a table for spreadsheets: the columns that the forms of most network teams have."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TextIO

from msgspec.structs import replace

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.model.ports import PortRange
from netprobe.model.printable import clean, disarm_cell
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
    "Packets",
)

# A cell holds several values; the format says what stands between them.
TableRows = tuple[tuple[str, ...], ...]

# What a cell holds at most, in Excel.
_MOST_CHARACTERS = 32_767
_WIDTHS = {"ID": 12, "Action": 8, "Protocol": 10, "Direction": 10, "Evidence": 60}
_OTHER_WIDTH = 24
_OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}


def write_csv(request: FirewallRequest, stream: TextIO) -> None:
    """Write CSV for Excel: UTF-8 with a byte order mark, and CRLF.

    Several values of a cell stand behind each other, with ``;`` between.
    """
    stream.write("\ufeff")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(map(disarm_cell, _columns_of(request)))
    for row in _rows_of(request):
        writer.writerow(disarm_cell(";".join(cell)) for cell in row)


def write_xlsx(request: FirewallRequest, stream: TextIO) -> None:
    """Write a workbook of texts, by XlsxWriter: the rules, and what no rule will mend."""
    from xlsxwriter import Workbook  # noqa: PLC0415 (an extra, which other formats do without)

    made = io.BytesIO()
    with Workbook(made, _OPTIONS) as book:
        head = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        body = book.add_format({"text_wrap": True, "valign": "top"})
        for name, columns, rows in _sheets_of(request):
            sheet = book.add_worksheet(name)
            sheet.freeze_panes(1, 0)
            for place, title in enumerate(columns):
                sheet.set_column(place, place, _WIDTHS.get(title, _OTHER_WIDTH))
                sheet.write_string(0, place, title, head)
            for number, row in enumerate(rows, 1):
                for place, cell in enumerate(row):
                    sheet.write_string(number, place, "\n".join(cell)[:_MOST_CHARACTERS], body)
    stream.flush()
    stream.buffer.write(made.getvalue())


def _sheets_of(
    request: FirewallRequest,
) -> Iterator[tuple[str, Sequence[str], Iterator[TableRows]]]:
    yield "Rules", _columns_of(request), _rows_of(request)
    others = (((one.title,), (one.help,), (str(one.flows),)) for one in request.unmended)
    yield "No rule will help", ("What", "What helps", "Flows"), others
    if request.unprobed:
        yield (
            "Not probed",
            ("What", "Why"),
            (((one.title,), (one.help,)) for one in request.unprobed),
        )


def _columns_of(request: FirewallRequest) -> tuple[str, ...]:
    """Give the head of the table; what --ticket names comes last."""
    return (*COLUMNS, *map(clean, request.ticket))


def _rows_of(request: FirewallRequest) -> Iterator[TableRows]:
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
        (_protocol_text(rule),),
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
        rule.packets,
    )
    return tuple(tuple(map(clean, cell)) for cell in rows)


def _protocol_text(rule: FirewallRule) -> str:
    """``tcp``, ``icmp type 8 (echo request)``, ``112``."""
    if rule.protocol == "icmp":
        name = "icmpv6" if rule.family == 6 else "icmp"
        return f"{name} type {echo_type(rule)} (echo {'reply' if rule.answers else 'request'})"
    number = protocol_number(rule)
    return rule.protocol if number is None else str(number)

"""A workbook for spreadsheets, by XlsxWriter; every cell is a text."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TextIO

from netprobe.model.firewall import FirewallRequest
from netprobe.request.table import TableRows, columns_of, rows_of

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


def write(request: FirewallRequest, stream: TextIO) -> None:
    """Write the workbook: the rules, and what no rule will mend."""
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
    yield "Rules", columns_of(request), rows_of(request)
    others = (((one.title,), (one.help,), (str(one.flows),)) for one in request.unmended)
    yield "No rule will help", ("What", "What helps", "Flows"), others

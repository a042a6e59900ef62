"""CSV for spreadsheets: UTF-8 with a byte order mark and CRLF, as Excel wants it."""

from __future__ import annotations

import csv
import re
from typing import TextIO

from netprobe.model.firewall import FirewallRequest
from netprobe.request.table import columns_of, rows_of

# What makes a cell a formula (CWE-1236), also behind what another locale takes for a separator.
_FORMULA = re.compile(r"(^|[;,\t\r\n|])(\s*)([=+\-@])")


def write(request: FirewallRequest, stream: TextIO) -> None:
    """Write the table; several values of a cell stand behind each other, with ``;`` between."""
    stream.write("\ufeff")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(map(disarm, columns_of(request)))
    for row in rows_of(request):
        writer.writerow(disarm(";".join(cell)) for cell in row)


def disarm(text: str) -> str:
    """Give a text that no spreadsheet takes for a formula: an apostrophe goes before its sign."""
    return _FORMULA.sub(r"\1\2'\3", text)

"""Files of maintenance windows: a list of hosts with a begin and an end."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from netprobe.errors import all_problems
from netprobe.load.accepted import Hosts
from netprobe.load.yaml.document import Document
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import FileModel, validate
from netprobe.load.yaml.wording import quoted
from netprobe.model.maintenance import MaintenanceWindow

_EXPECTED = "expected one such as 2027-01-31T14:00Z"


def _check_time(text: str) -> str:
    try:
        _read_time(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{quoted(text)} is no time, {_EXPECTED}") from None
    return text


def _read_time(text: str) -> float:
    """One without a zone is local."""
    if not {"T", " "} & {*text}:
        raise ValueError(text)
    return datetime.fromisoformat(text).astimezone().timestamp()


Time = Annotated[str, AfterValidator(_check_time)]


class WindowEntry(FileModel):
    """One window."""

    hosts: Hosts = Field(description="The hosts by their names in the inventory.")
    from_: Time = Field(alias="from", description="When it begins.")
    until: Time = Field(description="When it ends.")


class MaintenanceFile(FileModel):
    """The list, under a name of its own: the file is nothing else."""

    windows: list[WindowEntry]


def load_maintenance(path: str) -> tuple[MaintenanceWindow, ...]:
    """Give the windows of a file; FileErrors with every problem of it."""
    with all_problems() as problems:
        document = read_document(path, problems, "windows")
        file = None if document is None else validate(MaintenanceFile, document)
        return () if document is None or file is None else _make_windows(document, file)


def _make_windows(document: Document, file: MaintenanceFile) -> tuple[MaintenanceWindow, ...]:
    made = []
    for index, one in enumerate(file.windows):
        begin, until = _read_time(one.from_), _read_time(one.until)
        if until <= begin:
            words = f"{one.until} is not behind from ({one.from_}), expected a later time"
            document.add_problem(("windows", index, "until"), words)
        made.append(MaintenanceWindow(tuple(one.hosts), begin, until))
    return tuple(made)

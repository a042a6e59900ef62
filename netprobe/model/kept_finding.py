"""A finding as a file keeps it."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from netprobe.model.shapes import AddressText, LineText, Name, ProtocolText, RowId


class Member(Struct, frozen=True):
    """The result, or the part of one, that a finding of a file has; files of 0.1.0 name no matrix.

    A file keeps no text of a finding: it is made of the finding's results when the file is read.
    """

    requirement: RowId
    source: LineText
    destination: LineText
    address: AddressText
    protocol: ProtocolText
    port: int | None = None
    end_port: int | None = None
    matrix: Name | None = None


class KeptFinding(Struct, frozen=True):
    """A finding as a file keeps it: its number, and which results it has.

    ``everything``: nothing that was probed got through between its hosts. ``evidence`` is the file
    with packets of them, or ``no_evidence`` why there is none.
    """

    SPARSE: ClassVar = True

    number: int
    members: tuple[Member, ...]
    everything: bool = False
    evidence: str | None = None
    no_evidence: str | None = None

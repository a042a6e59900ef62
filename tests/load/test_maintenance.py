"""Files of maintenance windows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.maintenance import load_maintenance
from netprobe.model.maintenance import MaintenanceWindow

# What is wrong, by what is told.
WRONG = {
    "- {hosts: [a], from: 2026-11-28T14:00Z}": '1:3: the key "until" is missing',
    "- {hosts: [], from: 2026-11-28T14:00Z, until: 2026-11-28T15:00Z}": "1:11: the list is empty",
    "- {hosts: [a], from: 14:00, until: 2026-11-28T15:00Z}": '1:22: "14:00" is no time',
    "- {hosts: [a], from: 2026-11-28, until: 2026-11-29}": '1:22: "2026-11-28" is no time',
    "- {hosts: [a], from: 2026-11-28T15:00Z, until: 2026-11-28T15:00Z}": "1:48: 2026-11-28",
    "- {host: [a], from: 2026-11-28T14:00Z, until: 2026-11-28T15:00Z}": '1:4: unknown key "host"',
    "hosts: [a]": "1:1: this is a mapping, expected a list",
    "- a": '1:3: "a" is text, expected a mapping',
    "- [": "not valid YAML",
    "": "expected a list",
}  # fmt: skip


def test_windows_are_read(tmp_path: Path) -> None:
    """One host stands for a list of one; a time may have a zone; an empty list is no window."""
    path = tmp_path / "m.yaml"
    path.write_text(
        "- {hosts: [a, b], from: 2026-11-28T14:00Z, until: 2026-11-28T15:00:30Z}\n"
        "- {hosts: c, from: '2026-11-28 16:00+02:00', until: 2026-11-28T16:00+01:00}\n"
        "- {hosts: [d], from: 2026-11-28T14:00Z, until: 2026-11-28T14:01Z}\n"
    )
    begin = datetime(2026, 11, 28, 14, tzinfo=UTC).timestamp()
    assert load_maintenance(str(path)) == (
        MaintenanceWindow(("a", "b"), begin, begin + 3630),
        MaintenanceWindow(("c",), begin, begin + 3600),
        MaintenanceWindow(("d",), begin, begin + 60),
    )
    path.write_text("[]")
    assert load_maintenance(str(path)) == ()


def test_what_is_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    """Every kind of mistake, and a file that is not there."""
    path = tmp_path / "m.yaml"
    for text, told in WRONG.items():
        path.write_text(text)
        with pytest.raises(FileErrors) as caught:
            load_maintenance(str(path))
        assert told in str(caught.value), text
    path.unlink()
    with pytest.raises(FileErrors, match=r"m\.yaml"):
        load_maintenance(str(path))

"""What every syntax looked like when somebody last held it against the vendor's grammar.

``NETPROBE_UPDATE_GOLDEN=1`` (or ``make golden``) rewrites the files; a human reads the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import netprobe
from netprobe.request.syntaxes import SYNTAXES
from tests.request.flows import written
from tests.request.samples import sample

FOLDER = Path(__file__).parents[1] / "golden" / "request"
REWRITE = os.environ.get("NETPROBE_UPDATE_GOLDEN") or (
    os.environ.get("NETPROBE_REWRITE") == "golden"
)
CASES = [
    (name, undo)
    for name, one in SYNTAXES.items()
    for undo in (False, True)
    if name != "xlsx" and (not undo or one.undo)
]


@pytest.mark.parametrize(("syntax", "undo"), CASES)
def test_golden(syntax: str, undo: bool) -> None:
    """A change of what people paste into firewalls is read before it is made."""
    text = written(sample(), syntax, undo=undo).replace(netprobe.__version__, "VERSION")
    path = FOLDER / f"{syntax}.{'undo' if undo else 'add'}"
    if REWRITE:
        path.write_bytes(text.encode())

    assert path.read_bytes().decode() == text


def test_golden_files_are_those_of_syntaxes() -> None:
    """No file is left of a syntax that is gone."""
    wanted = {f"{name}.{'undo' if undo else 'add'}" for name, undo in CASES}

    assert {path.name for path in FOLDER.iterdir()} == wanted

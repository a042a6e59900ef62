"""Opens labs that need programs of other packages, or skips and says what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from tests.lab.netlab import Lab, LabError, find_program

AnyLab = TypeVar("AnyLab", bound=Lab)


@contextmanager
def open_lab(lab: AnyLab, *programs: str) -> Iterator[AnyLab]:
    """Build a lab that needs these programs; skip where one is missing, or it cannot be built."""
    for program in programs:
        if find_program(program) is None:
            pytest.skip(f"{program} is not installed (make lab-packages)")
    try:
        lab.__enter__()
    except (LabError, PermissionError) as problem:
        pytest.skip(f"this machine builds no such lab: {problem}")
    try:
        yield lab
    finally:
        lab.close()

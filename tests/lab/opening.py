"""Opens labs that need programs of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tests.lab.netlab import Lab
from tests.needs import require

AnyLab = TypeVar("AnyLab", bound=Lab)


@contextmanager
def open_lab(lab: AnyLab, *programs: str) -> Iterator[AnyLab]:
    """Build a lab that needs these programs; skip what uses it where one is missing."""
    require(*programs)
    with lab:
        yield lab

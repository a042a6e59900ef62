"""How tests say what they need: where that is missing they are skipped, and say what would help.

    @pytest.mark.needs("namespaces", "dnsmasq")

names rights (``tests/rights.py``) and programs (``tests/lab/packages.sh``). The mark ``lab`` needs
``namespaces``. `make test` runs what lacks rights in a user namespace (``tests/parts.py``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.lab.userns import MARK
from tests.rights import Lack, lack_of

# Set by tests/parts.py: the rights that only the user namespace has, and where to note skips.
APART = "NETPROBE_TESTS_APART"
SKIPS = "NETPROBE_TESTS_SKIPS"


def needs_of(item: pytest.Item) -> list[str]:
    """Every right and program that a test's marks name."""
    lab = ["namespaces"] if item.get_closest_marker("lab") else []
    return lab + [name for mark in item.iter_markers("needs") for name in mark.args]


def belongs_here(item: pytest.Item) -> bool:
    """Whether this part of `make test` runs a test: outside the user namespace, or in it."""
    apart = {name for name in os.environ.get(APART, "").split(",") if name}
    return not apart or (MARK in os.environ) != apart.isdisjoint(needs_of(item))


def require(*names: str) -> None:
    """Skip the test that runs where a right or a program is missing."""
    for name in names:
        lack = lack_of(name)
        if lack is not None:
            skip(*lack)


def skip(reason: str, remedy: str) -> NoReturn:
    """Skip the test that runs: why, and what it needs."""
    pytest.skip(str(Lack(reason, remedy)))


def report_skips(skipped: Iterable[str], write_line: Callable[[str], object]) -> None:
    """Write a line a reason with its count, or leave them to who runs several parts."""
    reasons = [text.removeprefix("Skipped: ").replace("\n", " ") for text in skipped]
    if SKIPS in os.environ:
        with Path(os.environ[SKIPS]).open("a") as notes:
            notes.writelines(f"{reason}\n" for reason in reasons)
        return
    for reason, count in Counter(reasons).most_common():
        write_line(f"skipped {count}: {reason}")

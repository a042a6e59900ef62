"""What the agent's tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent import netlab


def pytest_make_parametrize_id(val: object) -> str | None:
    """Call a lab's machine ``r1``: its namespace has a number that each test process chooses."""
    if isinstance(val, str) and val in netlab.NAMES:
        return val.removeprefix(f"{netlab.PREFIX}-")
    return None


@pytest.fixture
def lab() -> Iterator[None]:
    """Four fresh namespaces without rules, for tests of the mark ``lab``."""
    netlab.build()
    yield
    netlab.remove()

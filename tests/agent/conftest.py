"""What the agent's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.agent import netlab


@pytest.fixture
def lab() -> Iterator[None]:
    """Four fresh namespaces without rules; needs root."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    netlab.build()
    yield
    netlab.remove()

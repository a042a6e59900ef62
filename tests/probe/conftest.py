"""What all tests of the probe stage share: nobody waits, neither for a bucket nor for a clock."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from netprobe.probe.checks import next_hops, rate_limits
from tests.loops import LoopFactory, loops_of


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    """Let time jump where fakes answer; a test with a real agent names the real loop."""
    return loops_of(item, "jumping")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_hops, "REFILL_S", 0)
    monkeypatch.setattr(rate_limits, "REFILL_S", 0)

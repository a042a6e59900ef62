"""What all tests of the probe stage share: nobody waits, neither for a bucket nor for a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from netprobe.probe.checks import dead_hosts, rate_limits
from netprobe.probe.jumping_loop import JumpingLoop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@pytest.hookimpl
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    """Let time jump: fakes answer in this loop, so that no busy machine makes them late.

    A test with a real agent says so: ``pytest.mark.asyncio(loop_factories=["real"])``.
    """
    marker = item.get_closest_marker("asyncio")
    is_real = marker is not None and marker.kwargs.get("loop_factories") == ["real"]
    return {"real": asyncio.SelectorEventLoop} if is_real else {"jumping": JumpingLoop}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_hosts, "REFILL_S", 0)
    for name in ("REFILL_S", "BATCH_S", "SMALL_BATCH_S"):
        monkeypatch.setattr(rate_limits, name, 0)

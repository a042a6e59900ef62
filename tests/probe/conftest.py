"""What all tests of the probe stage share: nobody waits for a router's bucket to fill."""

from __future__ import annotations

import pytest

from netprobe.probe.checks import dead_hosts, rate_limits


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_hosts, "REFILL_S", 0)
    for name in ("REFILL_S", "BATCH_S", "SMALL_BATCH_S"):
        monkeypatch.setattr(rate_limits, name, 0)

"""How a run probes, in the words of an order."""

from __future__ import annotations

import pytest

from netprobe.probe.settings import ProbeSettings, Timing


@pytest.mark.parametrize(
    ("settings", "timing"),
    [
        # The agent learns from the host's answers how long the first look must wait.
        (ProbeSettings(), Timing(None, 4000, 1)),
        # The looks after it are the follow-up check's (``silence``).
        (ProbeSettings(looks=5), Timing(None, 4000, 1)),
        (ProbeSettings(timeout_s=1.5), Timing(1500, 1500, 1)),
        (ProbeSettings(timeout_s=0.0004, looks=1), Timing(0, 0, 1)),
    ],
)
def test_the_looks_of_an_order(settings: ProbeSettings, timing: Timing) -> None:
    """--timeout holds for every look; without it four seconds hold three SYNs."""
    assert settings.timing == timing
    assert settings.look_ms == timing.look_ms

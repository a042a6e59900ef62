"""The small form of ``python -m tests.reach.fleets``: counts, and memory in steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reach.fleets import Fleet

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from tests.reach.fleets import Fleet, replay
json.dump(replay(Fleet(*json.loads(sys.argv[1]))), sys.stdout)
"""


def replay(fleet: Fleet) -> dict[str, Any]:
    """Run a fleet in a process of its own."""
    argv = [sys.executable, "-c", PROGRAM, json.dumps(fleet)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "fleet", [Fleet(200, "hypershift-hcp"), Fleet(200, zones=10, ports=40)], ids=["hcp", "cover"]
)
def test_a_recorded_fleet_passes_whole(fleet: Fleet) -> None:
    """Every flow is a result, and no pair takes many frames."""
    found = replay(fleet)

    assert found["counts"]["pass"] == found["flows"]
    assert found["frames"] < 6 * found["pairs"] + 20 * fleet.hosts


@pytest.mark.full
def test_frames_grow_with_hosts_and_not_with_pairs() -> None:
    """In a mesh every host probes every other, and a frame names many of them."""
    small, large = (replay(Fleet(hosts, zones=hosts, ports=4)) for hosts in (20, 60))

    assert large["counts"]["pass"] == large["flows"]
    pairs = large["pairs"] / small["pairs"]
    assert pairs > 9
    assert large["probe_frames"] < 0.6 * pairs * small["probe_frames"]

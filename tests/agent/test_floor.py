"""The agent's floor: what EL8's platform-python, which is 3.6, must be able to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import netprobe.agent


@pytest.mark.slow
def test_vermin_finds_nothing_newer_in_the_agent() -> None:
    """Neither syntax nor standard library of the agent is newer than Python 3.6."""
    words = ["--quiet", "--no-tips", "--violations", "--eval-annotations", "-t=3.6-"]
    vermin = Path(sys.executable).with_name("vermin")
    done = subprocess.run(
        [vermin, *words, *netprobe.agent.__path__], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout

"""Runs the command line as a user would: a process of its own, nothing of this environment's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.warm import run_warm_text

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "netprobe")


def environment(**more: str) -> dict[str, str]:
    """The environment without any setting of netprobe but these."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("NETPROBE_")}
    return {**clean, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **more}


def netprobe(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``netprobe WORDS`` in a folder, with these variables set."""
    return run_warm_text(words, environment(**variables), cwd, PATIENCE_S)

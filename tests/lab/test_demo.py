"""`make demo` does what the README says, in each way that a machine allows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.lab import userns
from tests.lab.cli import ROOT
from tests.lab.netlab import Lab
from tests.lab.printed import check_output, read_commands
from tests.needs import skip

DEMO = [sys.executable, str(ROOT / "demo" / "run.py")]


def _run(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_demo_finds_exactly_what_its_firewall_stops() -> None:
    """In a user namespace, as people run it who are not root: all is well in the end, and what the
    README shows of the rehearsal is said."""
    reason = userns.why_not()
    if reason is not None:
        skip(f"no user namespace here ({reason})", "a kernel that allows them")
    lines = _run(userns.command_inside(DEMO))

    assert lines[-1].startswith("DEMO OK: the firewall stops 2041 required flows")
    ((command, shown),) = read_commands(ROOT / "README.md", "demo$ ")
    check_output(command, shown, "\n".join(lines))


@pytest.mark.slow
def test_the_reduced_demo_says_that_it_is_one() -> None:
    """Where no firewall can be built, the demo says so first and still checks every answer."""
    with Lab() as lab:
        lines = _run([*lab.namespace("machine").enter, *DEMO, "--reduced"])

    assert lines[0].startswith("DEMO REDUCED: ")
    assert lines[-1].startswith("DEMO OK (reduced): all 7 answers")

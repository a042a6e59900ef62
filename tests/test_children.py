"""A child that ends before it has read its input: no traceback of asyncio reaches the user."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

CHILD = """
import asyncio, gc
from netprobe.children import allow_unread_input
from netprobe.vantage.process import AgentProcess

DEAF = ["sh", "-c", "sleep 0.1; exec <&-; sleep 0.1"]

async def communicate():
    process = await asyncio.create_subprocess_exec(*DEAF, stdin=asyncio.subprocess.PIPE)
    allow_unread_input(process)
    await process.communicate(bytes(1000000))

async def speak():
    process = await AgentProcess.spawn(DEAF)
    process.stdin.write(bytes(1000000))
    await process.wait()
    await process.end(1000)

asyncio.run({work}())
gc.collect()
"""


@pytest.mark.parametrize("work", ["communicate", "speak"])
def test_nothing_is_printed(work: str) -> None:
    """Neither by the loop nor by the garbage collector."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(work=work)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")

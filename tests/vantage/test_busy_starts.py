"""A start on a busy machine: what waits for a processor here is no host that does not answer."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from functools import partial

import pytest

from netprobe.errors import AgentError
from netprobe.vantage import launch as launch_module
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.process import measure_wait_s
from tests.patience import wait_until
from tests.vantage.support import HOST, KEY, command

BUSY = "while :; do :; done"


def has_waited(pid: int) -> bool:
    return measure_wait_s(pid) > 0.1


def test_who_shares_a_processor_waits_for_it() -> None:
    """And so does who started it; who has ended does not, and who sleeps does not."""
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(here)})
    try:
        loops = [
            subprocess.Popen(("sh", "-c", words), start_new_session=True)
            for words in (BUSY, f"{BUSY} & wait")
        ]
    finally:
        os.sched_setaffinity(0, here)
    try:
        for one in loops:
            wait_until(partial(has_waited, one.pid), "a loop to wait")
    finally:
        for one in loops:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()
    assert [measure_wait_s(one.pid) for one in loops] == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("waited_s", "told"),
    [
        (0.0, r"no agent after 0\.3 s$"),
        (0.6, r"no agent after 0\.3 s and 0\.6 s for which this machine was busy or stood still$"),
        (99.0, r"no agent after 0\.3 s and 0\.9 s for which this machine was busy or stood still$"),
    ],
)
async def test_that_wait_comes_on_top_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, waited_s: float, told: str
) -> None:
    """Up to four times the limit, and the words say what it was."""
    monkeypatch.setattr(launch_module, "measure_wait_s", lambda pid: waited_s)
    monkeypatch.setattr(launch_module, "LATE_S", 1000.0)
    async with Launcher(start_timeout_s=0.3) as launcher:
        with pytest.raises(AgentError) as caught:
            await start_agent(command("sh", "-c", "sleep 1000"), HOST, key=KEY, launcher=launcher)

    assert caught.value.reason == "start-timeout"
    assert re.search(told, str(caught.value)), str(caught.value)


@pytest.mark.slow
async def test_a_machine_that_stood_still_gives_the_host_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit is time in which this process ran."""
    monkeypatch.setattr(launch_module, "measure_wait_s", lambda pid: 0.0)
    async with Launcher(start_timeout_s=1.5) as launcher:
        asyncio.get_running_loop().call_later(0.2, time.sleep, 3.0)
        with pytest.raises(AgentError) as caught:
            await start_agent(command("sh", "-c", "sleep 1000"), HOST, key=KEY, launcher=launcher)

    found = re.search(r"no agent after 1\.5 s and (.*) s for which this machine", str(caught.value))
    assert found is not None, str(caught.value)
    assert float(found[1]) > 1.0

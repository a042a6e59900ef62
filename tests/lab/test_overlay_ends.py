"""What ``--rehearse`` leaves on hosts, however it ends: nothing."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cli import COMMAND
from tests.lab.killing import killed_run
from tests.lab.netlab import Lab, wait_for
from tests.lab.overlays import LARGE, OverlayPair

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MOMENTS = 25
# All is gone within 5 s, and listing it takes time; a connection that the kernel goes on closing
# would hold a namespace for minutes.
GONE_S = 20


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


@pytest.mark.full
def test_a_run_leaves_nothing(lab: Lab) -> None:
    """After a rehearsal the hosts show the same devices, sockets, routes, rules and settings."""
    pair = OverlayPair(lab)
    before = pair.list_all()
    assert pair.run("--rehearse").status == 0
    wait_for(lambda: pair.list_all() == before, "the hosts as they were")


@pytest.mark.full
@pytest.mark.parametrize("who", ["agents", "coordinator"])
def test_nothing_stays_after_kill_9(lab: Lab, who: str) -> None:
    """Whenever agents or coordinator are killed in a rehearsal: no process, namespace, device,
    socket, route, rule or setting is there that was not there before."""
    pair = OverlayPair(lab)
    # A tunnel takes 4 s, and a connection has data that is never acknowledged.
    pair.forward(*LARGE)
    before = pair.list_all()
    words = [*COMMAND, "run", "--rehearse", *pair.write_files()]
    seed = random.Random(who)
    for _ in range(MOMENTS):
        moment = seed.uniform(0, 4)
        with killed_run(
            words, (pair.a, pair.b), who, begins=lambda: _has_tunnel(pair), moment_s=moment
        ):
            tasks = _tasks_in_tunnels(pair)
        wait_for(lambda: not pair.a.pids() and not pair.b.pids(), "the end of all agents")
        wait_for(lambda: pair.list_all() == before, f"the end of all, killed at {moment}", GONE_S)
        assert not [one for one in tasks if one.exists()], moment


def _tasks_in_tunnels(pair: OverlayPair) -> list[Path]:
    """List the threads that are in another namespace than their process."""
    tasks = []
    for pid in (*pair.a.pids(), *pair.b.pids()):
        with contextlib.suppress(OSError):  # it has ended
            folder = Path(f"/proc/{pid}/task")
            own = _namespace_of(folder / str(pid))
            tasks += [one for one in folder.iterdir() if _namespace_of(one) not in {own, None}]
    return tasks


def _namespace_of(task: Path) -> str | None:
    try:
        return os.readlink(task / "ns/net")
    except OSError:  # it has ended
        return None


def _has_tunnel(pair: OverlayPair) -> bool:
    """Tell whether the kernel, and no process, holds the port on a."""
    lines = pair.a.run("ss", "-Hanup").splitlines()
    return any(":8472" in line and "users:" not in line for line in lines)

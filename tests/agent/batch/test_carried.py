"""Bundles that are carried to a host: under every Python, by the clock, and refused in words."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.batch import HostBudgets
from netprobe.agent.wire.orders import ProbeOrder, RecordOrder, StoryOrder
from netprobe.batch.script import HostScript
from tests.agent.batch.carried import RUN, bundle_of, command, read, run, script
from tests.agent.interpreters import INTERPRETERS
from tests.batch.support import FOUND, outcomes_of, phases
from tests.lab.netlab import Lab
from tests.patience import wait_until
from tests.ports import free_port
from tests.vantage.support import TEMPLATES, probe

pytestmark = pytest.mark.slow

# Longer than any test.
LONG_MS = 600_000

# Documentation's own: no host has it.
NOBODY = "192.0.2.77"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port of loopback that says nothing: the queue of its listener is full."""
    place = ("127.0.0.1", free_port())
    with socket.create_server(place, backlog=0), socket.create_connection(place):
        yield place[1]


def silence(number: int, port: int, look_ms: int) -> ProbeOrder:
    """An order whose only look at a port, which is the first one, is so long."""
    asked = probe(number, "tcp", "127.0.0.1", [(port, port)])
    return asked._replace(first_ms=look_ms, look_ms=look_ms, looks=1)


def has_told(bundle: Path, phase: str) -> bool:
    """Whether the host has told that a phase began."""
    there = bundle.with_name("node-1.npr").exists()
    return there and phase in [mark.phase for mark in read(bundle).marks]


@pytest.mark.parametrize("version", INTERPRETERS)
def test_a_bundle_runs_under_every_python(version: str, tmp_path: Path) -> None:
    """Listeners, probes over TCP and UDP, what listeners saw, one line, and the exit status."""
    port = free_port()
    bundle = bundle_of(tmp_path, script(phases(port)))
    done = run(bundle, python=INTERPRETERS[version])
    assert done.stderr == ""
    assert done.stdout == (
        f"netprobe {RUN}, round 1, node-1: 3 flows asked, 2 answered; not as it should be: "
        f"tcp {port + 1} of 127.0.0.1 refused; results in {tmp_path}/node-1.npr\n"
    )
    assert done.returncode == 1
    found = read(bundle)
    assert found.hello is not None
    assert found.hello.python.startswith(f"{version}.")
    assert (outcomes_of(found), found.is_cut) == (FOUND, False)
    assert [one.order for one in found.answers[902][0].orders] == [1, 2]
    assert os.stat(tmp_path / "node-1.npr").st_mode & 0o77 == 0


def test_all_is_well(tmp_path: Path) -> None:
    """Exit status 0, and the host is named where its addresses do not."""
    port = free_port()
    good = [("listen", phases(port)[0][1]), ("go", phases(port)[1][1][:2]), phases(port)[2]]
    scripts = [script(good, host, addresses=[NOBODY]) for host in (3, 4)]
    done = run(bundle_of(tmp_path, *scripts), "--host=node-2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "node-2: 2 flows asked, 2 answered; results in" in done.stdout
    assert (tmp_path / "node-2.npr").exists()


def test_ports_that_must_not_answer(tmp_path: Path) -> None:
    """For them an answer is what is wrong, and they are asked before the others."""
    port = free_port()
    listen, (_, (first, _, closed)), _ = phases(port)
    asked = [listen, ("denied", [first]), ("go", [closed._replace(id=9)])]
    done = run(bundle_of(tmp_path, script(asked)))
    assert done.returncode == 1
    assert f"tcp {port} of 127.0.0.1 answers" in done.stdout
    found = read(tmp_path / "run.pyz")
    assert [order.id for order in found.orders if isinstance(order, ProbeOrder)] == [1, 9]


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        ({}, ["--host", "node-9"], "there is no host node-9 in this run; its hosts are node-1"),
        ({}, ["--hots", "node-1"], "--hots is unknown or lacks its value; usage: python3 run.pyz"),
        ({}, ["--out"], "--out is unknown or lacks its value"),
        ({}, ["--out", "nowhere"], "nowhere/node-1.npr cannot be written: No such file"),
        ({"addresses": [NOBODY]}, [], "no host of this run (node-1) has an address of this one (1"),
        ({"ends_at": 1e9}, [], "too late: this run ended at 2001-09-09T01:46:40Z, and this host's"),
        (
            {"barrier": "clock", "starts_at": 1e9, "window_s": 60.0},
            [], "too late: this run ended at 2001-09-09T01:47:40Z",
        ),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: list[str], said: str
) -> None:
    """One line, exit status 2, and no results."""
    done = run(bundle_of(tmp_path, script([], **changes)), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"netprobe: {said}")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.npr"))


def test_a_host_that_is_two(tmp_path: Path) -> None:
    """Addresses that two hosts of the run have, say not which one this is."""
    done = run(bundle_of(tmp_path, script([]), script([], 4)))
    assert done.returncode == 2
    assert "are those of node-1, node-2; name it with --host" in done.stderr


def test_a_host_that_has_run_before(tmp_path: Path) -> None:
    """Its results are not overwritten; those of another round stand beside them."""
    bundle = bundle_of(tmp_path, script([]))
    assert run(bundle).returncode == 0
    before = (tmp_path / "node-1.npr").read_bytes()
    again = run(bundle)
    assert again.returncode == 2
    assert f"{tmp_path}/node-1.npr is there already: this host has run before" in again.stderr
    assert (tmp_path / "node-1.npr").read_bytes() == before
    assert run(bundle_of(tmp_path, script([], round=2))).returncode == 0
    assert (tmp_path / "node-1.round2.npr").exists()


def test_a_host_that_runs_already(tmp_path: Path, silent_port: int) -> None:
    """Two at once would take each other's ports. A signal ends the first one in order."""
    silent = silence(1, silent_port, LONG_MS)
    bundle = bundle_of(tmp_path, script([("listen", [TEMPLATES]), ("go", [silent])]))
    with subprocess.Popen(command(bundle), stdout=subprocess.PIPE, text=True) as first:
        wait_until(lambda: has_told(bundle, "go"))
        (tmp_path / "other").mkdir()
        second = run(bundle, "--out", str(tmp_path / "other"))
        assert second.returncode == 2
        assert "node-1 runs this already, in another process" in second.stderr
        first.send_signal(signal.SIGTERM)
        said, _ = first.communicate()
    assert first.returncode == 130
    assert "node-1 was stopped: 0 flows asked" in said
    assert read(bundle).words == "the host was stopped before it had finished"


def test_a_kill_leaves_what_was_told_until_then(tmp_path: Path, silent_port: int) -> None:
    """Every answer is in the file soon after it came."""
    port = free_port()
    listen, (_, asked), _ = phases(port)
    silent = silence(9, silent_port, LONG_MS)
    bundle = bundle_of(tmp_path, script([listen, ("go", asked), ("go", [silent])]))
    with subprocess.Popen(command(bundle), stdout=subprocess.DEVNULL) as running:
        path = tmp_path / "node-1.npr"
        wait_until(lambda: path.exists() and 9 in [o.id for o in read(bundle).orders if o.id])
        running.kill()
    found = read(bundle)
    assert (outcomes_of(found), found.is_cut) == (FOUND, True)


def test_probes_end_with_their_window(tmp_path: Path, silent_port: int) -> None:
    """What is still out is cancelled, and the host says that it does not know."""
    silent = silence(1, silent_port, LONG_MS)
    listen = ("listen", [TEMPLATES])
    done = run(bundle_of(tmp_path, script([listen, ("go", [silent])], window_s=0.3)))
    assert "1 orders were not done in time" in done.stdout
    assert done.returncode == 3
    found = read(tmp_path / "run.pyz")
    assert (found.answers[1][-1].cancelled, found.is_cut) == (True, False)


def test_a_clock_says_when(tmp_path: Path) -> None:
    """Listeners open a margin before the start, and close a margin behind the window."""
    # A busy machine needs seconds until a Python is there, and may be late.
    at = time.time() + 8.0
    port = free_port()
    by_clock = script(
        phases(port), barrier="clock", starts_at=at, window_s=2.0, margin_s=0.2, ends_at=None
    )
    done = run(bundle_of(tmp_path, by_clock))
    found = read(tmp_path / "run.pyz")
    assert outcomes_of(found) == FOUND
    waited = found.marks[0].wall_s < at - 0.3
    assert done.stderr.startswith("netprobe: waiting until 20") is waited
    times = {mark.phase: mark.wall_s - at for mark in found.marks}
    assert -0.2 <= times["listening"] < times["go"]
    assert 0.0 <= times["go"] < times["probed"]
    assert times["tell"] >= 2.2


def test_a_clock_that_is_wrong_shows_in_the_results(tmp_path: Path) -> None:
    """The hidden option of tests shifts every time: marks, and what the recorder saw."""
    port = free_port()
    listen, (_, asked), _ = phases(port)
    here = "127.0.0.1"
    story = StoryOrder(700, "tcp", None, here, here, [(port, port)], True, [], [])
    bundle = bundle_of(tmp_path, script([listen, ("go", asked), ("tell", [story])]))
    before_s = time.time()
    run(bundle, "--shift-clock", "1200")
    shifted = (before_s + 1199, time.time() + 1201)
    found = read(bundle)
    assert shifted[0] < found.marks[0].wall_s < shifted[1]
    (told,) = found.answers[700]
    assert isinstance(told, StoryTold)
    if found.hello is not None and found.hello.net_raw:
        assert told.runs[0].requests is not None
        assert shifted[0] < told.runs[0].requests.first_ns / 1e9 < shifted[1]


def test_a_bug_of_an_order_is_its_answer(tmp_path: Path) -> None:
    """An order that cannot be carried out ends, the others go on, and the line says it."""
    port = free_port()
    listen, (_, asked), _ = phases(port)
    wrong = asked[0]._replace(id=5, blocks=[asked[0].blocks[0]._replace(template=77)])
    done = run(bundle_of(tmp_path, script([listen, ("go", [wrong, asked[0]])])))
    assert done.returncode == 3
    assert "the agent had 1 faults (KeyError: 77)" in done.stdout
    assert outcomes_of(read(tmp_path / "run.pyz")) == {1: (None, "nonce")}


def test_a_host_asks_further_within_its_budgets(tmp_path: Path, silent_port: int) -> None:
    """Orders of its own stand in the results before their answers."""
    silent = silence(1, silent_port, 100)._replace(host=4)
    listen = ("listen", [TEMPLATES, RecordOrder([], [], None)])
    budgets = HostBudgets(looks=4, walks=0, routes=1, stories=0)
    made: HostScript = script([listen, ("go", [silent])], budgets=budgets)
    run(bundle_of(tmp_path, made))
    found = read(tmp_path / "run.pyz")
    first, last = made.start.own_ids
    own = [order for order in found.orders if order.id >= first]
    assert own
    assert all(first <= order.id <= last for order in own)
    assert all(order.id in found.answers for order in own)


@pytest.mark.lab
def test_silence_is_silence_also_where_the_kernel_gives_up_early(tmp_path: Path) -> None:
    """A connect that the kernel would end after 3 s is one that nobody answered."""
    bundle = bundle_of(tmp_path, script([("go", [TEMPLATES, silence(1, 5555, 3300)])]))
    with Lab() as lab:
        host = lab.namespace("node")
        host.nft(
            "table ip t { chain i { type filter hook input priority 0; tcp dport 5555 drop; }; }"
        )
        host.run("sysctl", "-qw", "net.ipv4.tcp_syn_retries=1")
        host.run(*command(bundle), check=False)
    assert outcomes_of(read(bundle)) == {1: ("no-answer", None)}


def test_listeners_close_at_the_end(tmp_path: Path) -> None:
    """Whatever the script forgets."""
    port = free_port()
    listen = ("listen", [TEMPLATES, phases(port)[0][1][2]])
    for number, name in ((1, "node-1"), (2, "node-1.round2")):
        bundle = bundle_of(tmp_path, script([listen], round=number))
        assert run(bundle).returncode == 0
        (opened,) = read(bundle, name).answers[901]
        assert [item.up for item in opened.blocks] == [[(port, port)]] * 2

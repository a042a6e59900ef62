"""Orders shared among workers (``--jobs``): the same answers as one process, and no orphans."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.agent import AgentProcess, Answers, answers_of, tcp_order
from netprobe.agent.core.workers import Share, split
from tests.lab.netlab import Lab, Namespace

SOURCE, DESTINATION = "10.77.0.1", "10.77.0.2"
PORTS = [[20001, 24000]]
TWO = {"t": "jobs", "count": 2}

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one processor: an agent is one process anyway"
)


@pytest.fixture(scope="module")
def source() -> Iterator[Namespace]:
    """A machine beside one whose firewall rejects some ports and drops a few."""
    with Lab() as lab:
        source, target = lab.namespace("source"), lab.namespace("target")
        lab.cable(source, "eth0", target, "eth0")
        source.ip(f"address add {SOURCE}/24 dev eth0")
        target.ip(f"address add {DESTINATION}/24 dev eth0")
        # What is compared are the workers, not the kernel's own brakes on ICMP.
        limits = ("icmp_ratelimit=0", "icmp_msgs_per_sec=1000000", "icmp_msgs_burst=100000")
        target.run("sysctl", "-q", "-w", *(f"net.ipv4.{limit}" for limit in limits))
        target.nft(
            "table inet filter {\nchain input {\ntype filter hook input priority 0;\n"
            "tcp dport 21000-21499 reject with icmp admin-prohibited\n"
            "tcp dport { 20500, 22001, 23999 } drop\n}\n}"
        )
        yield source


@pytest.fixture
def agent(source: Namespace) -> Iterator[AgentProcess]:
    """The packed agent on the source, told that it may be two processes."""
    agent = AgentProcess(source.enter)
    agent.send(TWO)
    yield agent
    agent.stop()


def probed(agent: AgentProcess, order: dict[str, Any]) -> tuple[Answers, list[dict[str, Any]]]:
    """The answer of every port, and the frames that held them."""
    frames = [frame for _, frame in agent.probe([order])]
    return answers_of([(order["dst"], frame) for frame in frames]), frames


def order(number: int = 1) -> dict[str, Any]:
    """All ports of the destination; one short look is enough for what is dropped."""
    return dict(tcp_order(number, DESTINATION, PORTS), looks=1, look_ms=1500)


def test_workers_say_what_one_process_says(source: Namespace, agent: AgentProcess) -> None:
    """Closed, rejected (and by whom) and dropped ports are the same, each exactly once."""
    alone = AgentProcess(source.enter)
    expected, alone_frames = probed(alone, order())
    assert children(alone) == []
    alone.stop()
    found, frames = probed(agent, order())

    assert len(children(agent)) == 2
    assert found == expected
    assert list(found.values()).count("silent") == 3
    assert list(found.values()).count("rejected") == 500
    assert offenders(frames) == offenders(alone_frames) == {(3, 13, DESTINATION, 64)}


def test_the_ports_of_a_killed_worker_go_to_another(agent: AgentProcess) -> None:
    """Killed while it waits for dropped ports: every port is answered all the same, once."""
    probed(agent, order(1))
    first = children(agent)
    agent.send({"t": "probe", **order(2)})
    os.kill(first[0], signal.SIGKILL)
    frames = []
    for frame in agent.frames():
        frames.append(frame)
        if frame["t"] == "done":
            break

    answers = answers_of([(DESTINATION, one) for one in frames if one["t"] == "outcomes"])
    assert len(answers) == 4000
    assert list(answers.values()).count("silent") == 3
    assert first[0] not in children(agent)
    assert len(children(agent)) == 2


def test_workers_that_die_again_and_again_end_the_order(agent: AgentProcess) -> None:
    """Then the coordinator hears of it, instead of waiting for ever."""
    agent.send({"t": "probe", **dict(order(), look_ms=60000)})
    fault = {}  # type: dict[str, Any]
    while not fault:
        for pid in children(agent):
            with contextlib.suppress(ProcessLookupError):  # the agent has replaced it meanwhile
                os.kill(pid, signal.SIGKILL)
        agent.send({"t": "beat"})
        for frame in agent.frames():
            if frame["t"] == "fault":
                fault = frame
            if frame["t"] in ("fault", "beat"):
                break

    assert fault["id"] == 1


def test_a_cancelled_order_is_done_once(agent: AgentProcess) -> None:
    """Both workers end their part; the coordinator hears one ``done``."""
    agent.send({"t": "probe", **dict(order(), look_ms=60000)})
    agent.send({"t": "cancel", "id": 1})
    agent.send({"t": "probe", **order(2)})
    done = []
    for frame in agent.frames():
        done += [frame] if frame["t"] == "done" else []
        if frame["t"] == "done" and frame["id"] == 2:
            break

    assert [(frame["id"], frame["cancelled"]) for frame in done] == [(1, True), (2, False)]


@pytest.mark.parametrize("end", ["end of input", "stop", "killed"])
def test_no_worker_is_left(source: Namespace, end: str) -> None:
    """Whatever ends the agent ends its workers, in the midst of an order too."""
    agent = AgentProcess(source.enter)
    agent.send(TWO)
    probed(agent, order(1))
    pids = children(agent)
    assert len(pids) == 2
    agent.send({"t": "probe", **dict(order(2), look_ms=60000)})
    if end == "stop":
        agent.send({"t": "stop"})
    elif end == "killed":
        os.kill(agent.pid, signal.SIGKILL)
    agent.stop()

    wait_for(lambda: not [pid for pid in pids if is_running(pid)])


def test_workers_hold_no_descriptor_of_the_agent(agent: AgentProcess) -> None:
    """Listeners and pipes are the agent's alone: its end is seen at once."""
    listen = {"proto": "tcp", "addr": SOURCE, "ports": [[30001, 30003]], "template": 0}
    agent.send({"t": "listen", "id": 9, "blocks": [listen]})
    for frame in agent.frames():
        if frame["t"] == "listening":
            break
    probed(agent, order())
    mine = sockets(agent.pid)
    assert len(mine) > 3
    for pid in children(agent):
        wait_for(lambda pid=pid: not sockets(pid) & mine)  # type: ignore[misc]


def test_under_a_rate_an_agent_is_one_process(agent: AgentProcess) -> None:
    """The rate holds for the agent as a whole."""
    agent.send({"t": "rate", "per_s": 100000})
    answers, _ = probed(agent, order())
    assert len(answers) == 4000
    assert children(agent) == []


RANGES = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=6)


@given(RANGES, st.integers(1, 5))
def test_splitting_keeps_every_port(sizes: list[tuple[int, int]], pieces: int) -> None:
    """Each port of each block is in exactly one part, and parts are of nearly one size."""
    blocks: list[dict[str, Any]] = []
    at = 1
    for gap, size in sizes:
        at += gap
        blocks.append({"mode": "connect", "template": at, "ports": [[at, at + size - 1]]})
        at += size
    count = sum(size for _, size in sizes)
    parts = split(blocks, count, min(pieces, count))
    ports = [
        [(block["template"], port) for block in part for first, last in block["ports"]
         for port in range(first, last + 1)]
        for part in parts
    ]  # fmt: skip

    assert len(parts) == min(pieces, count)
    assert max(map(len, ports)) - min(map(len, ports)) <= 1
    assert [port for part in ports for port in part] == [
        (block["template"], port) for block in blocks for first, last in block["ports"]
        for port in range(first, last + 1)
    ]  # fmt: skip


def test_a_share_knows_what_it_owes() -> None:
    """What was answered is not asked again; a block with nothing left goes."""
    blocks = [
        {"mode": "connect", "ports": [[5, 9], [20, 22]]},
        {"mode": "nonce", "ports": [[40, 41]]},
    ]
    share = Share({"id": 1, "blocks": blocks})
    share.note([[6, 7, 0, 90, 1], [20, 22, 0, 90, 1], [40, 41, 0, 90, 1]])

    assert share.rest()["blocks"] == [{"mode": "connect", "ports": [[5, 5], [8, 9]]}]


def offenders(frames: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """Who rejected, as the frames say."""
    return {tuple(kind["icmp"]) for frame in frames for kind in frame["kinds"] if kind["icmp"]}


def children(agent: AgentProcess) -> list[int]:
    """The workers that run now."""
    text = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text(encoding="ascii")
    return [pid for pid in map(int, text.split()) if is_running(pid)]


def is_running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split(") ")[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def sockets(pid: int) -> set[str]:
    """The sockets and pipes that a process holds, apart from its standard error."""
    names = [one for one in os.listdir(f"/proc/{pid}/fd") if one != "2"]
    return {os.readlink(f"/proc/{pid}/fd/{name}") for name in names} - {"anon_inode:[eventpoll]"}


def wait_for(true: Callable[[], bool]) -> None:
    """Wait until it is true; the test's own limit ends what never becomes so."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)

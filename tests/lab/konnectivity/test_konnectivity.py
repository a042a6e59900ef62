"""``netprobe diagnose konnectivity`` in every situation that real parts can make, both families.

All situations are looked at at once, because each has a port of its own; then each is one test. An
ordinary run takes the quick ones, ``make lab`` (NETPROBE_LAB_FULL=1) all of them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cli import Finished, netprobe
from tests.lab.konnectivity.situations import SITUATIONS, Situation
from tests.lab.konnectivity.world import (
    DEAD4,
    DEAD6,
    EDGE4,
    EDGE6,
    NAME,
    NOWHERE4,
    NOWHERE6,
    PASSWORD,
    World,
)
from tests.lab.opening import open_lab
from tests.patience import PATIENCE_S

FULL = os.environ.get("NETPROBE_LAB_FULL", "0") not in ("", "0")
AT_ONCE = 6
TLS_ALERT = b"\x15"
HEALTHY_S = 2.0
MOST_MS = 13_500
HELD_MS, SLACK_MS = 8000, 3000
LOSSES, LOSSES_AT_ONCE = 12, 3
PROGRAMS = ("haproxy", "tinyproxy", "squid", "dnsmasq", "ethtool", "faketime")


@dataclass(frozen=True)
class Case:
    """A situation in one family (0: names decide)."""

    situation: Situation
    family: int

    @property
    def name(self) -> str:
        suffix = f", IPv{self.family}" if self.family else ""
        return f"{self.situation.name}{suffix}"


def _families(situation: Situation, number: int) -> tuple[int, ...]:
    """All of them, or in an ordinary run one, in turn."""
    families = situation.families or (0,)
    return families if FULL else (families[number % len(families)],)


def read_lines() -> dict[str, str]:
    """What a real agent was seen to write, by case or situation."""
    text = (Path(__file__).parent / "agent_lines.txt").read_text()
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return dict(line.split("\t") for line in lines)


LINES = read_lines()


def has_in_order(seen: str, predicted: str) -> bool:
    """Whether the words are in the line: ``...`` leaves out some; of two lines one will do."""
    first, _, second = predicted.removesuffix(")").partition(" (or: ")
    ways = (first, second.partition(", or ")[0]) if second else (first,)
    patterns = (".*".join(map(re.escape, re.split(r" ?\.\.\. ?", way))) for way in ways)
    return any(re.search(pattern, seen) for pattern in patterns if pattern)


_CHOSEN = [situation for situation in SITUATIONS if FULL or situation.quick]
CASES = [
    Case(situation, family)
    for number, situation in enumerate(_CHOSEN)
    for family in _families(situation, number)
]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """The lab, built once."""
    with open_lab(World(), *PROGRAMS) as world:
        yield world


def _words(world: World, case: Case) -> list[str]:
    six = case.family == 6
    places = {
        "edge": f"[{EDGE6}]" if six else EDGE4,
        "dead": f"[{DEAD6}]" if six else DEAD4,
        "nowhere": f"[{NOWHERE6}]" if six else NOWHERE4,
        "folder": str(world.folder),
    }
    return [word.format(**places) for word in case.situation.words]


@pytest.fixture(scope="module")
def finished(world: World) -> dict[str, Future[Finished]]:
    """Every case's run, at its end."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {
            case.name: pool.submit(
                world.diagnose,
                *_words(world, case),
                "-o",
                "json",
                hosts=[case.situation.host],
                clock=case.situation.clock,
                proxy=case.situation.proxy,
            )
            for case in CASES
        }
    return runs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_right(
    case: Case, finished: dict[str, Future[Finished]], record_property: Any
) -> None:
    """The one verdict, its exit status, its evidence; and no secret anywhere."""
    run = finished[case.name].result()
    worker = run.document["workers"][0]
    record_property("verdict", worker["code"])
    situation = case.situation
    assert worker["code"] in situation.code.split("|"), worker["because"]
    assert run.status == situation.status
    assert situation.says in json.dumps(worker, ensure_ascii=False)
    assert "?" not in worker["because"], worker["because"]
    assert PASSWORD not in run.stdout + run.stderr
    assert "PRIVATE KEY" not in run.stdout + run.stderr
    failed = [stage["name"] for stage in worker["stages"] if stage["status"] == "fail"]
    assert (worker["outcome"] == "ok") == (not failed), worker["stages"]
    assert (worker["where"] is None) == (worker["outcome"] == "ok")
    seen = LINES.get(case.name) or LINES.get(situation.name)
    if seen is not None:
        assert has_in_order(seen, worker["agent_logs"]), (seen, worker["agent_logs"])


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("family", [4, 6])
def test_a_healthy_tunnel_passes_within_two_seconds(
    world: World, finished: dict[str, Future[Finished]], family: int
) -> None:
    """Nothing is waited for where everything works: the whole command takes less than 2 s."""
    for run in finished.values():
        run.result()
    case = Case(SITUATIONS[0], family)
    took = []
    for _ in range(3):
        begun = time.monotonic()
        assert world.diagnose(*_words(world, case), within=("env",)).status == 0
        took.append(time.monotonic() - begun)
    assert min(took) < HEALTHY_S


@pytest.mark.full
@pytest.mark.alone
def test_silence_takes_at_most_fifteen_seconds(
    world: World, finished: dict[str, Future[Finished]]
) -> None:
    """A silent server, one dropped of three back ends, a black-holed one, and silent DNS: for each
    its stages take less than 15 s. A hold of 8 s with a certificate takes 8 s."""
    for run in finished.values():
        run.result()
    known = {situation.name: situation for situation in SITUATIONS}
    cases = [
        Case(known[name], 4 if known[name].families else 0)
        for name in (
            "server silent", "one of three back ends dropped",
            "back end black-holed, not waited for", "resolver does not answer",
            "held with a client certificate",
        )
    ]  # fmt: skip
    with ThreadPoolExecutor(len(cases)) as pool:
        runs = [
            pool.submit(
                world.diagnose, *_words(world, case), "-o", "json", hosts=[case.situation.host]
            )
            for case in cases
        ]
    for case, run in zip(cases, runs, strict=True):
        (worker,) = run.result().document["workers"]
        assert worker["code"] == case.situation.code
        # Without the start of the agent, which waits for nothing but this machine's processor.
        assert sum(stage["elapsed_ms"] for stage in worker["stages"]) <= MOST_MS, case.name
    hold = worker["stages"][-1]
    assert hold["name"] == "hold"
    assert HELD_MS <= hold["elapsed_ms"] <= HELD_MS + SLACK_MS


@pytest.mark.full
@pytest.mark.parametrize("port", [20034, 20035])
def test_loss_gets_the_same_answer_each_time(world: World, port: int) -> None:
    """Of 40 % of the packets lost, one way or the other: the verdict is loss, with the figure."""
    words = ("--server", f"{EDGE4}:{port}", "--publishing", "nodeport", "-o", "json")
    with ThreadPoolExecutor(LOSSES_AT_ONCE) as pool:
        runs = [pool.submit(world.diagnose, *words) for _ in range(LOSSES)]
    found = [run.result().document["workers"][0] for run in runs]
    assert {worker["code"] for worker in found} == {"PACKET_LOSS"}
    assert all(15 <= worker["evidence"]["percent"] <= 65 for worker in found)


def test_clocks_are_held_against_each_other(world: World) -> None:
    """Two workers that agree against this machine: its clock is the first to look at."""
    words = ("--server", f"{EDGE4}:8091", "--publishing", "nodeport")
    document = world.folder / "clocks.json"
    run = world.diagnose(
        *words, "-o", "text", "-o", f"json={document}", hosts=("worker", "second"), clock="-3h"
    )
    assert run.status == 0
    assert "worker, second: the worker's clock is 3 hours behind this machine's" in run.stdout
    said = "the workers' clocks agree with each other: look at this machine's clock first"
    assert said in run.stdout
    assert json.loads(document.read_text())["notes"] == [said]


def test_workers_that_share_a_cause_make_one_finding(world: World) -> None:
    """Two of three workers behind one firewall: one finding, and a table of workers and stages."""
    words = ("--server", f"{EDGE4}:20012", "--publishing", "nodeport")
    hosts = ("worker", "second", "deaf")
    document = world.folder / "shared.json"
    run = world.diagnose(*words, "-o", "text", "-o", f"json={document}", hosts=hosts)
    assert run.status == 1
    (finding,) = json.loads(document.read_text())["findings"]
    assert finding["workers"] == ["worker", "second"]
    assert finding["of"] == 3
    title = f"ClientHello above 1,400 bytes is lost towards {EDGE4}"
    assert finding["title"] == title
    page = run.stdout
    assert f"2 of 3 workers: {title}" in page
    assert "allow ICMP fragmentation-needed" in page
    assert "worker  clock  names  route" in page
    rows = [line.split() for line in page.splitlines() if line.startswith(hosts)][1:]
    assert [(row[0], row[-1]) for row in rows] == [
        ("worker", "PMTU_BLACKHOLE_OUT"),
        ("second", "PMTU_BLACKHOLE_OUT"),
        ("deaf", "KONN_REACHED_MTLS"),
    ]


def test_a_worker_that_resolves_the_name_differently_is_told(world: World) -> None:
    """An entry in its /etc/hosts leads it to a dead host; the warning says where the other goes."""
    words = ("--server", "moved.apps.lab.test:8091", "--publishing", "loadbalancer")
    document = world.folder / "moved.json"
    run = world.diagnose(
        *words, "-o", "text", "-o", f"json={document}", hosts=("worker", "second", "third")
    )
    assert run.status == 1
    workers = {one["worker"]: one for one in json.loads(document.read_text())["workers"]}
    usual = ", ".join(sorted((EDGE4, EDGE6)))
    told = f"moved.apps.lab.test is {DEAD4} here, and {usual} for 2 other workers"
    assert [workers[name]["warnings"] for name in ("worker", "second", "third")] == [[], [told], []]
    assert workers["second"]["remedy"].startswith("correct the name first")
    assert f"second: {told}" in run.stdout


def test_the_words_for_explain_work(world: World, finished: dict[str, Future[Finished]]) -> None:
    """Silence points to ``explain``: the words as they are follow the flow and find it lost."""
    silent = [case.name for case in CASES if case.situation.code == "TCP_FILTERED"]
    (worker,) = finished[silent[0]].result().document["workers"]
    program, *words = shlex.split(worker["explain"])
    assert (program, words[:2]) == ("netprobe", ["explain", "worker"])
    run = netprobe(*words, "-o", "json", "--timeout", "0.5")
    assert run.status == 1, run.stderr


def test_the_inventory_s_proxy_decides_and_is_named(world: World) -> None:
    """``proxy:`` of a host is used by Go's rules, and the report says which entry decided."""
    proxy: dict[str, object] = {"https_proxy": f"http://agent:{PASSWORD}@{EDGE4}:3128"}
    words = ("--server", NAME, "--publishing", "route", "-o", "json")
    through = world.diagnose(*words, proxy=proxy).document["workers"][0]
    assert through["code"] == "KONN_REACHED_MTLS"
    assert through["via"] == f"proxy http://***@{EDGE4}:3128 (https_proxy of the inventory)"
    direct = world.diagnose(*words, proxy=proxy | {"no_proxy": "10.0.0.0/8, .lab.test"})
    assert direct.document["workers"][0]["via"] == "direct (NO_PROXY: .lab.test)"


def test_a_worker_without_a_way_in_is_not_tested(world: World) -> None:
    """One worker that nobody gets onto makes no fault: the others decide, and the status is 3."""
    inventory = world.inventory_of("worker")
    text = inventory.read_text().replace("ip\n", "/nonexistent/ip\n", 1)
    broken = world.write("broken.yaml", text)
    run = world.diagnose_with(broken, "--server", f"{EDGE4}:8091", "--publishing", "nodeport")
    assert run.status == 3
    assert "NOT TESTED" in run.stdout


def test_nobody_registered(world: World, finished: dict[str, Future[Finished]]) -> None:
    """AgentService/Connect was never called, whatever the options were."""
    for run in finished.values():
        run.result()
    assert "SOMEBODY REGISTERED" not in world.log.read_text()


def test_plain_http_is_closed_without_a_reply(world: World) -> None:
    """Row 23: the agent port answers plain HTTP with no HTTP, so only TLS tells who is there."""
    with world["worker"].socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect((EDGE4, 8091))
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        said = sock.recv(4096)
    # HAProxy sends a TLS alert where grpc-go sends nothing; neither speaks HTTP.
    assert said[:1] in (b"", TLS_ALERT)

"""A thousand nodes behind a real API server: how many calls the command makes, and what it takes.

Pods and their statuses are real objects; what nodes found is made up, by the ideal agents of the
dry run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netprobe.batch.bundle import open_bundle
from netprobe.batch.request import read_request
from netprobe.batch.rounds import make_first_round
from netprobe.cluster.kubectl import PAGE
from netprobe.cluster.manifest import LIMITS, PAGES, PAUSE_S
from tests.batch.world import BEGAN_S, carry_out, hear_each_other
from tests.cli.command import environment
from tests.cluster.api import make_node
from tests.cluster.kubelets import PROBING, READY
from tests.cluster.pods import make_pages
from tests.cluster.real import RealCluster, start_plugin, starting
from tests.cluster.real_kubelets import RealKubelets
from tests.patience import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.alone]

Json = dict[str, Any]
HEAD = """\
schema: netprobe.matrix/1
name: thousand
title: A thousand nodes
roles: {control-plane: {common: control-plane}, worker: {common: worker}}
requirements:
"""
# Three nodes have so much to tell that it takes further rounds.
LINEAR = """\
  - {id: api, from: worker, to: control-plane, tcp: [6443, 8132], purpose: x}
  - {id: kubelet, from: control-plane, to: worker, tcp: [10250], purpose: x}
"""
COUNT, MASTERS = 1000, 3
# So that what all have found is made up by then.
START = "+4m"
TOOL, EVERYTHING = "netprobe", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
MOST_CALLS = 12
MOST_BYTES = 300 << 20


class PagedKubelets(RealKubelets):
    """Kubelets whose nodes have found what ideal agents find."""

    def __init__(self, cluster: RealCluster, folder: Path, plan: Path) -> None:
        super().__init__(cluster, folder)
        self._plan = plan
        self.pages: dict[str, list[str]] = {}
        self.last_message_at = 0.0
        self._ends_at = 0.0

    def make_all_pages(self) -> None:
        """Make the pages of all nodes by the plan that the command has kept."""
        request = read_request(open_bundle(self._plan).plan, "plan")
        _, scripts = make_first_round(request, request.plan)
        hosts = tuple(request.plan.hosts().values())
        assert request.starts_at is not None
        self._ends_at = request.starts_at + request.window_s + request.margin_s
        ahead_s = request.starts_at - BEGAN_S
        told = hear_each_other([carry_out(one, ahead_s=ahead_s, hosts=hosts) for one in scripts])
        self.pages = {
            script.start.name: make_pages(script, one, LIMITS)
            for script, one in zip(scripts, told, strict=True)
        }

    def read_orders(self, pod: Json) -> bytes:
        """Nobody carries them out."""
        return b""

    def run_pod(self, pod: Json, bundle: bytes) -> None:
        """The containers end one after the other: those of most nodes before their time, so that
        one process is enough for all, and those of three nodes in time."""
        wait_until(lambda: self.pages, "pages")
        node = pod["spec"]["nodeName"]
        pages = self.pages[node]
        if is_late(node):
            self.report(pod, PROBING)
        if is_late(node) and self._is_over.wait(max(0.0, self._ends_at - time.time())):
            return
        ended = [
            {"name": f"page-{at}", "state": _end_with(page)}
            for at, page in enumerate(pages[:PAGES], 1)
        ]
        status = {"phase": "Running", "initContainerStatuses": ended, "conditions": READY}
        self.report(pod, {"phase": "Pending", "initContainerStatuses": ended[:1]})
        self.report(pod, status)
        self.last_message_at = time.monotonic()
        for page in pages[PAGES:]:
            if self._is_over.wait(PAUSE_S):
                return
            rest = {"name": "rest", "state": {"running": {}}, "lastState": _end_with(page)}
            self.report(pod, {**status, "containerStatuses": [rest]})
            self.last_message_at = time.monotonic()


def _end_with(page: str) -> Json:
    return {"terminated": {"exitCode": 0, "reason": "Completed", "message": page}}


def is_late(node: str) -> bool:
    """Whether a node tells what it found when all have ended: six of them, three control planes."""
    return int(node[1:]) < 2 * MASTERS


def list_all_nodes() -> list[Json]:
    """A thousand nodes, three of them control planes."""
    return [
        make_node(
            f"n{at:04}", f"10.1.{at // 250}.{at % 250 + 1}",
            *(("control-plane",) if at < MASTERS else ()),
            labels={"kubernetes.io/os": "linux"},
        )
        for at in range(COUNT)
    ]  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What a run took. ``report_s``: its report is there so long after the last message."""

    calls: Counter[str]
    rounds: int
    report_s: float
    peak_bytes: int
    results: list[Json]


def measure_run(folder: Path, matrix: str, *more: str) -> Cost:
    """Carry out one run of all nodes."""
    (folder / "matrix.yaml").write_text(HEAD + matrix)
    plan = folder / "plan.pyz"
    with starting(folder / "cluster", list_all_nodes()) as real:
        variables = environment(KUBECONFIG=str(real.add_account(TOOL, EVERYTHING)))
        words = ("run", "-m", "./matrix.yaml", "--image", "x", "--start", START, "--window",
                 "60s", "-o", "json", "--plan", str(plan), *more)  # fmt: skip
        with (
            PagedKubelets(real, folder / "pods", plan) as kubelets,
            (folder / "report.json").open("wb") as out,
            (folder / "lines").open("wb") as lines,
        ):
            running = start_plugin(words, folder, variables, stdout=out, stderr=lines)
            wait_until(lambda: plan.exists() or running.poll() is not None, "the plan")
            assert plan.exists(), (folder / "lines").read_text()
            kubelets.make_all_pages()
            _, status, usage = os.wait4(running.pid, 0)
            report_s = time.monotonic() - kubelets.last_message_at
        running.returncode = os.waitstatus_to_exitcode(status)
        said = (folder / "lines").read_text()
        assert running.returncode in {0, 3}, said
        assert "pods are there" in said
        return Cost(
            real.count_calls(TOOL), 1 + said.count(": round "), report_s,
            usage.ru_maxrss << 10,
            json.loads((folder / "report.json").read_bytes())["results"],
        )  # fmt: skip


def check_calls(cost: Cost) -> None:
    """Twelve calls, and a list of pods by pages for each round; none is for one node."""
    pages = -(-COUNT // PAGE)
    assert cost.calls["list pods"] == cost.rounds * pages
    assert cost.calls["list nodes"] == pages
    assert cost.calls.total() - cost.calls["list pods"] <= MOST_CALLS, cost.calls
    assert cost.peak_bytes < MOST_BYTES


def test_what_further_rounds_of_a_thousand_nodes_cost(tmp_path: Path) -> None:
    """What has no room on all pages is not tested; the rest has passed."""
    cost = measure_run(tmp_path, LINEAR)
    sys.stdout.write(
        f"{cost.rounds} rounds, {cost.peak_bytes >> 20} MB, report {cost.report_s:.1f} s after the "
        f"last message; {dict(cost.calls)}\n"
    )
    assert cost.rounds > 1
    check_calls(cost)
    assert {one["verdict"] for one in cost.results} == {"pass", "not-tested"}

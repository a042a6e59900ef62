"""Further rounds: what has no room in the first messages of a node comes by its last container, one
page each time that it ends; until all is told, or it is said how much is not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from netprobe.batch.results import StoredRun
from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.manifest import FURTHER_PAGES, PAGES, PAUSE_S
from netprobe.cluster.run import AGAIN_S, FURTHER_S, MOST_FURTHER
from tests.batch.merging import World, make_world
from tests.batch.world import plan_of
from tests.cluster.api import Api, Json, make_node, serving, status
from tests.cluster.kubelets import KUBECTL, READY
from tests.cluster.playing import HOUR_S, Played, verdicts, verdicts_of_files
from tests.cluster.pods import make_pages

pytestmark = pytest.mark.slow

# So many bytes have room on a page, of about 1,500 that a node has to tell.
SMALL = 440
MOST_CALLS = 12


@pytest.fixture(scope="module")
def world() -> World:
    """Three hosts and many ports, of which two flows from b to c are dropped."""
    ports = ((f"p{at}", "tcp", ((9000 + 7 * at, 9000 + 7 * at),)) for at in range(30))
    return make_world(plan_of(("web", "tcp", ((8000, 8009),)), ("ping", "icmp", ()), *ports))


@dataclass
class Cluster:
    """Nodes whose pages are so small, and kubelets that have the last two ends of a container."""

    world: World
    api: Api
    kube: Kubectl
    limit: int = SMALL
    count: int = PAGES + FURTHER_PAGES
    pods: list[Json] = field(default_factory=list)
    pages: dict[str, list[str]] = field(default_factory=dict)
    dead: str = ""
    lists: int = 0

    def run_pod(self, pod: Json, _bundle: bytes) -> None:
        """The first containers of a pod end."""
        node = pod["spec"]["nodeName"]
        if node in self.world.scripts:
            limits = [self.limit] * self.count
            made = make_pages(self.world.scripts[node], self.world.recordings[node], limits)
            self.pages[node] = made
            self.pods.append(pod)
        ended = [
            {"name": f"page-{at}", "state": self._end(message)}
            for at, message in enumerate(self.pages.get(node, [])[:PAGES], 1)
        ]
        rest = {"name": "rest", "state": {"running": {}}}
        pod["status"] = {"phase": "Running", "initContainerStatuses": ended,
                         "conditions": READY, "containerStatuses": [rest]}  # fmt: skip
        self.pages[node] = self.pages.get(node, [])[PAGES:]

    def _end(self, message: str) -> Json:
        return {"terminated": {"exitCode": 0, "reason": "Completed", "message": message}}

    def pass_time(self, when: float) -> None:
        """The last container of each pod ends with its next page, and is started again."""
        self.lists += when > time.time() + HOUR_S / 2
        for pod in self.pods if self.lists > 1 else ():
            node = pod["spec"]["nodeName"]
            if self.pages[node] and node != self.dead:
                last = self._end(self.pages[node].pop(0))
                back = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
                rest = {"name": "rest", "state": back, "lastState": last}
                pod["status"]["containerStatuses"] = [rest]

    def play(self) -> tuple[Played, StoredRun]:
        """One run; give it, and what arrived."""
        played = Played(self.world, self.kube, on_wait=self.pass_time)
        return played, played.carry_out()


@pytest.fixture
def cluster(world: World, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of three nodes."""
    api = Api([make_node(name, f"10.0.0.{at}") for at, name in enumerate("abc", 1)])
    with serving(api, tmp_path) as config:
        made = Cluster(world, api, Kubectl(str(KUBECTL), (f"--kubeconfig={config}",)))
        api.kubelet = made.run_pod
        yield made


def words_of(stored: StoredRun) -> list[str]:
    """What is missing in the end."""
    return [one.words for one in stored.recordings if one.words]


def count_lists(cluster: Cluster) -> int:
    """How often pods were listed."""
    return sum(path.endswith("/pods") for _, path in cluster.api.calls)


def test_what_has_no_room_comes_in_further_rounds(world: World, cluster: Cluster) -> None:
    """Nothing is lost: all verdicts, and all answers, are those of files."""
    played, stored = cluster.play()
    assert words_of(stored) == []
    for one in stored.recordings:
        assert one.answers == world.recordings[one.name].answers
    assert verdicts(stored) == verdicts_of_files(world)
    rounds = count_lists(cluster)
    assert rounds > 2
    assert sum("had no room so far: round " in line for line in played.lines) == rounds - 1
    assert f"round 2 of at most {MOST_FURTHER + 1} in 10 s" in "".join(played.lines)
    assert (cluster.api.spaces, len(cluster.api.deleted)) == ({}, 1)


def test_what_is_left_after_the_last_page_is_said(
    world: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By each node; what failed is there, and nothing becomes blocked by what is not."""
    cluster.count = PAGES + 1
    monkeypatch.setattr("netprobe.cluster.run.LIMITS", [0] * cluster.count)
    _, stored = cluster.play()
    assert count_lists(cluster) == 2
    assert all("had no room in its messages" in words for words in words_of(stored))
    assert [one.source for one in stored.recordings] == [
        f"{at} (pod netprobe-{at})" for at in "abc"
    ]
    found, whole = verdicts(stored), verdicts_of_files(world)
    assert found["not-tested"] > 0
    assert found["blocked"] == whole["blocked"]


def test_where_all_has_room_there_is_one_round(world: World, cluster: Cluster) -> None:
    """Nobody waits for another one."""
    cluster.limit = 4096
    _, stored = cluster.play()
    assert count_lists(cluster) == 1
    assert verdicts(stored) == verdicts_of_files(world)


def test_a_thousand_nodes_cost_twelve_calls_and_a_list_for_each_round(cluster: Cluster) -> None:
    """A list of pods has two pages here; no call is for one node."""
    cluster.api.nodes = [*cluster.api.nodes, *(make_node(f"n{at}", f"10.1.{at // 250}.{at % 250}")
                                               for at in range(997))]  # fmt: skip
    played, stored = cluster.play()
    rounds = 1 + sum("had no room so far: round " in line for line in played.lines)
    assert rounds > 2
    assert count_lists(cluster) == 2 * rounds
    # Before: the version, the list of runs, and two pages of nodes.
    assert 4 + len(cluster.api.calls) - count_lists(cluster) <= MOST_CALLS, cluster.api.calls
    assert words_of(stored) == []


def test_a_node_that_tells_no_more(world: World, cluster: Cluster) -> None:
    """It is waited for so often, and then it is said what it has not told; the others count."""
    cluster.dead = "b"
    _, stored = cluster.play()
    assert count_lists(cluster) == MOST_FURTHER + 1
    (words,) = words_of(stored)
    assert "had no room in its messages" in words
    by_name = {one.name: one for one in stored.recordings}
    assert by_name["b"].words == words
    assert by_name["a"].answers == world.recordings["a"].answers


def test_an_api_that_goes_between_rounds(cluster: Cluster) -> None:
    """What has arrived is reported, and what has not is said; no further round is waited for."""
    lists: list[str] = []

    def is_later(_method: str, path: str) -> bool:
        lists.extend([path] if path.endswith("/pods") else [])
        return path.endswith("/pods") and len(lists) > 1

    cluster.api.gone_at = is_later
    played, stored = cluster.play()
    assert len(lists) == 1 + len(AGAIN_S)
    assert sum("had no room so far: round" in line for line in played.lines) == 1
    assert len(stored.recordings) == 3
    assert stored.missing == {}
    assert any("had no room in its messages" in words for words in words_of(stored))
    assert cluster.api.spaces == {}


def test_a_further_page_that_somebody_changed(cluster: Cluster) -> None:
    """A last container that says something else takes nothing from its node's first pages."""
    cluster.api.refused["GET", "netprobe"] = status(503, "ServiceUnavailable", "starting")
    run_pod = cluster.run_pod

    def spoil(pod: Json, bundle: bytes) -> None:
        run_pod(pod, bundle)
        if pod["spec"]["nodeName"] == "a":
            cluster.pages["a"] = ["netprobe: something else"]

    cluster.api.kubelet = spoil
    _, stored = cluster.play()
    by_name = {one.name: one for one in stored.recordings}
    assert stored.missing == {}
    assert "had no room in its messages" in by_name["a"].words
    assert [note for note in stored.notes if "container rest: did nothing: something else" in note]


def test_each_page_can_be_read_in_some_round() -> None:
    """Whenever the first list comes: by the kubelet's pauses between two starts of a container, of
    which the first is none, and each start takes a second."""
    for offset in range(int(FURTHER_S)):
        lists = [offset + at * FURTHER_S for at in range(MOST_FURTHER + 1)]
        ends = list(itertools.accumulate(PAUSE_S + wait_s + 1 for wait_s in (0, 0, 10, 20)))
        assert len(ends) == FURTHER_PAGES
        for begin, end in itertools.pairwise([*ends, 1e9]):
            assert any(begin + 2 < at < end for at in lists), (offset, begin, end)

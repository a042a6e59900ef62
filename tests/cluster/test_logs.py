"""Whom logs reach: of how many nodes it is asked, and what the API's answers mean."""

from __future__ import annotations

import pytest

from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.logs import LogsAnswer, ask_logs, choose_asked
from netprobe.cluster.pods import ArrivedPods
from tests.batch.merging import World
from tests.cluster.api import Api, status
from tests.cluster.kubelets import wait_for_ever
from tests.cluster.playing import Played

pytestmark = pytest.mark.slow


def test_who_is_asked() -> None:
    """First who has a fault, then an even choice of the others, never more than so many."""
    first, others = ["x", "y"], [f"n{at}" for at in range(1000)]
    chosen = choose_asked(first, others, 20)
    assert chosen[:2] == first
    assert chosen[2:] == [f"n{at * 1000 // 18}" for at in range(18)]
    assert choose_asked(others, first, 20) == others[:20]
    assert choose_asked(first, ["n"], 20) == ["x", "y", "n"]
    assert choose_asked(first, [], 0) == []
    assert choose_asked(first, others, None) == [*first, *others]


def ask(world: World, kube: Kubectl) -> dict[str, LogsAnswer]:
    """What is answered while the pods of a run are there."""
    found: dict[str, LogsAnswer] = {}

    async def ask_more(arrived: ArrivedPods) -> None:
        name = f"netprobe-{world.request.run}"
        found.update(await ask_logs(kube, name, arrived.list_pods()))

    Played(world, kube, ask_more=ask_more).carry_out()
    return found


def test_what_the_answers_mean(world: World, api: Api, kube: Kubectl) -> None:
    """What the API server refuses by itself tells nothing of the node."""
    words = 'Get "https://10.0.0.2:10250/containerLogs/x": No agent available'
    api.mute["b"] = status(500, "InternalError", words)
    api.mute["c"] = status(403, "Forbidden", 'pods "x" is forbidden: User "dev" cannot get')
    found = ask(world, kube)
    assert found["a"] == LogsAnswer("work")
    assert found["b"].state == "fail"
    assert "No agent available" in found["b"].words
    assert found["c"].state == "unknown"
    assert "is forbidden" in found["c"].words
    assert api.spaces == {}
    assert sum(path.endswith("/log") for _, path in api.calls) == 3


def test_a_pod_that_has_not_started_is_not_asked(world: World, api: Api, kube: Kubectl) -> None:
    """The API server would say so itself, whatever the way to the node is."""
    api.kubelet = wait_for_ever("ImagePullBackOff", "no image")
    assert {one.words for one in ask(world, kube).values()} == {
        "no container of its pod has started"
    }
    assert not [path for _, path in api.calls if path.endswith("/log")]

"""Whom logs reach: of how many nodes it is asked, and what the API's answers mean."""

from __future__ import annotations

import pytest

from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.logs import LogsAnswer, ask_logs, choose_asked
from netprobe.cluster.pods import ArrivedPods
from tests.batch.merging import World
from tests.cluster.api import Api, status
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
    # Its own patience with a node may be over before ours is with it.
    words = 'Get "https://10.0.0.1:10250/containerLogs/x": context deadline exceeded'
    api.mute["a"] = status(500, "InternalError", words)
    late = ask(world, kube)["a"]
    assert late.state == "fail"
    assert words in late.words


@pytest.mark.parametrize("is_gone", [False, True])
def test_logs_that_do_not_come(
    world: World, api: Api, kube: Kubectl, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """Packets to nodes are dropped, and the API server waits as long as kubectl does. That is the
    way to the nodes, where the API server answers something else, which is asked once."""
    monkeypatch.setattr("netprobe.cluster.kubectl.REQUEST_S", 5)
    api.hangs_at = lambda _, path: path.endswith("/log")
    api.gone_at = lambda _, path: is_gone and path == "/version"
    found = ask(world, kube)
    assert {one.state for one in found.values()} == {"unknown" if is_gone else "fail"}
    assert all("no answer in 5 s" in one.words for one in found.values()) != is_gone
    assert [path for _, path in api.calls].count("/version") == 1
    assert api.spaces == {}

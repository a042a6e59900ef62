"""Which nodes the API server reaches: asked by the logs of the run's own pods, of a few nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netprobe.cluster.kubectl import ApiRefusal, Kubectl
from netprobe.cluster.pods import RunPod
from netprobe.model.contrast import LogsState

MOST_AT_ONCE = 10
# Refusals that the API server gives by itself, so that they tell nothing of the way to a node.
_OWN_REASONS = ("Forbidden", "Unauthorized", "NotFound", "BadRequest", "TooManyRequests")
_NO_API = ("The connection to the server", "Unable to connect to the server")


class LogsAnswer(NamedTuple):
    """What became of one question."""

    state: LogsState
    words: str = ""


def choose_asked(first: Sequence[str], others: Sequence[str], most: int | None) -> list[str]:
    """Choose whose logs are asked for: the first ones, then an even choice of the others, ``most``
    in all (None: all of them)."""
    if most is None:
        return [*first, *others]
    chosen = list(first[:most])
    room = min(most - len(chosen), len(others))
    return chosen + [others[at * len(others) // room] for at in range(room)]


async def ask_logs(
    kube: Kubectl, namespace: str, pods: Mapping[str, RunPod]
) -> dict[str, LogsAnswer]:
    """Ask for one line of the logs of each pod, by the names of their nodes."""
    slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def ask(pod: RunPod) -> LogsAnswer:
        async with slots:
            return await _ask_one(kube, namespace, pod)

    found = await asyncio.gather(*map(ask, pods.values()))
    return dict(zip(pods, found, strict=True))


async def _ask_one(kube: Kubectl, namespace: str, pod: RunPod) -> LogsAnswer:
    container = pod.find_started()
    if not container:
        return LogsAnswer("unknown", "no container of its pod has started")
    path = f"/api/v1/namespaces/{namespace}/pods/{pod.metadata.name}/log"
    try:
        await kube.get_text(path, container=container, tailLines="1")
    except ApiRefusal as error:
        words = str(error).partition(": ")[2] or str(error)
        is_own = error.reason in _OWN_REASONS or any(one in words for one in _NO_API)
        return LogsAnswer("unknown" if is_own else "fail", words)
    return LogsAnswer("work")

"""Which nodes the API server reaches: asked by the logs of the run's own pods, of a few nodes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netprobe.cluster import kubectl
from netprobe.cluster.kubectl import ApiRefusal, Kubectl
from netprobe.cluster.pod_states import RunPod
from netprobe.model.contrast import LogsState

MOST_AT_ONCE = 10
# Refusals that the API server gives by itself, so that they tell nothing of the way to a node.
_OWN_REASONS = ("Forbidden", "Unauthorized", "NotFound", "BadRequest", "TooManyRequests")
_NO_API = ("The connection to the server", "Unable to connect to the server")
# What kubectl says (1.20 and 1.37) when its own time is over; the API server says it of a node.
_NO_ANSWER = re.compile(
    "no answer in|Unable to connect to the server: .*(Client.Timeout|deadline) exceeded"
)


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
    """Ask for one line of the logs of each pod, by the names of their nodes. Each has a container
    that has started: else the API server says so itself, whatever the way to the node is."""
    slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def ask(pod: RunPod) -> LogsAnswer | None:
        async with slots:
            return await _ask_one(kube, namespace, pod)

    found = await asyncio.gather(*map(ask, pods.values()))
    silent = await _judge_silence(kube) if None in found else LogsAnswer("not-asked")
    answers = [silent if one is None else one for one in found]
    return dict(zip(pods, answers, strict=True))


async def _ask_one(kube: Kubectl, namespace: str, pod: RunPod) -> LogsAnswer | None:
    """Give what became of it; None where no answer came in time."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod.metadata.name}/log"
    try:
        await kube.get_text(path, container=pod.find_started(), tailLines="1")
    except ApiRefusal as error:
        words = str(error).partition(": ")[2] or str(error)
        if _NO_ANSWER.match(words):
            return None
        is_own = error.reason in _OWN_REASONS or any(one in words for one in _NO_API)
        return LogsAnswer("unknown" if is_own else "fail", words)
    return LogsAnswer("work")


async def _judge_silence(kube: Kubectl) -> LogsAnswer:
    """Say what it means that logs did not come: the way to the node, where the API server answers
    something else; it waits as long for a node as kubectl for it."""
    try:
        await kube.get("/version")
    except ApiRefusal as error:
        return LogsAnswer("unknown", str(error))
    words = f"no answer in {kubectl.REQUEST_S} s, and the API server answers other questions"
    return LogsAnswer("fail", words)

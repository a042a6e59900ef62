"""The pods of a run as the API gives them, and what their states say in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, convert
from msgspec import ValidationError as WrongShape

from netprobe.cluster.nodes import OTHER_WAY
from netprobe.errors import RequestError
from netprobe.model.printable import clean

# The one label that everything of a run has; its value is the run's.
RUN_LABEL = "netprobe.run"
EXPECTED = "expected what `kubectl get pods -o json` printed"
MOST_WORDS = 300
# Whose message is the runtime's own, of containerd and of Docker: no process has begun.
_NOT_BEGUN = ("StartError", "ContainerCannotRun")
# What a kubelet says of a container that it is about to start.
_AT_THE_START = ("", "ContainerCreating", "PodInitializing")
_NO_PYTHON = re.compile("python3.*not found")


class _PodMeta(Struct, frozen=True):
    """``metadata`` of a Pod."""

    name: str
    labels: dict[str, str] = {}


class _NodeField(Struct, frozen=True):
    """What a field of a node must be."""

    key: str
    values: list[str] = []


class _NodeTerm(Struct, frozen=True, rename="camel"):
    """Nodes on which a pod may be."""

    match_fields: list[_NodeField] = []


class _RequiredNodes(Struct, frozen=True, rename="camel"):
    """All nodes on which a pod may be."""

    node_selector_terms: list[_NodeTerm] = []


class _NodeAffinity(Struct, frozen=True, rename="camel"):
    """``nodeAffinity`` of a Pod."""

    required_during_scheduling_ignored_during_execution: _RequiredNodes = _RequiredNodes()


class _Affinity(Struct, frozen=True, rename="camel"):
    """``affinity`` of a Pod."""

    node_affinity: _NodeAffinity = _NodeAffinity()


class _PodSpec(Struct, frozen=True, rename="camel"):
    """``spec`` of a Pod."""

    node_name: str = ""
    affinity: _Affinity = _Affinity()

    @property
    def node(self) -> str:
        """The node that it is on, or that it waits for: that of a DaemonSet's pod is known."""
        required = self.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        fields = [field for term in required.node_selector_terms for field in term.match_fields]
        named = [field.values for field in fields if field.key == "metadata.name"]
        return self.node_name or (named[0][0] if len(named) == 1 and len(named[0]) == 1 else "")


class _Said(Struct, frozen=True, rename="camel"):
    """A container's state: what it left, or why it waits."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0

    @property
    def is_message(self) -> bool:
        """Whether the container itself has left the message."""
        return bool(self.message) and self.reason not in _NOT_BEGUN


class _ContainerState(Struct, frozen=True):
    """``state`` of a container: one of these is there."""

    waiting: _Said | None = None
    running: _Said | None = None
    terminated: _Said | None = None


class _Container(Struct, frozen=True, rename="camel"):
    """The status of a container; ``last_state``: how it ended the time before."""

    name: str
    state: _ContainerState = _ContainerState()
    last_state: _ContainerState = _ContainerState()

    @property
    def has_ended(self) -> bool:
        """Whether it has begun, and ended, now or the time before."""
        ends = (self.state.terminated, self.last_state.terminated)
        return any(one is not None and one.reason not in _NOT_BEGUN for one in ends)


class _PodCondition(Struct, frozen=True):
    """One of the conditions: ``PodScheduled`` is the one that counts."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class _PodStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a Pod."""

    init_container_statuses: list[_Container] | None = None
    container_statuses: list[_Container] | None = None
    conditions: list[_PodCondition] | None = None
    reason: str = ""
    message: str = ""


class RunPod(Struct, frozen=True):
    """The fields of the API's Pod that say something here."""

    metadata: _PodMeta
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def run(self) -> str:
        """The run that it is of; nothing where it is of none."""
        return self.metadata.labels.get(RUN_LABEL, "")

    @property
    def first(self) -> _Container:
        """The first container, which probes."""
        return next(iter(self.status.init_container_statuses or ()), _Container(""))

    def find_started(self) -> str:
        """Find the last container that has started; empty where none has."""
        status = self.status
        states = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
        started = [one.name for one in states if one.state.running or one.has_ended]
        return started[-1] if started else ""

    def messages(self) -> Iterator[tuple[str, str]]:
        """Give the names of containers that have ended, and the messages that they left."""
        status = self.status
        for one in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
            for state in (one.last_state, one.state):
                if state.terminated is not None and state.terminated.is_message:
                    yield one.name, state.terminated.message


def list_pods(objects: Mapping[str, Any] | None, label: str) -> Iterator[RunPod]:
    """Give all pods of a list of the API. Raises RequestError."""
    items = objects.get("items") if objects is not None else None
    if not isinstance(items, list):
        raise RequestError(f"{label}: is no list of pods, {EXPECTED}")
    for item in items:
        if not isinstance(item, dict) or item.get("kind", "Pod") != "Pod":
            raise RequestError(f"{label}: holds something else than pods, {EXPECTED}")
        try:
            yield convert(item, RunPod)
        except WrongShape as error:
            raise RequestError(f"{label}: {clean(str(error))}, {EXPECTED}") from None


def may_tell(pod: RunPod) -> bool:
    """Tell whether results may come yet of a pod without any: its first container runs, or may have
    run since its kubelet has reported. None come of one that has ended, that the kubelet cannot
    start, or that no node takes."""
    first = pod.first
    if first.state.terminated or first.last_state.terminated or _find_unplaced(pod):
        return False
    return first.state.waiting is None or first.state.waiting.reason in _AT_THE_START


def word_state(pod: RunPod) -> str:
    """Say why a pod has no message. One whose first container has failed is started again."""
    state = pod.first.state
    ended = state.terminated or pod.first.last_state.terminated
    if ended is not None:
        again = "" if state.terminated else ", and was started again"
        return f"{_word_end(ended)}{again}"
    if state.running is not None:
        return "has not finished"
    waits = state.waiting or _Said(pod.status.reason, pod.status.message)
    said = ": ".join(filter(None, (waits.reason, waits.message))) or _word_waiting(pod)
    return _word_not_begun(said)


def _word_end(ended: _Said) -> str:
    if ended.reason in _NOT_BEGUN:
        return _word_not_begun(f"{ended.reason}: {ended.message}")
    why = f" ({clean(ended.reason)})" if ended.reason else ""
    return f"ended with status {ended.exit_code}{why} and left no message"


def _word_not_begun(said: str) -> str:
    image = "give --image one with python3, or " if _NO_PYTHON.search(said) else ""
    return f"has not started: {clean(' '.join(said.split()))[:MOST_WORDS]}: {image}{OTHER_WAY}"


def word_before(pod: RunPod) -> Iterator[str]:
    """Say what happened before the message of a container that has been started again."""
    before = pod.first.last_state.terminated
    if pod.first.state.terminated is not None and before is not None and not before.is_message:
        yield f"it was started again, as it {_word_end(before)}"


def _word_waiting(pod: RunPod) -> str:
    """Say why no kubelet has begun with it."""
    unplaced = _find_unplaced(pod)
    if unplaced is None:
        return "no kubelet has reported on it"
    return ": ".join(filter(None, (unplaced.reason, unplaced.message)))


def _find_unplaced(pod: RunPod) -> _PodCondition | None:
    """Find the condition that says why no node takes a pod."""
    said = pod.status.conditions or ()
    return next((one for one in said if (one.type, one.status) == ("PodScheduled", "False")), None)


def word_stranger(pod: RunPod) -> str:
    name, node = clean(pod.metadata.name), clean(pod.spec.node)
    if not node:
        return f"pod {name} is on no node"
    return f"pod {name} is on {node}, which has nothing to do in this run"

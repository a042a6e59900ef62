"""Reads what ``kubectl get pods -o json`` printed: results of hosts, and why others have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, convert
from msgspec import ValidationError as WrongShape

from netprobe.batch.checked_lines import BatchIdentity, ResultsRefused
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording, StoredRun
from netprobe.batch.script import HostScript
from netprobe.cluster.nodes import OTHER_WAY
from netprobe.cluster.pages import OpenedPage, join_pages, read_page
from netprobe.errors import RequestError
from netprobe.load.inventory.nodes import find_objects
from netprobe.model.printable import clean

# The one label that everything of a run has; its value is the run's.
RUN_LABEL = "netprobe.run"
EXPECTED = "expected what `kubectl get pods -o json` printed"
MOST_WORDS = 200


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


class _ContainerState(Struct, frozen=True):
    """``state`` of a container: one of these is there."""

    waiting: _Said | None = None
    running: _Said | None = None
    terminated: _Said | None = None


class _Container(Struct, frozen=True):
    """The status of an init container."""

    name: str
    state: _ContainerState = _ContainerState()


class _PodCondition(Struct, frozen=True):
    """One of the conditions: ``PodScheduled`` is the one that counts."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class _PodStatus(Struct, frozen=True, rename="camel"):
    """``status`` of a Pod."""

    init_container_statuses: list[_Container] | None = None
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


def is_pods(path: Path) -> bool:
    """Tell whether a regular file is JSON, as lists of the API are, and no results of a host."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_pods(
    raw: bytes, label: str, request: BatchRequest, scripts: Sequence[HostScript]
) -> StoredRun:
    """Read the pods of a run's first round. Raises RequestError where none is of this run."""
    objects: Mapping[str, Any] | None = find_objects(raw)
    pods = [pod for pod in list_pods(objects, label) if pod.run == request.run]
    if not pods:
        raise RequestError(f"{label}: has no pod of run {request.run} (label {RUN_LABEL})")
    return read_run(pods, request, scripts)


def read_run(
    pods: Iterable[RunPod], request: BatchRequest, scripts: Sequence[HostScript], gone: str = ""
) -> StoredRun:
    """Read the pods of a run's first round; ``gone``: why more may be there.

    A node without a whole page has no results, with the words of its pod.
    """
    by_name = {script.start.name: script for script in scripts}
    found: list[HostRecording] = []
    missing: dict[str, list[str]] = {}
    notes: list[str] = []
    for pod in pods:
        script = by_name.get(pod.spec.node)
        if script is None:
            notes.append(_word_stranger(pod))
            continue
        try:
            found.append(_read_pod(pod, request.identity, script))
        except ResultsRefused as error:
            missing.setdefault(pod.spec.node, []).append(str(error))
    told = {one.name for one in found}
    words = {name: "; ".join(some) for name, some in missing.items() if name not in told}
    for name in by_name.keys() - told - words.keys():
        words[name] = gone or f"no pod of the run is on {name}: {OTHER_WAY}"
    return StoredRun(request, tuple(found), words, tuple(notes))


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


def _read_pod(pod: RunPod, run: BatchIdentity, script: HostScript) -> HostRecording:
    """Read all pages of a pod. Raises ResultsRefused, which says why there are none."""
    containers = pod.status.init_container_statuses or []
    pages = list(_read_pages(pod, containers, run, script.start.host))
    if not pages:
        first = containers[0] if containers else None
        words = _word_state(pod, first)
        raise ResultsRefused(f"pod {clean(pod.metadata.name)}", words, (script.start.name,))
    return join_pages(pages, run, script)


def _read_pages(
    pod: RunPod, containers: Iterable[_Container], run: BatchIdentity, host: int
) -> Iterator[OpenedPage]:
    for one in containers:
        ended = one.state.terminated
        if ended is not None and ended.message:
            label = f"pod {clean(pod.metadata.name)}, container {clean(one.name)}"
            yield read_page(ended.message, label, run, host)


def _word_state(pod: RunPod, container: _Container | None) -> str:
    """Say why a pod has no message."""
    state = container.state if container is not None else _ContainerState()
    if state.terminated is not None:
        ended = state.terminated
        why = f" ({clean(ended.reason)})" if ended.reason else ""
        return f"ended with status {ended.exit_code}{why} and left no message"
    if state.running is not None:
        return "has not finished"
    waits = state.waiting or _Said(pod.status.reason, pod.status.message)
    said = ": ".join(filter(None, (waits.reason, waits.message))) or _word_waiting(pod)
    return f"has not started: {clean(' '.join(said.split()))[:MOST_WORDS]}: {OTHER_WAY}"


def _word_waiting(pod: RunPod) -> str:
    """Say why no kubelet has begun with it."""
    for one in pod.status.conditions or ():
        if (one.type, one.status) == ("PodScheduled", "False"):
            return ": ".join(filter(None, (one.reason, one.message)))
    return "no kubelet has reported on it"


def _word_stranger(pod: RunPod) -> str:
    name, node = clean(pod.metadata.name), clean(pod.spec.node)
    if not node:
        return f"pod {name} is on no node"
    return f"pod {name} is on {node}, which has nothing to do in this run"

"""Reads what ``kubectl get pods -o json`` printed: results of hosts, and why others have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, convert
from msgspec import ValidationError as WrongShape
from msgspec.structs import replace

from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording, StoredRun
from netprobe.batch.script import HostScript
from netprobe.cluster.nodes import OTHER_WAY
from netprobe.cluster.pages import OpenedPage, find_gaps, join_pages, read_page
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


class _Container(Struct, frozen=True, rename="camel"):
    """The status of a container; ``last_state``: how it ended the time before."""

    name: str
    state: _ContainerState = _ContainerState()
    last_state: _ContainerState = _ContainerState()


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

    def find_started(self) -> str:
        """Find the last container that has started; empty where none has."""
        status = self.status
        states = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
        started = [
            one.name
            for one in states
            if one.state.running or one.state.terminated or one.last_state.terminated
        ]
        return started[-1] if started else ""

    def messages(self) -> Iterator[tuple[str, str]]:
        """Give the names of containers that have ended, and the messages that they left."""
        status = self.status
        for one in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
            for state in (one.last_state, one.state):
                if state.terminated is not None and state.terminated.message:
                    yield one.name, state.terminated.message


def is_pods(path: Path) -> bool:
    """Tell whether a regular file is JSON, as lists of the API are, and no results of a host."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_pods(
    raws: Mapping[str, bytes], request: BatchRequest, scripts: Sequence[HostScript]
) -> StoredRun:
    """Read the pods of a run from lists of them, by the names of their files in the order in which
    they were printed. Raises RequestError where none is of this run."""
    arrived = ArrivedPods(request, scripts)
    found = False
    for label, raw in raws.items():
        objects: Mapping[str, Any] | None = find_objects(raw)
        pods = [pod for pod in list_pods(objects, label) if pod.run == request.run]
        found = found or bool(pods)
        arrived.take(pods)
    if not found:
        labels = ", ".join(raws)
        raise RequestError(f"{labels}: has no pod of run {request.run} (label {RUN_LABEL})")
    return arrived.read()


class _SeenPod(Struct):
    """A pod as it was last, and all messages that it ever had, with their containers."""

    pod: RunPod
    messages: dict[str, str] = {}


class ArrivedPods:
    """The pods of a run in one list or several: later ones have pages that earlier ones had not,
    and the other way round.

    ``gone``: why more pods may be there, as no list is whole; empty where one is. ``refusal``: why
    the cluster makes no more pods, where it says so.
    """

    gone: str = ""
    refusal: str = ""

    def __init__(self, request: BatchRequest, scripts: Sequence[HostScript]) -> None:
        self._request = request
        self._scripts = {script.start.name: script for script in scripts}
        self._seen: dict[str, _SeenPod] = {}

    def __len__(self) -> int:
        """How many pods have been seen."""
        return len(self._seen)

    def list_pods(self) -> dict[str, RunPod]:
        """Give the pods by the names of the nodes on which they are, or are to be."""
        return {seen.pod.spec.node: seen.pod for seen in self._seen.values()}

    def take(self, pods: Iterable[RunPod]) -> None:
        """Take the pods of a list."""
        for pod in pods:
            seen = self._seen.setdefault(pod.metadata.name, _SeenPod(pod))
            seen.pod = pod
            seen.messages.update((message, name) for name, message in pod.messages())

    def read(self) -> StoredRun:
        """Give what has arrived.

        A node without a whole page has no results, with the words of its pod.
        """
        found: list[HostRecording] = []
        missing: dict[str, list[str]] = {}
        notes: list[str] = []
        for seen in self._seen.values():
            node = seen.pod.spec.node
            script = self._scripts.get(node)
            if script is None:
                notes.append(_word_stranger(seen.pod))
                continue
            try:
                pages, refused = self._open_pages(seen)
                joined = join_pages(pages, self._request.identity, script)
                source = f"{script.start.name} (pod {clean(seen.pod.metadata.name)})"
                found.append(replace(joined, source=source))
                notes += map(str, refused)
            except ResultsRefused as error:
                missing.setdefault(node, []).append(str(error))
        told = {one.name for one in found}
        words = {name: "; ".join(some) for name, some in missing.items() if name not in told}
        for name in self._scripts.keys() - told - words.keys():
            words[name] = self.gone or self._word_no_pod(name)
        return StoredRun(self._request, tuple(found), words, tuple(notes))

    def _word_no_pod(self, name: str) -> str:
        why = f" ({self.refusal})" if self.refusal else ""
        return f"no pod of the run is on {name}{why}: {OTHER_WAY}"

    def word_waiting(self, last: int) -> str:
        """Say what is yet to come."""
        nodes, answers = self.count_waiting(last)
        running = self.count_running()
        parts = []
        if nodes:
            parts.append(f"{answers:,} answers of {nodes:,} nodes had no room so far")
        if running:
            parts.append(f"{running:,} node{' has' if running == 1 else 's have'} not finished")
        return ", ".join(parts)

    def count_running(self) -> int:
        """Count nodes that have told nothing, and may do so yet: their first container runs, and
        has not ended before."""
        return sum(
            seen.pod.spec.node in self._scripts and not seen.messages and is_probing(seen.pod)
            for seen in self._seen.values()
        )

    def count_waiting(self, last: int) -> tuple[int, int]:
        """Count nodes that have more pages to tell, up to the page ``last``, and the answers that
        had no room so far."""
        nodes = answers = 0
        for seen in self._seen.values():
            if seen.pod.spec.node not in self._scripts:
                continue
            try:
                pages, _ = self._open_pages(seen)
            except ResultsRefused:
                continue
            header = max((page.header for page in pages), key=lambda header: header.page)
            left = header.failed_left + header.others_left
            if find_gaps(pages) or (left and header.page < last):
                nodes, answers = nodes + 1, answers + left
        return nodes, answers

    def _open_pages(self, seen: _SeenPod) -> tuple[list[OpenedPage], list[ResultsRefused]]:
        """Give all pages of a pod, and what was said of messages that are none. Raises
        ResultsRefused where there is no page, with the reason."""
        pod, script = seen.pod, self._scripts[seen.pod.spec.node]
        name = f"pod {clean(pod.metadata.name)}"
        pages: list[OpenedPage] = []
        refused: list[ResultsRefused] = []
        for message, container in seen.messages.items():
            label = f"{name}, container {clean(container)}"
            try:
                pages.append(read_page(message, label, self._request.identity, script.start.host))
            except ResultsRefused as error:
                refused.append(error)
        if not pages:
            words = _word_state(pod, next(iter(pod.status.init_container_statuses or ()), None))
            raise next(iter(refused), ResultsRefused(name, words, (script.start.name,)))
        return pages, refused


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


def is_probing(pod: RunPod) -> bool:
    """Tell whether the first container of a pod runs, for the first time."""
    first = next(iter(pod.status.init_container_statuses or ()), None)
    if first is None or first.state.running is None:
        return False
    return first.last_state.terminated is None


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

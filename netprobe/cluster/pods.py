"""Reads what ``kubectl get pods -o json`` printed: results of hosts, and why others have none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording, StoredRun
from netprobe.batch.script import HostScript
from netprobe.cluster.nodes import OTHER_WAY
from netprobe.cluster.pages import OpenedPage, find_gaps, join_pages, read_page
from netprobe.cluster.pod_states import (
    RUN_LABEL,
    RunPod,
    list_pods,
    may_tell,
    word_before,
    word_state,
    word_stranger,
)
from netprobe.errors import RequestError
from netprobe.load.inventory.nodes import find_objects
from netprobe.model.printable import clean


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
                notes.append(word_stranger(seen.pod))
                continue
            try:
                pages, refused = self._open_pages(seen)
                joined = join_pages(pages, self._request.identity, script)
                source = f"{script.start.name} (pod {clean(seen.pod.metadata.name)})"
                found.append(replace(joined, source=source))
                notes += map(str, refused)
            except ResultsRefused as error:
                missing.setdefault(node, []).extend([str(error), *word_before(seen.pod)])
        told = {one.name for one in found}
        words = {name: "; ".join(some) for name, some in missing.items() if name not in told}
        for name, doubt in self._doubt_image(told, words):
            words[name] += f"; {doubt}"
        for name in self._scripts.keys() - told - words.keys():
            words[name] = self.gone or self._word_no_pod(name)
        return StoredRun(self._request, tuple(found), words, tuple(notes))

    def _doubt_image(self, told: Collection[str], missing: Iterable[str]) -> list[tuple[str, str]]:
        """Say of which nodes the processor may be the reason: no node that has it has told."""
        hosts = self._request.plan.hosts() if told and missing else {}
        machines = {name: host.node.machine for name, host in hosts.items() if host.node}
        able = {machines.get(name) for name in told}
        return [
            (
                name,
                f"it is {machines[name]}, of which no node has told anything: the image may not be "
                f"for it (leave it out by --machine, and {OTHER_WAY})",
            )
            for name in missing
            if machines.get(name) and machines[name] not in able
        ]

    def _word_no_pod(self, name: str) -> str:
        why = f" ({self.refusal})" if self.refusal else ""
        return f"no pod of the run is on {name}{why}: {OTHER_WAY}"

    def word_waiting(self, last: int) -> str:
        """Say what is yet to come."""
        nodes, answers = self.count_waiting(last)
        late = self.count_late()
        parts = []
        if nodes:
            many = "" if nodes == 1 else "s"
            parts.append(f"{answers:,} answers of {nodes:,} node{many} had no room so far")
        if late:
            parts.append(f"{late:,} node{' has' if late == 1 else 's have'} not finished")
        return ", ".join(parts)

    def count_late(self) -> int:
        """Count nodes that have told nothing, and may do so yet."""
        return sum(
            seen.pod.spec.node in self._scripts and not seen.messages and may_tell(seen.pod)
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
            words = word_state(pod)
            raise next(iter(refused), ResultsRefused(name, words, (script.start.name,)))
        return pages, refused

"""Kubelets of all nodes of a real API server, and its scheduler, in one process: each kubelet asks
and reports with the rights of its own node."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import httpx

from netprobe.cluster.pod_states import RUN_LABEL
from tests.cluster.kubelets import Kubelets
from tests.cluster.real import SCHEDULER, RealCluster

Json = dict[str, Any]
# A watch that has been quiet for so long is asked for anew.
QUIET_S = 1.0
# After which time a call is made again that was not answered.
AGAIN_S = 0.2
MERGE = "application/strategic-merge-patch+json"
# What is answered where a pod has gone meanwhile.
GONE = (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT)


class RealKubelets(Kubelets):
    """At most ``most`` pods run at a time."""

    def __init__(
        self,
        cluster: RealCluster,
        folder: Path,
        enter: Callable[[str], Sequence[str]] = lambda _: (),
        most: int = 8,
    ) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, enter)
        self._cluster = cluster
        self._client = cluster.open_client()
        self._pool = ThreadPoolExecutor(most)
        self._jobs: list[Future[None]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch_pods)
        self._version = ""
        self._started: dict[str, Json] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for pod in self._started.values():
            self.stop_pod(pod)
        self._pool.shutdown(cancel_futures=True)
        for job in self._jobs:
            if not job.cancelled():
                job.result()
        self._client.close()

    def report(self, pod: Json, status: Json) -> None:
        """Tell the status of a pod, as its node."""
        path, node = f"{find_path(pod)}/status", pod["spec"]["nodeName"]
        self._insist("PATCH", path, {"status": status}, user=node, kind=MERGE)

    def _insist(
        self, method: str, path: str, body: Any = None, *, user: str, kind: str = "application/json"
    ) -> httpx.Response | None:
        """Make a call as often as it takes while the API server is gone, or has just started and
        knows of no rights; None where what it is about is gone, or all is over."""
        while True:
            try:
                answer = self._cluster.call(
                    method, path, body, user=user, kind=kind, client=self._client
                )
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                return answer
            if answer is not None and answer.status_code in GONE:
                return None
            if self._is_over.wait(AGAIN_S):
                return None

    def _watch_pods(self) -> None:
        while not self._is_over.is_set():
            try:
                for event in self._list_events():
                    self._take_event(event)
            except httpx.ReadTimeout:
                continue
            except httpx.HTTPError:
                self._is_over.wait(AGAIN_S)

    def _list_events(self) -> Iterator[Json]:
        query = {"watch": "true", "labelSelector": RUN_LABEL, "resourceVersion": self._version}
        with self._client.stream(
            "GET", "/api/v1/pods", params=query, headers=self._cluster.head(SCHEDULER),
            timeout=httpx.Timeout(QUIET_S, connect=None),
        ) as answer:  # fmt: skip
            answer.raise_for_status()
            yield from map(json.loads, answer.iter_lines())

    def _take_event(self, event: Json) -> None:
        pod = event["object"]
        if event["type"] == "ERROR":
            self._version = ""
            return
        self._version = pod["metadata"]["resourceVersion"]
        uid = pod["metadata"]["uid"]
        if event["type"] == "DELETED":
            self._started.pop(uid, None)
        elif "deletionTimestamp" in pod["metadata"]:
            self.stop_pod(pod)
            self._jobs.append(self._pool.submit(self._end_pod, pod))
        elif uid not in self._started:
            self._started[uid] = pod
            self._jobs.append(self._pool.submit(self._start_pod, pod))

    def _start_pod(self, pod: Json) -> None:
        """Bind a pod as the scheduler, to the only node on which it may be, and run it."""
        required = pod["spec"]["affinity"]["nodeAffinity"]
        terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        node = terms[0]["matchFields"][0]["values"][0]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        made = {"metadata": {"name": pod["metadata"]["name"]}, "target": target}
        if self._insist("POST", f"{find_path(pod)}/binding", made, user=SCHEDULER):
            pod["spec"]["nodeName"] = node
            self.run_pod(pod, self.read_orders(pod))

    def read_orders(self, pod: Json) -> bytes:
        """Read the ConfigMap as the node, which may as soon as it is known that the pod is its."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/netprobe"
        answer = self._insist("GET", path, user=pod["spec"]["nodeName"])
        data: str = answer.json()["binaryData"]["run.pyz"] if answer is not None else ""
        return data.encode()

    def _end_pod(self, pod: Json) -> None:
        """Say that nothing of a pod runs any more."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._insist("DELETE", find_path(pod), options, user=pod["spec"].get("nodeName", SCHEDULER))


def find_path(pod: Json) -> str:
    """Where the API has a pod."""
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"

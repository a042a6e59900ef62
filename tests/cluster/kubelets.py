"""Imitated kubelets: each starts a pod's containers, one after the other, and keeps of their
messages what a kubelet keeps."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

Json = dict[str, Any]
# The real client, out of the package index: beside the Python of the tests.
KUBECTL = Path(sys.executable).parent / "kubectl"
# What a kubelet keeps: the end of a file that is too long, then the beginning of a message that is.
POD_BYTES, MESSAGE_BYTES = 12288, 4096
# What says that the first container of a pod runs, which probes.
PROBING = {"phase": "Pending", "initContainerStatuses": [
    {"name": "page-1", "state": {"running": {"startedAt": "2026-11-28T10:00:00Z"}}},
]}  # fmt: skip
# What says that a pod is ready.
READY = [{"type": "Ready", "status": "True"}]


class PodStopped(Exception):
    """A pod is to end."""


class Kubelets:
    """Kubelets of all nodes. ``enter``: the words that go before a command on a node."""

    def __init__(self, folder: Path, enter: Callable[[str], Sequence[str]] = lambda _: ()) -> None:
        self._folder = folder
        self._enter = enter
        self._lock = threading.Lock()
        # By the names of pods; None of those that are to end.
        self._running: dict[str, subprocess.Popen[bytes] | None] = {}
        self._threads: list[threading.Thread] = []

    def start_pod(self, pod: Json, bundle: bytes) -> None:
        """Run a pod beside what goes on."""
        thread = threading.Thread(target=self.run_pod, args=(pod, bundle))
        thread.start()
        self._threads.append(thread)

    def wait_for_pods(self) -> None:
        """Wait until all that were started have ended."""
        for thread in self._threads:
            thread.join()

    def run_pod(self, pod: Json, bundle: bytes) -> None:
        """Run a pod, until it ends or is stopped."""
        with contextlib.suppress(PodStopped):
            self._run_containers(pod, bundle)

    def report(self, pod: Json, status: Json) -> None:
        """Tell the status of a pod: here its object is all that there is."""
        pod["status"] = status

    def stop_pod(self, pod: Json) -> None:
        """Kill a pod's container, and start no other one."""
        with self._lock:
            process = self._running.get(pod["metadata"]["name"])
            self._running[pod["metadata"]["name"]] = None
        if process is not None:
            process.kill()

    def _run_containers(self, pod: Json, bundle: bytes) -> None:
        """Start one after the other; the pod's status changes with each one that has ended."""
        spec, place = pod["spec"], self._folder / pod["metadata"]["name"]
        place.mkdir(exist_ok=True)
        (place / "run.pyz").write_bytes(b64decode(bundle))
        ended: list[Json] = []
        self.report(pod, PROBING)
        for one in spec["initContainers"]:
            ended.append({"name": one["name"], "state": self._run_container(pod, one)})
            self.report(pod, {"phase": "Pending", "initContainerStatuses": list(ended)})
        status = {"phase": "Running", "initContainerStatuses": ended, "conditions": READY}
        self.report(pod, status)
        # A page that waits is handed on; else the last container would run until the pod goes.
        (rest,) = spec["containers"]
        while list(place.glob("page-[3-9]")):
            state = self._run_container(pod, rest)
            again = {"name": rest["name"], "state": {"running": {}}, "lastState": state}
            self.report(pod, {**status, "containerStatuses": [again]})

    def _run_container(self, pod: Json, container: Json) -> Json:
        """Run a container to its end, and give the state that it leaves."""
        node, spec = pod["spec"]["nodeName"], pod["spec"]
        place = self._folder / pod["metadata"]["name"]
        message = place / "message"
        message.write_bytes(b"")
        mounts = {"$(NODE)": node, "/netprobe/run.pyz": str(place / "run.pyz"),
                  "/pages": str(place), "/dev/termination-log": str(message),
                  "python3": sys.executable}  # fmt: skip
        command = [*self._enter(node), *(mounts.get(word, word) for word in container["command"])]
        with self._lock:
            name = pod["metadata"]["name"]
            if self._running.get(name, ...) is None:
                raise PodStopped
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._running[name] = process
        code = process.wait(PATIENCE_S)
        count = len(spec["initContainers"]) + len(spec["containers"])
        said = message.read_bytes()[-MESSAGE_BYTES:][: POD_BYTES // count].decode()
        state = {"exitCode": code, "reason": "Completed", "message": said}
        return {"terminated": state}


def wait_for_ever(reason: str, message: str) -> Callable[[Json, bytes], None]:
    """A kubelet on whose node no container starts."""

    def report(pod: Json, _bundle: bytes) -> None:
        state = {"waiting": {"reason": reason, "message": message}}
        first = {"name": "page-1", "state": state}
        pod["status"] = {"phase": "Pending", "initContainerStatuses": [first]}

    return report


def report_pages(pages: Mapping[str, Sequence[str]]) -> Callable[[Json, bytes], None]:
    """Kubelets whose containers have left these messages, by their nodes."""

    def report(pod: Json, _bundle: bytes) -> None:
        ended = [
            {"name": f"page-{at}", "state": {"terminated": {"exitCode": 0, "message": one}}}
            for at, one in enumerate(pages.get(pod["spec"]["nodeName"], ()), 1)
        ]
        pod["status"] = {"phase": "Running", "initContainerStatuses": ended, "conditions": READY}

    return report

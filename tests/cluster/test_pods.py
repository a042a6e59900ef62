"""Results out of the status of pods, as the API gives it, and why nodes have none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.batch.results import StoredRun
from netprobe.cluster.pod_states import RUN_LABEL, list_pods
from netprobe.cluster.pods import ArrivedPods, read_pods
from netprobe.errors import RequestError
from netprobe.model.inventory import NodeState
from tests.batch.merging import World, make_world
from tests.batch.world import A, B, C, Merged, plan_of
from tests.cluster.pods import make_pages

Json = dict[str, Any]


@pytest.fixture(scope="module")
def world() -> World:
    """Three hosts, of which two flows from b to c are dropped."""
    return make_world(plan_of(("web", "tcp", ((8000, 8009),))))


def ended(message: str, status: int = 0, reason: str = "Completed") -> Json:
    """The state of a container that has ended."""
    return {"terminated": {
        "containerID": "containerd://5f3c", "exitCode": status, "reason": reason,
        "startedAt": "2026-11-28T10:00:00Z", "finishedAt": "2026-11-28T10:02:00Z",
        **({"message": message} if message else {}),
    }}  # fmt: skip


def pod(world: World, node: str, *states: Json) -> Json:
    """A pod as the API gives it, whose init containers are in these states."""
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"netprobe-{node}", "labels": {RUN_LABEL: world.request.run},
                     "ownerReferences": [{"kind": "DaemonSet", "name": "netprobe"}]},
        "spec": {"nodeName": node, "hostNetwork": True},
        "status": {
            "phase": "Running", "hostIP": "10.0.0.1",
            "initContainerStatuses": [
                {"name": f"page-{at}", "image": "x", "ready": True, "restartCount": 0,
                 "lastState": {}, "state": state}
                for at, state in enumerate(states, 1)
            ],
            "containerStatuses": [{"name": "rest", "state": {"running": {"startedAt": "x"}}}],
        },
    }  # fmt: skip


def full(world: World, node: str) -> Json:
    """A pod with all that its node has found."""
    pages = make_pages(world.scripts[node], world.recordings[node], (500, 4096))
    return pod(world, node, *map(ended, pages))


def read(world: World, *pods: Json) -> StoredRun:
    """What is stored of the run in these pods."""
    raw = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)}).encode()
    return read_pods({"pods.json": raw}, world.request, list(world.scripts.values()))


def test_a_run_by_pods_is_that_of_files(world: World) -> None:
    """All pages of all nodes: the same results, but for where they come from."""
    stored = read(world, *(full(world, name) for name in "abc"))
    assert (stored.missing, stored.notes) == ({}, ())
    by_pods = Merged(stored.request, stored.recordings, heard=True)
    by_files = Merged(world.request, list(world.recordings.values()), heard=True)
    assert by_pods.results == by_files.results
    assert {one.verdict for one in by_pods.results} == {"pass", "blocked"}


def test_several_lists_are_one() -> None:
    """What the last container has told is in one list or another, of the end before or the last;
    what stays the same counts once."""
    ports = ((f"p{at}", "tcp", ((9000 + 7 * at, 9000 + 7 * at),)) for at in range(30))
    world = make_world(plan_of(("web", "tcp", ((8000, 8009),)), ("ping", "icmp", ()), *ports))
    recording = world.recordings["a"]
    pages = make_pages(world.scripts["a"], recording, (440, 440, 440, 440, 440, 4096))
    assert len(pages) > 3
    lists = {}
    for number in range(2, len(pages)):
        one = pod(world, "a", *map(ended, pages[:2]))
        rest = {"name": "rest", "state": ended(pages[number]), "lastState": {}}
        if number % 2:
            rest = {"name": "rest", "state": {"running": {}}, "lastState": ended(pages[number])}
        one["status"]["containerStatuses"] = [rest]
        lists[f"pods-{number}.json"] = json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": [one]}
        ).encode()
    stored = read_pods(lists, world.request, list(world.scripts.values()))
    (found,) = stored.recordings
    assert (found.words, found.answers) == ("", recording.answers)
    del lists["pods-2.json"]
    stored = read_pods(lists, world.request, list(world.scripts.values()))
    (found,) = stored.recordings
    assert found.words == "page 3 of its results has not arrived"


def test_why_a_node_has_no_results(world: World) -> None:
    """In the words of its pod; the others count."""
    pull = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
    states = {
        "has not started: ImagePullBackOff: Back-off pulling image": pull,
        "has not finished": {"running": {"startedAt": "2026-11-28T10:00:00Z"}},
        "ended with status 137 (OOMKilled) and left no message": ended("", 137, "OOMKilled"),
        "container page-1: did nothing: too late: this run ended": ended(
            "netprobe: too late: this run ended at 10:00"
        ),
        "container page-1: is cut off": ended("NPP1 1 3000 "),
        "has not started: PodInitializing": {"waiting": {"reason": "PodInitializing"}},
        "container page-1: does not begin as a page": ended("exec format error", 1, "Error"),
    }
    for words, state in states.items():
        stored = read(world, full(world, "a"), full(world, "b"), pod(world, "c", state))
        assert list(stored.missing) == ["c"]
        assert stored.missing["c"].startswith("pod netprobe-c")
        assert words in stored.missing["c"]
        assert [one.name for one in stored.recordings] == ["a", "b"]
    assert "no kubelet has reported on it" in read(world, pod(world, "c")).missing["c"]
    stored = read(world, full(world, "a"), full(world, "b"))
    assert stored.missing == {"c": "no pod of the run is on c: use ssh or a bundle there"}
    merged = Merged(stored.request, stored.recordings, missing=stored.missing, heard=True)
    untested = {one.because for one in merged.results if "c" in (one.source, one.destination)}
    assert all("no pod of the run is on c" in words for words in untested), untested


def test_a_container_that_was_started_again(world: World) -> None:
    """Pods of a DaemonSet always are: how it has ended is the reason, not that it waits, nor that
    the new one is too late."""
    back = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed"}}
    late = ended("netprobe: too late: this run ended at 10:00")
    for state, words in (
        (back, "ended with status 137 (OOMKilled) and left no message, and was started again"),
        ({"running": {}}, "ended with status 137 (OOMKilled) and left no message, and was"),
        (late, "too late: this run ended at 10:00; it was started again, as it ended with status "
         "137 (OOMKilled) and left no message"),
    ):  # fmt: skip
        one = pod(world, "c", state)
        one["status"]["initContainerStatuses"][0]["lastState"] = ended("", 137, "OOMKilled")
        assert words in read(world, full(world, "a"), one).missing["c"]


def test_who_may_tell_something_yet(world: World) -> None:
    """Who runs, or may have begun since the kubelet has reported; not who has ended, who cannot
    be started, and who has no node."""
    cases: tuple[tuple[Json, bool], ...] = (
        ({"running": {}}, True),
        ({"waiting": {"reason": "PodInitializing"}}, True),
        ({}, True),
        ({"waiting": {"reason": "ImagePullBackOff"}}, False),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, False),
        (ended("", 137, "OOMKilled"), False),
    )
    pods = {}
    for at, (state, may) in enumerate(cases):
        pods[f"state {at}"] = (pod(world, "c", state), may)
    again = pod(world, "c", {"running": {}})
    again["status"]["initContainerStatuses"][0]["lastState"] = ended("", 137, "OOMKilled")
    nowhere = pod(world, "c")
    nowhere["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    pods |= {"again": (again, False), "nowhere": (nowhere, False),
             "unreported": (pod(world, "c"), True), "told": (full(world, "c"), False)}  # fmt: skip
    for name, (one, may) in pods.items():
        arrived = ArrivedPods(world.request, list(world.scripts.values()))
        arrived.take(list_pods({"items": [one]}, "pods"))
        assert (name, arrived.count_late()) == (name, may)


def test_an_image_for_another_processor() -> None:
    """Where no node of a processor tells anything, it may be that; where one does, it is not."""
    hosts = [
        replace(one, node=NodeState("linux", machine))
        for one, machine in ((A, "amd64"), (B, "arm64"), (C, "arm64"))
    ]
    world = make_world(plan_of(("web", "tcp", ((8000, 8009),)), hosts=hosts))
    failed = pod(world, "c", ended("", 255, "Error"))
    doubt = "; it is arm64, of which no node has told anything: the image may not be for it"
    stored = read(world, full(world, "a"), failed)
    assert f"ended with status 255 (Error) and left no message{doubt}" in stored.missing["c"]
    assert "arm64" not in read(world, full(world, "a"), full(world, "b"), failed).missing["c"]


def test_an_image_without_python(world: World) -> None:
    """The runtime's words are no message of the container; the way that remains is named."""
    words = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        'runc create failed: unable to start container process: exec: "python3": executable file '
        "not found in $PATH: unknown"
    )
    back = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed"}}
    error = ended(words, 128, "StartError")
    cri_o = "container create failed: executable file `python3` not found in $PATH"
    for state, before, said in (
        (error, {}, f"StartError: {words}"),
        (back, error, f"StartError: {words}"),
        ({"waiting": {"reason": "CreateContainerError", "message": cri_o}}, {}, cri_o),
    ):
        one = pod(world, "c", state)
        one["status"]["initContainerStatuses"][0]["lastState"] = before
        missing = read(world, full(world, "a"), one).missing["c"]
        assert "has not started: " in missing
        assert f"{said}: give --image one with python3, or use ssh or a bundle there" in missing


def test_pods_of_others(world: World) -> None:
    """A pod of another run is none of ours, one on another node is a note, and a page of one node
    is never that of another."""
    other = full(world, "b")
    other["metadata"]["labels"] = {RUN_LABEL: "ffffffffffffffff"}
    stray = pod(world, "new-node", ended("netprobe: x"))
    stored = read(world, full(world, "a"), other, stray)
    assert set(stored.missing) == {"b", "c"}
    assert stored.notes == (
        "pod netprobe-new-node is on new-node, which has nothing to do in this run",
    )
    moved = full(world, "b")
    moved["spec"]["nodeName"] = "c"
    stored = read(world, full(world, "a"), moved)
    assert "was not written with the key of c" in stored.missing["c"]
    with pytest.raises(RequestError, match=r"pods\.json: has no pod of run 0000000000000000"):
        read(world, other)


def test_what_is_no_list_of_pods(world: World) -> None:
    """One line, with the name of the file."""
    bad = full(world, "a")
    bad["spec"] = []
    scripts = list(world.scripts.values())
    for raw in (
        b"[]", b"{}", b'{"apiVersion": "v1", "kind": "Pod"}', b"\x00", b'{"apiVersion": "v1", ',
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Node"}]}).encode(),
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [bad]}).encode(),
    ):  # fmt: skip
        with pytest.raises(RequestError, match=r"^pods\.json: .*expected what `kubectl get pods"):
            read_pods({"pods.json": raw}, world.request, scripts)

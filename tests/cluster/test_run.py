"""A run from its objects to its results: real kubectl, a small API server, kubelets that have what
nodes found; time passes at once."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import time
from typing import Any

import pytest

from netprobe.cluster.kubectl import ApiRefusal, Kubectl
from netprobe.cluster.manifest import ManifestOf, make_objects
from netprobe.cluster.run import LATE_S, list_runs, look_at_cluster, remove_runs
from netprobe.cluster.selecting import choose_terms
from netprobe.errors import NetprobeError, RequestError
from tests.batch.merging import World
from tests.cluster.api import Api, ApiError, make_node, status
from tests.cluster.kubelets import PROBING, wait_for_ever
from tests.cluster.playing import HOUR_S, Played, verdicts, verdicts_of_files

pytestmark = pytest.mark.slow

Json = dict[str, Any]


def look(kube: Kubectl, selector: str = "") -> Json:
    """The nodes, where a run is possible; there is no note."""
    notes: list[str] = []
    nodes = asyncio.run(look_at_cluster(kube, selector, notes.append))
    assert notes == []
    return nodes


def test_a_run_leaves_its_results_and_nothing_else(world: World, api: Api, kube: Kubectl) -> None:
    """All that the nodes found is there, and the namespace is gone; it waits for the nodes' end."""
    played = Played(world, kube)
    stored = played.carry_out()
    assert (stored.missing, stored.notes) == ({}, ())
    assert verdicts(stored) == verdicts_of_files(world)
    assert verdicts(stored).keys() == {"pass", "blocked"}
    assert (api.spaces, api.deleted) == ({}, [f"netprobe-{world.request.run}"])
    begun = played.waits[-1] - HOUR_S
    assert played.waits[-1] - played.waits[0] > 60 + 10
    assert begun < time.time() + 60 + 10 + 10
    assert [method for method, path in api.calls if "namespaces/" in path] == [
        "POST", "POST", "GET", "GET", "DELETE"
    ]  # fmt: skip


def test_the_objects_are_those_of_the_manifest(world: World, api: Api, kube: Kubectl) -> None:
    """In one namespace with one label, which plain kubectl finds too, before it goes."""
    found: list[Json] = []
    kubelet = api.kubelet

    def keep(pod: Json, bundle: bytes) -> None:
        if pod["spec"]["nodeName"] == "a":
            found.extend((*api.spaces.values(), *next(iter(api.made.values())).values()))
        kubelet(pod, bundle)

    api.kubelet = keep
    Played(world, kube, "probing").carry_out()
    assert [one["kind"] for one in found] == ["Namespace", "ConfigMap", "DaemonSet"]
    label = {"netprobe.run": world.request.run}
    assert all(label.items() <= one["metadata"]["labels"].items() for one in found)
    assert [one["metadata"].get("namespace") for one in found] == [None, "probing", "probing"]
    assert found[1]["binaryData"] == {"run.pyz": "eA=="}
    assert api.deleted == ["probing"]


def test_a_thousand_nodes_cost_twelve_calls(world: World, api: Api, kube: Kubectl) -> None:
    """And the list of pods page by page; none is for one node."""
    api.nodes = [*api.nodes, *(make_node(f"n{at}", f"10.1.{at // 250}.{at % 250}")
                               for at in range(997))]  # fmt: skip
    assert len(look(kube)["items"]) == 1000
    # So that it looks as often as it ever does, and asks why a node has no pod.
    api.makes_no_pod, api.most_pods = QUOTA_OF_PODS, 999
    ready = api.kubelet
    api.kubelet = lambda pod, bundle: (
        pod.update(status=PROBING) if pod["spec"]["nodeName"] == "c" else ready(pod, bundle)
    )
    played = Played(world, kube)
    stored = played.carry_out()
    assert (len(stored.recordings), len(stored.notes)) == (2, 996)
    pages = [path for method, path in api.calls if path.endswith("/pods")]
    rounds = 1 + sum(": round " in line for line in played.lines)
    assert len(pages) == 2 * rounds > 4
    # One is left for the question where agents of Konnectivity dial.
    assert len(api.calls) - len(pages) <= 12 - 1, api.calls


def test_a_node_that_is_late(world: World, api: Api, kube: Kubectl) -> None:
    """As long as its clock may be late it is asked for again, and what came with its last message
    is read within 20 s; of one that cannot begin nothing is waited for."""
    ready, pods = api.kubelet, {}

    def report(pod: Json, bundle: bytes) -> None:
        pods[pod["spec"]["nodeName"]] = lambda: ready(pod, bundle)
        if pod["spec"]["nodeName"] == "c":
            pod["status"] = PROBING
        else:
            ready(pod, bundle)

    api.kubelet = report
    over = HOUR_S + world.request.window_s + world.request.margin_s
    for is_late in (False, True):
        played = Played(world, kube)
        if is_late:
            played.on_wait = lambda when: (
                pods["c"]() if when - time.time() > over + world.request.margin_s / 2 + 1 else None
            )
        begun = time.time()
        stored = played.carry_out()
        lists = played.waits[1:]
        assert lists[0] - begun < over + 20
        assert all(after - before < 20 for before, after in itertools.pairwise(lists))
        late_s = lists[-1] - begun - over - world.request.margin_s - LATE_S
        assert late_s <= 1
        assert (late_s >= -1) == (not is_late)
        assert "1 node has not finished: round 2 of at most 26 in 10 s" in "".join(played.lines)
        assert stored.missing == ({} if is_late else {"c": "pod netprobe-c: has not finished"})
    api.kubelet = lambda pod, bundle: (
        wait_for_ever("ImagePullBackOff", "no")(pod, bundle)
        if pod["spec"]["nodeName"] == "c"
        else ready(pod, bundle)
    )
    played = Played(world, kube)
    assert list(played.carry_out().missing) == ["c"]
    assert played.waits[-1] - time.time() < over + 20
    assert "round" not in "".join(played.lines)


def test_nodes_are_as_small_as_they_can_be(api: Api, kube: Kubectl) -> None:
    """What a kubelet lists of its images is not kept; a thousand real nodes are large."""
    want = look(kube)
    for node in api.nodes:
        node["status"]["images"] = [{"names": ["registry.example.com/x"], "sizeBytes": 1}]
        node["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    assert look(kube) == want


def test_a_list_that_fails_later_takes_nothing_back(world: World, api: Api, kube: Kubectl) -> None:
    """A whole list has shown that a node has no pod."""
    api.makes_no_pod, api.most_pods = QUOTA_OF_PODS, 2
    ready = api.kubelet
    api.kubelet = lambda pod, bundle: (
        pod.update(status=PROBING) if pod["spec"]["nodeName"] == "a" else ready(pod, bundle)
    )
    lists: list[str] = []

    def is_second(_method: str, path: str) -> bool:
        lists.extend([path] if path.endswith("/pods") else [])
        return path.endswith("/pods") and len(lists) > 1

    api.gone_at = is_second
    stored = Played(world, kube).carry_out()
    assert len(lists) > 1
    assert stored.missing["c"].startswith("no pod of the run is on c (Error creating: ")


def test_a_quota_that_lets_some_pods_through(world: World, api: Api, kube: Kubectl) -> None:
    """The nodes without one have the cluster's words; the others count."""
    api.makes_no_pod, api.most_pods = QUOTA_OF_PODS, 2
    played = Played(world, kube)
    stored = played.carry_out()
    words = f"{QUOTA_OF_PODS}: the namespace needs a larger quota, or none"
    assert stored.missing == {
        "c": f"no pod of the run is on c ({words}): use ssh or a bundle there"
    }
    assert f"2 of 3 pods are there; the cluster makes no other: {words}" in played.lines
    assert len(stored.recordings) == 2


def test_why_a_node_has_no_results(world: World, api: Api, kube: Kubectl) -> None:
    """In the words of its pod, with the way that remains; the others count."""
    pull = wait_for_ever("ImagePullBackOff", 'Back-off pulling image "x"')
    ready = api.kubelet

    def report(pod: Json, bundle: bytes) -> None:
        if pod["spec"]["nodeName"] == "a":
            ready(pod, bundle)
        elif pod["spec"]["nodeName"] == "b":
            pull(pod, bundle)
        else:
            del pod["spec"]["nodeName"]
            conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                           "message": "0/3 nodes are available: 1 Insufficient cpu."}]  # fmt: skip
            pod["status"] = {"phase": "Pending", "conditions": conditions}

    api.kubelet = report
    stored = Played(world, kube).carry_out()
    assert [one.name for one in stored.recordings] == ["a"]
    way = "use ssh or a bundle there"
    assert stored.missing == {
        "b": "pod netprobe-b: has not started: ImagePullBackOff: Back-off pulling image "
        f'"x": {way}',
        "c": "pod netprobe-c: has not started: Unschedulable: 0/3 nodes are available: 1 "
        f"Insufficient cpu.: {way}",
    }


def test_ctrl_c_reports_what_arrived(world: World, api: Api, kube: Kubectl) -> None:
    """While nodes probe; before they do there is nothing to report. The namespace goes in both."""
    played = Played(world, kube)
    stored = played.carry_out(interrupt_at=2)
    assert played.stopped
    assert len(stored.recordings) == 3
    assert api.spaces == {}
    played = Played(world, kube)
    stored = played.carry_out(interrupt_at=1)
    assert played.stopped
    assert stored.recordings == ()
    assert set(stored.missing.values()) == {"the run ended before its results had arrived"}
    assert api.spaces == {}


def test_an_api_that_goes_in_the_middle(world: World, api: Api, kube: Kubectl) -> None:
    """What arrived is reported, the rest is not tested, and a line says what is left."""
    api.gone_at = lambda method, path: path.endswith("/pods") or method == "DELETE"
    played = Played(world, kube)
    stored = played.carry_out()
    assert stored.recordings == ()
    assert verdicts(stored).keys() == {"not-tested"}
    assert all(
        "its results have not arrived: cannot get " in one for one in stored.missing.values()
    )
    name = f"netprobe-{world.request.run}"
    assert played.lines[-1].startswith(f"namespace {name} may be left (cannot delete ")
    assert played.lines[-1].endswith("`kubectl netprobe clean` removes it")
    api.gone_at = lambda *_: False
    lines: list[str] = []
    asyncio.run(remove_runs(kube, asyncio.run(list_runs(kube)), lines.append))
    assert lines == [f"{name} (since 2026-11-28T10:00:00Z) is deleted"]
    assert api.spaces == {}


def test_an_api_that_goes_while_objects_are_created(world: World, api: Api, kube: Kubectl) -> None:
    """What may be left is said before what failed."""
    api.gone_at = lambda method, path: path.endswith("/configmaps") or method == "DELETE"
    played = Played(world, kube)
    with pytest.raises(ApiRefusal, match="cannot create ConfigMap netprobe: "):
        played.carry_out()
    assert "may be left (cannot delete " in played.lines[-1]
    assert len(api.spaces) == 1


def test_half_a_list_is_reported(world: World, api: Api, kube: Kubectl) -> None:
    """The first page of pods came, the second one did not."""
    api.nodes = [*api.nodes, *(make_node(f"n{at}", f"10.1.{at // 250}.{at % 250}")
                               for at in range(600))]  # fmt: skip
    pages: list[str] = []

    def is_second(_method: str, path: str) -> bool:
        pages.extend([path] if path.endswith("/pods") else [])
        return len(pages) > 1

    api.gone_at = is_second
    stored = Played(world, kube).carry_out()
    assert len(stored.recordings) == 3
    assert stored.missing == {}


def test_an_api_that_goes_and_comes_back(world: World, api: Api, kube: Kubectl) -> None:
    """Looks that are not answered end nothing, and a list that breaks off is asked for again."""
    api.refused["GET", "netprobe"] = status(503, "ServiceUnavailable", "starting")
    api.refused["GET", "pods"] = {**status(503, "ServiceUnavailable", "starting"), "once": True}
    stored = Played(world, kube).carry_out()
    assert (len(stored.recordings), stored.missing) == (3, {})
    assert sum(path.endswith("/pods") for _, path in api.calls) == 2
    assert api.spaces == {}


RIGHTS = "docs/cluster.md lists the rights that a run needs"
QUOTA_OF_PODS = (
    'Error creating: pods "netprobe-" is forbidden: exceeded quota: small, requested: pods=3'
)


def test_a_cluster_that_makes_no_pod(world: World, api: Api, kube: Kubectl) -> None:
    """It is said within a minute, however late the start is."""
    api.makes_no_pod = QUOTA_OF_PODS
    played = Played(world, kube)
    with pytest.raises(ApiRefusal, match="the cluster makes no pod: Error creating: pods"):
        played.carry_out()
    assert max(played.waits) < time.time() + 60 + 1
    assert api.spaces == {}


def test_what_is_lost_without_a_right(world: World, api: Api, kube: Kubectl) -> None:
    """A run goes on without those that it needs later on, and says what is missing; events and the
    DaemonSet tell early why the cluster makes no pod."""
    no = status(403, "Forbidden", 'x is forbidden: User "dev" cannot')
    api.refused = {("GET", "pods"): no}
    stored = Played(world, kube).carry_out()
    assert all("cannot get " in one and RIGHTS in one for one in stored.missing.values())
    assert len(stored.missing) == 3
    name = f"netprobe-{world.request.run}"
    api.refused = {("DELETE", name): no}
    played = Played(world, kube)
    assert len(played.carry_out().recordings) == 3
    assert f"namespace {name} may be left (cannot delete " in played.lines[-1]
    assert RIGHTS in played.lines[-1]
    api.spaces.clear()
    api.makes_no_pod = QUOTA_OF_PODS
    for what in ("events", "netprobe"):
        api.refused = {("GET", what): no}
        stored = Played(world, kube).carry_out()
        assert {one.partition(" on ")[0] for one in stored.missing.values()} == {
            "no pod of the run is"
        }
        assert api.spaces == {}


def test_a_namespace_of_somebody_else_stays(world: World, api: Api, kube: Kubectl) -> None:
    """One that exists is never deleted; nor is one of which we know nothing, without our label."""
    api.spaces["probing"] = {"metadata": {"name": "probing"}}
    with pytest.raises(ApiRefusal, match=r'create Namespace probing: namespaces "probing" already'):
        Played(world, kube, "probing").carry_out()
    assert list(api.spaces) == ["probing"]
    # The answer to the creation is lost.
    api.gone_at = lambda method, path: (method, path) == ("POST", "/api/v1/namespaces")
    with pytest.raises(ApiRefusal, match="cannot create Namespace probing"):
        Played(world, kube, "probing").carry_out()
    assert (list(api.spaces), api.deleted) == (["probing"], [])


def test_a_second_run_says_that_one_is_there(api: Api, kube: Kubectl) -> None:
    """One that is being deleted already is none."""
    api.spaces["x"] = {"metadata": {"name": "x", "labels": {"netprobe.run": "1"},
                                    "creationTimestamp": "2026-11-28T10:00:00Z"}}  # fmt: skip
    with pytest.raises(NetprobeError, match="another run is there: x, since 2026-11-28T10") as seen:
        look(kube)
    assert seen.value.exit_status == 4
    api.spaces["x"]["metadata"]["deletionTimestamp"] = "2026-11-28T10:09:00Z"
    assert len(look(kube)["items"]) == 3
    found = asyncio.run(list_runs(kube))
    lines: list[str] = []
    asyncio.run(remove_runs(kube, found, lines.append))
    assert "being deleted already" in lines[0]
    assert api.deleted == []


def test_clean_tries_all_and_says_which_stay(api: Api, kube: Kubectl) -> None:
    """One that may not be deleted holds up no other; one that was made anew meanwhile stays."""
    for name in ("a", "b", "c"):
        meta = {"name": name, "uid": name, "labels": {"netprobe.run": name}}
        api.spaces[name] = {"metadata": meta}
    found = asyncio.run(list_runs(kube))
    api.refused["DELETE", "b"] = {"code": 403, "reason": "Forbidden", "message": "no"}
    api.spaces["c"]["metadata"]["uid"] = "of somebody else"
    lines: list[str] = []
    with pytest.raises(NetprobeError, match="1 of 3 namespaces could not be deleted"):
        asyncio.run(remove_runs(kube, found, lines.append))
    assert lines[1].startswith("b (since ) stays: cannot delete ")
    assert (list(api.spaces), api.deleted) == (["b", "c"], ["a"])


def test_a_name_is_a_name(world: World) -> None:
    """YAML would read it as a number."""
    wanted = ManifestOf(world.request.run, 1, b"", "image", "123")
    assert make_objects(wanted)[0]["metadata"]["name"] == "123"


def test_a_namespace_that_was_made_anew_is_not_deleted(
    world: World, api: Api, kube: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has cleaned, and made another one of this name, while the run went on."""
    played = Played(world, kube, "probing")
    delete = api.answer

    def replace_first(method: str, *rest: Any) -> Any:
        if method == "DELETE":
            api.spaces["probing"] = {"metadata": {"name": "probing", "uid": "another"}}
        return delete(method, *rest)

    monkeypatch.setattr(api, "answer", replace_first)
    played.carry_out()
    assert (list(api.spaces), api.deleted) == (["probing"], [])


@pytest.mark.parametrize("made", [True, False])
def test_a_namespace_that_may_have_been_created_is_looked_for(
    world: World, api: Api, kube: Kubectl, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """The answer was a timeout: the API may have created it, or do it yet."""
    create = api.answer

    def time_out(method: str, path: str, *rest: Any) -> Any:
        if (method, path) == ("POST", "/api/v1/namespaces"):
            if made:
                create(method, path, *rest)
            raise ApiError(504, "Timeout", "request did not complete within the allotted time")
        return create(method, path, *rest)

    monkeypatch.setattr(api, "answer", time_out)
    played = Played(world, kube)
    with pytest.raises(ApiRefusal, match="cannot create Namespace"):
        played.carry_out()
    assert ("is deleted" in played.lines[-1], "may be left" in played.lines[-1]) == (made, not made)
    assert api.spaces == {}


def test_nodes_are_chosen_by_kubectls_selectors(api: Api, kube: Kubectl) -> None:
    """By the cluster for the list, and for the pods by the same in the words of an affinity."""
    api.nodes[0]["metadata"]["labels"]["zone"] = "1"
    assert [one["metadata"]["name"] for one in look(kube, "zone=1")["items"]] == ["a"]
    with pytest.raises(RequestError, match="--nodes zone=2: no node has that"):
        look(kube, "zone=2")
    (term,) = choose_terms("zone in (a, b),!x/y,z!=1,w == 2,v notin (c),u", "", "")
    assert term["matchExpressions"] == [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "x/y", "operator": "DoesNotExist"},
        {"key": "z", "operator": "NotIn", "values": ["1"]},
        {"key": "w", "operator": "In", "values": ["2"]},
        {"key": "v", "operator": "NotIn", "values": ["c"]},
        {"key": "u", "operator": "Exists"},
    ]
    for bad in ("zone in a", "a,,b", "=x", "a=b=c"):
        with pytest.raises(RequestError, match="expected a label selector"):
            choose_terms(bad, "", "")


def test_pods_start_where_there_is_something_to_do() -> None:
    """The shorter list of names says where; without names to leave out there is none."""
    name = {"key": "metadata.name"}
    assert choose_terms("", "ab", "") == ()
    assert choose_terms("", "abc", "xy") == (
        {"matchFields": [{**name, "operator": "NotIn", "values": [one]} for one in "xy"]},
    )
    assert choose_terms("z", "a", "xy") == (
        {"matchExpressions": [{"key": "z", "operator": "Exists"}],
         "matchFields": [{**name, "operator": "In", "values": ["a"]}]},
    )  # fmt: skip


def test_plain_kubectl_finds_what_a_killed_run_left(api: Api, kube: Kubectl) -> None:
    """By the label that the page names: an independent look at what `clean` looks for."""
    api.spaces["netprobe-1"] = {"metadata": {"name": "netprobe-1", "labels": {"netprobe.run": "1"}}}
    api.spaces["other"] = {"metadata": {"name": "other"}}
    words = ("get", "--raw", "/api/v1/namespaces?labelSelector=netprobe.run")
    printed = subprocess.run([kube.program, *kube.words, *words], capture_output=True, check=True)
    names = [one["metadata"]["name"] for one in json.loads(printed.stdout)["items"]]
    assert names == ["netprobe-1"]
    assert [one.namespace for one in asyncio.run(list_runs(kube))] == names

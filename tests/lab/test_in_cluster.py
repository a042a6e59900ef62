"""A run in a cluster from the list of nodes to the report: real probes, a real firewall, and
kubelets that are imitated: each starts a pod's containers in its node's namespace, one after the
other, and keeps of their messages what a kubelet keeps."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.api import Api, make_pod, serving, status
from tests.cluster.kubelets import KUBECTL, Kubelets
from tests.lab.batch import COMPARED, netprobe, rows_of
from tests.lab.netlab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.full]

ROLES = {"cp": ["control-plane"], "w1": ["worker"], "w2": ["worker"], "old": ["worker"]}
MATRIX = """\
schema: netprobe.matrix/1
name: small
title: Some ports and ping
roles: {control-plane: {common: control-plane}, worker: {common: worker}}
requirements:
  - {id: api, from: worker, to: control-plane, tcp: [6443], purpose: x}
  - {id: kubelet, from: control-plane, to: worker, tcp: [10250, 10256], purpose: x}
  - {id: overlay, from: worker, to: worker, udp: [8472, 51820], purpose: x}
  - {id: ping, from: worker, to: worker, icmp: echo, purpose: x}
"""
# Where Konnectivity's server is, behind the same router.
SERVER = "10.97.9.2"
DROPPED = {("kubelet", "cp", "w2", 10250), ("overlay", "w1", "w2", 8472)}
Json = dict[str, Any]


@dataclass(frozen=True)
class Played:
    """What a cluster has given, and what a live run of the same says; ``told``: what one command
    says, against the server ``api``."""

    folder: Path
    objects: list[Json]
    pods: list[Json]
    live: Json
    api: Api
    told: Json
    tunnel_api: Api
    tunnel: Json

    def merge(self, pods: list[Json], *, status: int = 1) -> Json:
        """The report of some pods."""
        path = self.folder / "pods.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
        words = ("merge", str(self.folder / "plan.pyz"), str(path), "-o", "json")
        merged: Json = json.loads(netprobe(*words, ok=(status,)).stdout)
        return merged


def build_nodes(lab: Lab) -> None:
    """Build the nodes, and a router between them that drops two flows, and one to Konnectivity."""
    router = lab.router("router", "10.97.0.1")
    for number, name in enumerate(ROLES):
        lab.host(name, router, f"10.97.{number + 1}.2")
    lab.host("konnectivity", router, SERVER)
    lab.wait_until_ready()
    router.nft(
        "table inet cluster { chain forward { type filter hook forward priority 0;\n"
        "ip saddr 10.97.1.2 ip daddr 10.97.3.2 tcp dport 10250 drop\n"
        "ip saddr 10.97.2.2 ip daddr 10.97.3.2 udp dport 8472 drop\n"
        f"ip saddr 10.97.3.2 ip daddr {SERVER} tcp dport 8132 drop\n}}\n}}"
    )


def list_nodes(lab: Lab) -> Json:
    """The nodes, one of them not ready."""
    items = []
    for name, roles in ROLES.items():
        labels = {"kubernetes.io/os": "linux"}
        labels |= {"node-role.kubernetes.io/control-plane": ""} if roles[0] != "worker" else {}
        addresses = [{"type": "InternalIP", "address": one} for one in lab[name].addresses]
        ready = {"type": "Ready", "status": "Unknown" if name == "old" else "True",
                 "message": "Kubelet stopped posting node status."}  # fmt: skip
        items.append({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"addresses": addresses, "conditions": [ready],
                       "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"}},
        })  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": items}


def play_by_files(lab: Lab, folder: Path, matrix: Path) -> tuple[list[Json], list[Json]]:
    """Carry the manifest and the pods by hand: give the objects, and the pods when all is over."""
    nodes = folder / "nodes.json"
    nodes.write_text(json.dumps(list_nodes(lab)))
    done = netprobe(
        "cluster", "manifest", "-m", str(matrix), "-i", str(nodes), "--start", "+18s",
        "--window", "12s", "--margin", "16s", "--image", "python:3",
        "--plan", str(folder / "plan.pyz"),
    )  # fmt: skip
    objects = list(yaml.safe_load_all(done.stdout))
    pods = [make_pod(objects[2], node) for node in list_nodes(lab)["items"]]
    running = [pod for pod in pods if pod["spec"]["nodeName"] != "old"]
    kubelets = Kubelets(folder, lambda node: lab[node].enter)
    bundle = objects[1]["binaryData"]["run.pyz"].encode()
    with ThreadPoolExecutor(len(ROLES)) as pool:
        list(pool.map(lambda pod: kubelets.run_pod(pod, bundle), running))
    return objects, running


def play_through_api(lab: Lab, folder: Path, matrix: Path) -> tuple[Api, Json]:
    """One command against an API server: give the server as it was left, and the report."""
    place = folder / "api"
    place.mkdir()
    kubelets = Kubelets(place, lambda node: lab[node].enter)
    api = Api(list_nodes(lab)["items"], kubelets.start_pod)
    with serving(api, place) as kubeconfig:
        done = netprobe(
            "cluster", "run", "-m", str(matrix), "--kubeconfig", str(kubeconfig), "--start", "+30s",
            "--window", "12s", "--margin", "16s", "--image", "python:3", "-o", "json",
            PATH=f"{KUBECTL.parent}:{os.environ['PATH']}",
        )  # fmt: skip
    kubelets.wait_for_pods()
    return api, json.loads(done.stdout)


NO_AGENT = status(500, "InternalError", 'Get "https://10.97.3.2:10250/containerLogs/x": No agent '
                  "available")  # fmt: skip


def diagnose_tunnel(lab: Lab, folder: Path) -> tuple[Api, Json]:
    """What the nodes dial, of which one cannot, and the API server does not reach that one: give
    the server as it was left, and the report."""
    place = folder / "tunnel"
    place.mkdir()
    kubelets = Kubelets(place, lambda node: lab[node].enter)
    api = Api(list_nodes(lab)["items"], kubelets.start_pod)
    api.mute["w2"] = NO_AGENT
    with serving(api, place) as kubeconfig:
        done = netprobe(
            "cluster", "diagnose", "konnectivity", "--server", f"{SERVER}:8132",
            "--kubeconfig", str(kubeconfig), "--start", "+25s", "--margin", "10s",
            "--image", "python:3", "-o", "json", ok=(1,),
            PATH=f"{KUBECTL.parent}:{os.environ['PATH']}",
        )  # fmt: skip
    kubelets.wait_for_pods()
    return api, json.loads(done.stdout)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Three nodes and one that is not ready, and a router that drops two flows."""
    folder = tmp_path_factory.mktemp("cluster")
    with Lab() as lab:
        build_nodes(lab)
        listening = lab["konnectivity"].socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.bind((SERVER, 8132))
        listening.listen(16)
        matrix = lab.write("matrix.yaml", MATRIX)
        inventory = lab.inventory(ROLES, without_agent=["old"])
        words = ("-m", str(matrix), "-i", str(inventory), "-o", "json")
        live = json.loads(netprobe("run", *words).stdout)
        objects, pods = play_by_files(lab, folder, matrix)
        api, told = play_through_api(lab, folder, matrix)
        with listening:
            tunnel = diagnose_tunnel(lab, folder)
        yield Played(folder, objects, pods, live, api, told, *tunnel)


def flows(document: Json, verdict: str) -> set[tuple[str, str, str, int]]:
    """The flows of a report that have a verdict."""
    return {
        (key[0], key[1], key[2], key[5])
        for key, one in rows_of(document).items()
        if one["verdict"] == verdict
    }


def test_the_verdicts_are_those_of_a_live_run(played: Played) -> None:
    """Exactly what the firewall drops is blocked, and all else passes, as in a live run; but the
    width of a path on which a probe failed is asked in a further round alone."""
    merged, live = played.merge(played.pods), rows_of(played.live)
    assert flows(merged, "blocked") == flows(played.live, "blocked") == DROPPED
    assert flows(merged, "pass")
    rows = {key: one for key, one in rows_of(merged).items() if "old" not in key}
    assert rows.keys() == {key for key in live if "old" not in key}
    other = {
        key for key, one in rows.items() if any(one[name] != live[key][name] for name in COMPARED)
    }
    assert {key[:3] for key in other} == {("path-mtu", "w1", "w2")}
    assert {rows[key]["reason"] for key in other} == {"not-asked"}


def test_one_command_says_the_same(played: Played) -> None:
    """From the list of nodes to the report, through kubectl and an API server, which keeps nothing
    of it; no call is about one node."""
    merged = rows_of(played.merge(played.pods))
    told = rows_of(played.told)
    assert flows(played.told, "blocked") == DROPPED
    assert flows(played.told, "pass") == flows(played.merge(played.pods), "pass")
    assert {key: [one[name] for name in COMPARED] for key, one in told.items()} == {
        key: [one[name] for name in COMPARED] for key, one in merged.items()
    }
    assert (played.api.spaces, len(played.api.deleted)) == ({}, 1)
    assert [pod["spec"]["nodeName"] for pod in next(iter(played.api.pods.values()))] == [
        "cp", "w1", "w2"
    ]  # fmt: skip
    assert len(played.api.calls) <= 12


def test_the_contrast_names_the_node_that_cannot_dial(played: Played) -> None:
    """It reports by the kubelet all the same; one question for logs is asked of each, and nothing
    is left."""
    nodes = {one["node"]: one for one in played.tunnel["nodes"]}
    assert {name: (one["dial"], one["logs"]) for name, one in nodes.items()} == {
        "cp": ("opens", "work"), "w1": ("opens", "work"), "w2": ("fails", "fail"),
        "old": ("unknown", "not-asked"),
    }  # fmt: skip
    assert [name for name, one in nodes.items() if one["missing"]] == ["old"]
    assert "No agent available" in nodes["w2"]["logs_words"]
    finding = played.tunnel["finding"]
    assert (finding["is_fault"], finding["nodes"]) == (True, ["w2"])
    assert "(TCP_FILTERED)" in finding["title"]
    assert "all that `logs` does not reach (1) are among them" in finding["because"]
    calls = played.tunnel_api.calls
    logs = [path for _, path in calls if path.endswith("/log")]
    assert len(logs) == played.tunnel["asked"] == 3
    assert len(calls) - len(logs) <= 12
    assert played.tunnel_api.spaces == {}


def test_a_node_that_is_not_ready_is_not_tested(played: Played) -> None:
    """With the cluster's own words, and the way that remains."""
    untested = [one for one in played.merge(played.pods)["results"] if one["source"] == "old"]
    assert {one["verdict"] for one in untested} == {"not-tested"}
    words = "old is not ready (Kubelet stopped posting node status): use ssh or a bundle there"
    assert all(words in one["because"] for one in untested)


def test_a_pod_that_is_lost_is_its_node(played: Played) -> None:
    """And nothing that the firewall lets through becomes blocked."""
    document = played.merge([one for one in played.pods if one["spec"]["nodeName"] != "w1"])
    assert flows(document, "blocked") <= DROPPED
    untested = [one for one in document["results"] if one["source"] == "w1"]
    assert {one["verdict"] for one in untested} == {"not-tested"}
    assert all("no pod of the run is on w1" in one["because"] for one in untested)


def test_what_the_objects_are(played: Played) -> None:
    """One namespace, one label, no token, and nothing left beside them."""
    run = played.objects[0]["metadata"]["labels"]["netprobe.run"]
    assert [one["kind"] for one in played.objects] == ["Namespace", "ConfigMap", "DaemonSet"]
    assert {one["metadata"]["labels"]["netprobe.run"] for one in played.objects} == {run}
    spaces = [one["metadata"].get("namespace") for one in played.objects]
    assert spaces == [None, f"netprobe-{run}", f"netprobe-{run}"]
    pod = played.objects[2]["spec"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["automountServiceAccountToken"]) == (True, False)
    assert "hostPID" not in pod
    assert played.merge(played.pods)["trust"] is not None

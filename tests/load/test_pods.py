"""What `kubectl get pods -A -o json` prints, and files that are something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from netprobe.errors import FileErrors
from netprobe.load.pods import read_pods
from netprobe.model.plan import Pod, PodPort

EXPECTED = "expected what `kubectl get pods -A -o json` prints"
# A mirror of a static pod, as the API server of a kubeadm cluster gives it.
ETCD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "etcd-m0",
        "namespace": "kube-system",
        "uid": "11111111-2222-4333-8444-555555555555",
        "annotations": {"kubernetes.io/config.hash": "0123456789abcdef0123456789abcdef",
                        "kubernetes.io/config.mirror": "0123456789abcdef0123456789abcdef"},
    },
    "spec": {
        "nodeName": "m0",
        "hostNetwork": True,
        "containers": [
            {"name": "etcd", "ports": [{"containerPort": 2379, "hostPort": 2379, "protocol": "TCP"},
                                       {"containerPort": 9978}]},
            {"name": "none"},
        ],
        "initContainers": [
            {"name": "setup", "ports": [{"containerPort": 1}]},
            {"name": "sidecar", "restartPolicy": "Always",
             "ports": [{"containerPort": 53, "protocol": "UDP"}]},
        ],
    },
    "status": {"phase": "Running", "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"},
                                                                     {"ip": "fd00::1"}]},
}  # fmt: skip


def _read(folder: Path, document: object) -> tuple[Pod, ...]:
    path = folder / "pods.json"
    path.write_text(json.dumps(document))
    return read_pods(str(path))


def test_a_static_pod(tmp_path: Path) -> None:
    """Both uids, node and addresses, ports of containers and sidecars; an init container ends."""
    (pod,) = _read(tmp_path, {"kind": "List", "items": [ETCD]})

    assert pod == Pod(
        "kube-system/etcd-m0",
        ("11111111-2222-4333-8444-555555555555", "0123456789abcdef0123456789abcdef"),
        "m0",
        ("10.0.0.1", "fd00::1"),
        True,
        True,
        (PodPort("tcp", 2379, "etcd"), PodPort("tcp", 9978, "etcd"), PodPort("udp", 53, "sidecar")),
    )
    assert _read(tmp_path, ETCD) == (pod,)


def test_pods_with_networks_of_their_own(tmp_path: Path) -> None:
    """Only their host ports are ports of the node; a pod without a node has none."""
    ports = [{"containerPort": 8080, "hostPort": 80}, {"containerPort": 9090}]
    item = {"metadata": {"name": "web"}, "spec": {"nodeName": "n0", "containers": [
        {"name": "web", "ports": ports}]}}  # fmt: skip
    waiting = {"metadata": {"name": "waits"}, "spec": {"containers": []}}
    (pod,) = _read(tmp_path, {"items": [item, waiting]})

    assert (pod.name, pod.host_network, pod.running) == ("default/web", False, False)
    assert pod.ports == (PodPort("tcp", 80, "web"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 30_000, ": this JSON is nested too deep"),
        ("9" * 5_000, ": this JSON is nested too deep, or has too long a number"),
        ("{\n oh", ":2:2: this is no JSON: Expecting property name enclosed in double quotes"),
        ("[1]", ": this JSON is no list of pods"),
        ('{"items": 7}', ": this JSON is no list of pods"),
        (
            '{"items": [{"kind": "Deployment"}]}',
            ': an item of the list is no pod: its kind is "Deployment", expected what',
        ),
        (
            '{"kind": "Deployment"}',
            ': an item of the list is no pod: its kind is "Deployment", expected what',
        ),
        ('{"items": [7]}', ": an item of the list is no pod: it lacks what every pod has"),
        ("{}", ": an item of the list is no pod: it lacks what every pod has"),
    ],
)
def test_files_that_are_none_of_pods(text: str, words: str, tmp_path: Path) -> None:
    """One line: what is wrong, where, and what was expected; exit 2."""
    path = tmp_path / "pods.json"
    path.write_text(text)
    with pytest.raises(FileErrors) as caught:
        read_pods(str(path))

    assert str(caught.value).startswith(f"{path}{words}")
    assert str(caught.value).endswith(EXPECTED)
    assert caught.value.exit_status == 2


def test_no_text_and_no_file(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and a name that leads nowhere."""
    path = tmp_path / "pods.json"
    path.write_bytes(b"\xff\xfe{}")
    for name in (path, tmp_path / "none"):
        with pytest.raises(FileErrors, match="expected what `kubectl"):
            read_pods(str(name))

"""What a run says that cannot begin, or is ended: one line each, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netprobe.cli.main import status_of
from tests.cli.command import COMMAND, environment, netprobe
from tests.cluster.api import Api, make_node, serving, status, write_kubeconfig
from tests.cluster.kubelets import KUBECTL
from tests.cluster.test_run import QUOTA_OF_PODS
from tests.patience import PATIENCE_S, wait_until
from tests.ports import free_port

pytestmark = pytest.mark.slow

# No packet is sent: a run that gets so far waits for an hour.
WORDS = ("--image", "x", "--start", "+1h", "--only", "api")
PATH = f"{KUBECTL.parent}:{os.environ['PATH']}"
MATRIX = """\
schema: netprobe.matrix/1
name: small
title: One port
roles: {control-plane: {common: control-plane}, worker: {common: worker}}
requirements: [{id: api, from: worker, to: control-plane, tcp: [6443], purpose: x}]
"""


@dataclass
class Place:
    """A cluster, and the folder from which it is asked."""

    api: Api
    folder: Path

    def ask(self, *words: str, path: str = PATH) -> subprocess.CompletedProcess[str]:
        """Run ``netprobe cluster WORDS``."""
        kubeconfig = str(self.folder / "kubeconfig")
        return netprobe("cluster", *words, cwd=self.folder, PATH=path, KUBECONFIG=kubeconfig)

    def run(self, *words: str, path: str = PATH) -> subprocess.CompletedProcess[str]:
        """Run ``netprobe cluster run``."""
        return self.ask("run", "-m", "./matrix.yaml", *WORDS, *words, path=path)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin a run (or these words), and come back when it has created everything."""
        words = words or ("run", "-m", "./matrix.yaml", *WORDS)
        variables = environment(PATH=PATH, KUBECONFIG=str(self.folder / "kubeconfig"))
        running = subprocess.Popen(
            [*COMMAND, "cluster", *words], cwd=self.folder,
            env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        wait_until(lambda: bool(self.api.pods) or running.poll() is not None, "the DaemonSet")
        return running


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Two nodes of a cluster."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    api = Api([make_node("cp", "192.0.2.1", "control-plane"), make_node("w", "192.0.2.2")])
    with serving(api, tmp_path):
        yield Place(api, tmp_path)


def forbidden(verb: str, what: str) -> dict[str, Any]:
    """The API's own words of a right that is missing."""
    words = f'{what} is forbidden: User "dev" cannot {verb} resource "{what}" in API group ""'
    return status(403, "Forbidden", words)


RIGHTS = "docs/cluster.md lists the rights that a run needs"
# What the API refuses, and what is said of it.
REFUSED = (
    ("GET", "version", status(401, "Unauthorized", "Unauthorized"),
     "cannot reach the cluster: You must be logged in to the server"),
    ("GET", "namespaces", forbidden("list", "namespaces"), RIGHTS),
    ("GET", "nodes", forbidden("list", "nodes"), 'User "dev" cannot list resource "nodes"'),
)  # fmt: skip


def test_what_the_api_refuses(place: Place) -> None:
    """The API's words and what helps, exit status 4."""
    for method, what, answer, words in REFUSED:
        place.api.refused = {(method, what): answer}
        done = place.run()
        assert (done.returncode, done.stdout) == (4, ""), done.stderr
        (said,) = done.stderr.splitlines()
        assert words in said
    assert {method for method, _ in place.api.calls} == {"GET"}


REFUSED_PODS = {
    'Error creating: pods "netprobe-" is forbidden: violates PodSecurity "restricted:latest": host '
    "namespaces (hostNetwork=true)": "the namespace needs the level privileged",
    QUOTA_OF_PODS: "the namespace needs a larger quota",
    'Error creating: pods "netprobe-" is forbidden: unable to validate against any security '
    "context constraint": "give the service account of the namespace an SCC",
    'Error creating: admission webhook "validate.kyverno.svc" denied the request: no host network':
    "ask for an exception from that policy",
}  # fmt: skip
WEBHOOK = status(400, "", 'admission webhook "validate.kyverno.svc-fail" denied the request: no')
QUOTA = status(403, "Forbidden", 'configmaps "netprobe" is forbidden: exceeded quota: small')
BROKEN = status(500, "InternalError", 'Internal error occurred: failed calling webhook "x": EOF')
LARGE = status(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
REFUSED_OBJECTS = (
    ("namespaces", forbidden("create", "namespaces"), RIGHTS),
    ("namespaces", WEBHOOK, "ask for an exception from that policy"),
    ("namespaces", BROKEN, 'failed calling webhook "x": EOF'),
    ("configmaps", QUOTA, "the namespace needs a larger quota, or none"),
    ("configmaps", LARGE, "cannot create ConfigMap netprobe: Request entity too large"),
    ("daemonsets", forbidden("create", "daemonsets"), RIGHTS),
    ("daemonsets", WEBHOOK, "cannot create DaemonSet netprobe: admission webhook"),
)


def test_what_the_cluster_refuses(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pod Security, quota, SCC and webhooks refuse pods, or an object: exit status 4, one line with
    the API's words and what helps, and nothing is left."""
    monkeypatch.setattr("netprobe.cluster.run.EARLY", ((0.0, 0.0), (0.0, 0.0)))
    monkeypatch.chdir(place.folder)
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("KUBECONFIG", str(place.folder / "kubeconfig"))
    cases: list[tuple[str, str, dict[tuple[str, str], dict[str, Any]]]] = [
        *((words, remedy, {}) for words, remedy in REFUSED_PODS.items()),
        *(
            (answer["message"], remedy, {("POST", what): answer})
            for what, answer, remedy in REFUSED_OBJECTS
        ),
    ]
    for words, remedy, refused in cases:
        place.api.makes_no_pod, place.api.refused = "" if refused else words, refused
        place.api.deleted.clear()
        assert status_of(["cluster", "run", "-m", "./matrix.yaml", *WORDS]) == 4
        out, err = capfd.readouterr()
        assert out == ""
        *before, said = err.splitlines()
        assert words in said
        assert remedy in said
        assert not [line for line in before if words in line or "Traceback" in line]
        # The namespace goes, where it was there already.
        assert place.api.spaces == {}
        assert bool(place.api.deleted) == (("POST", "namespaces") not in refused)


def test_what_cannot_begin(place: Place) -> None:
    """Nothing is created, whatever it is; and each is one line."""
    page = place.folder / "page"
    page.mkdir()
    (page / "kubectl").write_text("#!/bin/sh\necho '<html>log in</html>'\n")
    (page / "kubectl").chmod(0o755)
    dead = place.folder / "dead"
    dead.mkdir()
    gone = str(write_kubeconfig(dead, free_port()))
    cases: list[tuple[int, str, tuple[str, ...], str]] = [
        (2, "neither kubectl nor oc is on PATH", (), str(place.folder)),
        (4, "version: the answer is no object of the Kubernetes API", (), f"{page}:/bin"),
        (4, 'cannot reach the cluster: context "nope" does not exist', ("--context", "nope"), PATH),
        (4, "cannot reach the cluster: ", ("--kubeconfig", "/no/such/file"), PATH),
        (4, "cannot reach the cluster: The connection to the server", ("--kubeconfig", gone), PATH),
        (2, "--nodes gpu=yes: no node has that", ("--nodes", "gpu=yes"), PATH),
        (2, "--nodes a,,b: expected a label selector", ("--nodes", "a,,b"), PATH),
        (2, "give --image IMAGE", ("--image", ""), PATH),
        (2, "-n a: b: a namespace has at most 63", ("-n", "a: b"), PATH),
        (2, "--plan matrix.yaml: exists", ("--plan", "matrix.yaml"), PATH),
        (2, "no node has anything to do", ("--machine", "arm64"), PATH),
        (2, "--start 2020-01-01T00:00Z: that is over", ("--start", "2020-01-01T00:00Z"), PATH),
    ]
    for code, words, options, path in cases:
        done = place.run(*options, path=path)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert {method for method, _ in place.api.calls} == {"GET"}


def test_an_unknown_matrix_is_noticed_before_the_cluster_is_asked(place: Place) -> None:
    """Nothing at all is asked; of a plan neither."""
    for verb in ("run", "plan"):
        done = place.ask(verb, "-m", "nope", *(WORDS if verb == "run" else ()))
        assert (done.returncode, done.stdout) == (2, "")
        assert "nope" in done.stderr
    assert place.api.calls == []


def test_problems_of_nodes_name_the_command(place: Place) -> None:
    """And the node; no file is named that nobody knows."""
    place.api.nodes = [*place.api.nodes, make_node("bad", "192.0.2")]
    for done in (place.run(), place.ask("plan", "-m", "./matrix.yaml")):
        assert (done.returncode, done.stdout) == (2, "")
        assert "`kubectl get nodes -o json`: node bad: its InternalIP " in done.stderr
        assert "nodes.json" not in done.stderr


def test_a_diagnosis_that_cannot_begin(place: Place) -> None:
    """Without the agents' server, an image, or a number; nothing is created."""
    words = ("diagnose", "konnectivity")
    found = ("--server", "192.0.2.9:8132")
    for more, said in (
        (found, "give --image IMAGE"),
        (("--image", "x", *found, "--logs", "few"), "--logs few: expected a number of nodes, or"),
        (("--image", "x", "--logs", "5"), "--server: give where konnectivity-agent dials (cannot"),
        (("--image", "x", "--server", "no.such.name.invalid:8132"), "is not found from here"),
        (("--image", "x", "--server", "192.0.2.9:8132:1"), "--server 192.0.2.9:8132:1: expected"),
        (("--image", "x", *found, "--machine", "arm64"), "no node can dial"),
    ):
        done = place.ask(*words, *more)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
    assert {method for method, _ in place.api.calls} == {"GET"}


def test_where_agents_dial_is_asked_of_the_cluster(place: Place) -> None:
    """Its konnectivity-agent says it, and the name is looked up here."""
    words = ["--proxy-server-host=no.such.name.invalid", "--proxy-server-port=8132"]
    container = {"name": "konnectivity-agent", "args": words}
    place.api.made["kube-system"] = {"konnectivity-agent": {
        "metadata": {"name": "konnectivity-agent", "namespace": "kube-system"},
        "spec": {"template": {"spec": {
            "containers": [container], "nodeSelector": {"kubernetes.io/os": "linux"},
        }}},
    }}  # fmt: skip
    done = place.ask("diagnose", "konnectivity", "--image", "x")
    assert done.returncode == 2
    said, refused = done.stderr.splitlines()
    assert said == "netprobe: konnectivity-agent dials no.such.name.invalid:8132"
    assert "no.such.name.invalid is not found from here" in refused


def test_versions_that_are_too_far_apart(place: Place) -> None:
    """An old kubectl is refused; a new one is a note, and the run goes on."""
    place.api.minor = "99"
    done = place.run()
    assert done.returncode == 2
    assert "and the cluster 1.99: a client more than 2 minor versions older is not" in done.stderr
    place.api.minor = "20"
    place.api.refused = {("GET", "nodes"): forbidden("list", "nodes")}
    done = place.run()
    assert done.returncode == 4
    assert "and the cluster 1.20: they are more than 2 minor versions apart" in done.stderr


def test_ctrl_c(place: Place) -> None:
    """The report says that nothing was tested, the namespace goes, and the status is 130. Nothing
    would have been rehearsed, which is said."""
    running = place.start("run", "-m", "./matrix.yaml", *WORDS, "--rehearse")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, err
    assert out.startswith("NOTHING WAS TESTED")
    assert err.count("--rehearse is not possible here") == 1
    assert place.api.spaces == {}
    assert "is deleted, and all that was in it" in err


def test_ctrl_c_of_a_diagnosis(place: Place) -> None:
    """The table says that nothing has come, and the namespace goes."""
    words = ("--server", "192.0.2.9:8132", "--image", "x", "--start", "+1h")
    running = place.start("diagnose", "konnectivity", *words)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, err
    assert "UNSURE: no node tells whether it can open tcp 8132 to 192.0.2.9" in out
    assert "logs: asked of 0 of 2" in out
    assert place.api.spaces == {}


def test_kill_and_clean(place: Place) -> None:
    """What a killed run has left keeps the next one from starting, until it is removed."""
    running = place.start()
    running.kill()
    running.communicate(timeout=PATIENCE_S)
    (name,) = place.api.spaces
    place.api.spaces["other"] = {"metadata": {"name": "other"}}
    done = place.run()
    assert (done.returncode, done.stdout) == (4, "")
    assert f"another run is there: {name}, since 2026-11-28T10:00:00Z" in done.stderr
    assert "no run is in namespace other" in place.ask("clean", "-n", "other").stderr
    cleaned = place.ask("clean")
    assert (cleaned.returncode, cleaned.stdout) == (0, "")
    assert f"{name} (since 2026-11-28T10:00:00Z) is deleted" in cleaned.stderr
    assert list(place.api.spaces) == ["other"]
    assert "no run is in the cluster" in place.ask("clean").stderr


def test_kubectl_finds_its_plugin(place: Place) -> None:
    """`kubectl netprobe` is `netprobe cluster`."""
    variables = environment(PATH=PATH, KUBECONFIG=str(place.folder / "kubeconfig"))
    done = subprocess.run(
        [KUBECTL, "netprobe", "clean"], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stderr == "netprobe: no run is in the cluster\n"


def test_a_manifest_asks_nothing(place: Place) -> None:
    """Not even where kubectl and a cluster are at hand: it is made of the file of the nodes."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(place.api.nodes)}
    (place.folder / "nodes.json").write_text(json.dumps(items))
    words = ("-m", "./matrix.yaml", "-i", "nodes.json", *WORDS, "--plan", "plan.pyz")
    done = place.ask("manifest", *words)
    assert done.returncode == 0, done.stderr
    assert "kind: DaemonSet" in done.stdout
    assert place.api.calls == []


def test_a_plan_touches_nothing(place: Place) -> None:
    """It is that of the cluster's nodes, says which of them take no part, and promises nothing that
    a run there cannot do."""
    place.api.nodes = [
        *place.api.nodes,
        make_node("win", "192.0.2.3", info={"operatingSystem": "windows"}),
        make_node("arm", "192.0.2.4", info={"architecture": "arm64"}),
        make_node("shut", "192.0.2.5", unschedulable=True),
        make_node("down", "192.0.2.6", ready={"status": "Unknown", "message": "no news"}),
    ]
    done = place.ask("plan", "-m", "./matrix.yaml", "--machine", "amd64", "--rehearse")
    assert done.returncode == 0, done.stderr
    assert "5 flows" in done.stdout
    assert "rehearse" not in done.stdout
    way = "use ssh or a bundle there"
    first, *notes = [line for line in done.stderr.splitlines() if "note" in line]
    assert "--rehearse is not possible here" in first
    assert notes == [
        "netprobe: note: win runs windows, and netprobe's agent needs Linux",
        f"netprobe: note: arm is arm64, for which there is no image: {way}",
        f"netprobe: note: down is not ready (no news): {way}",
    ]
    assert {method for method, _ in place.api.calls} == {"GET"}

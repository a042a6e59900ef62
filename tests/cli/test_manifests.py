"""``--manifest`` and ``--network`` of every verb that takes them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from netprobe.cli.main import status_of
from tests.cli.command import COMMAND, environment
from tests.patience import PATIENCE_S
from tests.ports import free_ports

# They run whole commands.
pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[1] / "load" / "manifest" / "samples"
INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  worker-0: {address: 10.0.0.20, roles: [worker], vantage: local}
"""
AGENT = "hosted-cluster-agent.yaml"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with an inventory and the samples."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAMPLES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)


def test_plan_prints_what_was_taken_from_where(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each: the place, the path, the value, and what it became."""
    assert status_of(["plan", "-m", "hypershift-hcp", "--manifest", AGENT]) == 0

    lines = capsys.readouterr().out.splitlines()
    begin = lines.index("taken from manifests:")
    assert lines[begin + 1] == f"  {AGENT}:16:11: spec.platform.type: Agent -> platform=agent"
    assert (
        f"  {AGENT}:38:18: spec.services[1].servicePublishingStrategy.nodePort.address: 10.1.0.8 "
        "-> host hc1-hcp-konnectivity (hcp-konnectivity)"
    ) in lines
    assert [one for one in lines if "hc1-hcp-konnectivity" in one and "30091" in one]


def test_plan_in_json_has_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    """``taken`` is a list of places, paths, values and what they gave."""
    words = ["plan", "-m", "hypershift-hcp", "--manifest", AGENT, "--count", "-o", "json"]
    assert status_of(words) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["taken"][0] == {
        "place": f"{AGENT}:16:11",
        "path": "spec.platform.type",
        "value": "Agent",
        "gives": "platform=agent",
    }
    assert document["matrices"][0]["settings"]["konnectivity-port"] == 30091


def test_nothing_taken_is_nothing_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without manifests a plan is as it was."""
    Path("inventory.yaml").write_text(
        f"{INVENTORY}  hcp: {{address: 10.1.0.7, roles: [hcp], vantage: none}}\n"
    )
    assert status_of(["plan", "-m", "hypershift-hcp"]) == 0
    assert "taken" not in capsys.readouterr().out


@pytest.mark.parametrize("verb", [["run"], ["plan"], ["check"], ["check", "--hosts"]])
def test_a_bad_manifest_stops_every_verb(
    verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 before any agent starts, with file, line and column."""
    words = ["-m", "okd-hcp", "--manifest", "okd-document.yaml", "--network", "lan=100.99.0.0/20"]
    assert status_of([*verb, *words]) == 2

    told = capsys.readouterr()
    assert told.err.startswith("okd-document.yaml:20:31: internalJoinSubnet 100.99.0.0/16")
    assert told.out == ""


def test_check_of_a_manifest_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """No matrix is needed; a FILE that is a manifest is known as one; --set version counts."""
    Path("inventory.yaml").unlink()
    assert status_of(["check", "okd-document.yaml", "deckhouse.yaml", "kubean-vars.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "okd-document.yaml: HostedCluster hc1, no problems",
        "deckhouse.yaml: ClusterConfiguration, InitConfiguration, StaticClusterConfiguration, "
        "ModuleConfig cni-cilium, ModuleConfig openvpn, ModuleConfig virtualization, "
        "ModuleConfig metallb, ModuleConfig prometheus, IngressNginxController main, no problems",
    ]
    assert status_of(["check", "--manifest", "okd-document.yaml", "--set", "version=4.19"]) == 2
    assert "Your hosted cluster version must be OKD 4.20 or later." in capsys.readouterr().err


def test_check_holds_it_against_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    """With an inventory, hosts inside a subnet are found, also without a matrix."""
    Path("inventory.yaml").write_text(INVENTORY.replace("10.0.0.20", "100.69.0.20"))
    assert status_of(["check", "--manifest", "okd-document.yaml"]) == 2
    assert "overlaps with worker-0 (100.69.0.20) of the inventory" in capsys.readouterr().err


def test_check_holds_manifests_against_files(capsys: pytest.CaptureFixture[str]) -> None:
    """An inventory among FILES counts as one of -i does; without it nothing overlaps."""
    Path("other.yaml").write_text(INVENTORY.replace("10.0.0.20", "100.69.0.20"))
    assert status_of(["check", "okd-document.yaml", "other.yaml"]) == 2
    assert "overlaps with worker-0 (100.69.0.20) of the inventory" in capsys.readouterr().err
    assert status_of(["check", "okd-document.yaml"]) == 0


def test_check_without_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    """A value that no bundled matrix can know is a note; words of the matrices are none."""
    assert status_of(["check", AGENT]) == 0
    assert "no bundled matrix" not in capsys.readouterr().out
    Path("hc.yaml").write_text(Path(AGENT).read_text().replace("type: Agent", "type: Agnet"))
    assert status_of(["check", "hc.yaml"]) == 0
    words = 'the value "agnet" of setting platform, did you mean "agent"?'
    assert f"note: hc.yaml:16:11: no bundled matrix knows {words}" in capsys.readouterr().out


def test_each_sentence_of_check_stands_once(capsys: pytest.CaptureFixture[str]) -> None:
    """What the files say alone and together is not told twice; warnings are called so."""
    words = ["-m", "okd-hcp", "--manifest", "hosted-cluster-proxy.yaml"]
    assert status_of(["check", *words]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines))
    assert [one for one in lines if one.startswith("warning: hosted-cluster-proxy.yaml:69:15")]
    assert [one for one in lines if one.startswith("note: hosted-cluster-proxy.yaml:45:9")]


def test_a_request_before_any_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The rules for a plan know the addresses and ports of manifests."""
    words = ["request", "--from-plan", "-m", "hypershift-hcp", "--manifest", AGENT, "-o", "csv"]
    assert status_of(words) == 0
    assert "30091" in capsys.readouterr().out

    assert status_of(["request", "--manifest", AGENT, "run.jsonl"]) == 2
    assert "--manifest: only for --from-plan" in capsys.readouterr().err


def test_diagnose_knows_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    """Host, port and publishing of Konnectivity come from the HostedCluster, and are told."""
    port = str(free_ports("127.0.0.1", socket.SOCK_STREAM, 1))
    text = Path(AGENT).read_text().replace("10.1.0.8", "127.0.0.1").replace("30091", port)
    Path("hc.yaml").write_text(text)
    # 3 where the machine is too busy to start an agent in time.
    assert status_of(["diagnose", "konnectivity", "--manifest", "hc.yaml", "-o", "json"]) in (1, 3)

    told = capsys.readouterr()
    assert f"hc.yaml:38:18: --server 127.0.0.1:{port} --publishing nodeport" in told.err
    server = json.loads(told.out)["server"]
    assert (server["host"], server["port"]) == ("127.0.0.1", int(port))
    assert server["publishing"] == "nodeport"


def test_diagnose_goes_through_the_clusters_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    """The workers of the inventory have the proxy of the manifest; no page has its password."""
    place = f"127.0.0.1:{free_ports('127.0.0.1', socket.SOCK_STREAM, 1)}"
    text = Path("hosted-cluster-proxy.yaml").read_text().replace("proxy.example.org:3129", place)
    Path("hc.yaml").write_text(text)
    words = ["diagnose", "konnectivity", "--manifest", "hc.yaml", "-i", "inventory.yaml"]
    assert status_of([*words, "-o", "json"]) in (1, 3)

    told = capsys.readouterr()
    (worker,) = json.loads(told.out)["workers"]
    assert worker["via"] == f"proxy http://***@{place} (https_proxy of the inventory)"
    assert "secret" not in told.out + told.err


def agent_manifest(port: str) -> str:
    """The DaemonSet of a hosted cluster whose agents dial this port of 127.0.0.1."""
    arguments = ["--logtostderr=true", "--proxy-server-host=127.0.0.1", "--proxy-server-port", port]
    containers = [{"name": "konnectivity-agent", "args": arguments}]
    name = {"name": "konnectivity-agent", "namespace": "kube-system"}
    spec = {"template": {"spec": {"containers": containers}}}
    whole = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": name, "spec": spec}
    return json.dumps(whole, indent=1)


def diagnose(given: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the verb with nothing but its standard input and the environment."""
    words = [*COMMAND, "diagnose", "konnectivity", "-o", "json"]
    return subprocess.run(
        words, env=environment(HOME="/nonexistent", **variables), input=given,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def free_node_port() -> str:
    """A port that nobody listens on, of those that Services get."""
    return next(str(port) for port in range(30000, 32768) if is_free(port))


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) != 0


def test_diagnose_reads_a_pipe() -> None:
    """With nothing else: what `oc get hostedcluster NAME -o yaml` prints."""
    port = free_node_port()
    text = Path(AGENT).read_text().replace("10.1.0.8", "127.0.0.1").replace("30091", port)
    done = diagnose(text)

    # 3 where the machine is too busy to start an agent in time.
    assert done.returncode in (1, 3), done.stderr
    told = f"netprobe: /dev/stdin:38:18: --server 127.0.0.1:{port} --publishing nodeport\n"
    assert told in done.stderr
    assert json.loads(done.stdout)["server"]["port"] == int(port)


def test_diagnose_asks_the_cluster_of_the_kubeconfig(tmp_path: Path) -> None:
    """Where there is one, and oc or kubectl: both commands are told; nothing else is asked."""
    port = free_node_port()
    (tmp_path / "agents.json").write_text(agent_manifest(port))
    program = tmp_path / "kubectl"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/asked\n'
        f'case "$*" in *daemonset*) cat {tmp_path}/agents.json;; *) exit 1;; esac\n'
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    without = diagnose("", PATH=path)
    assert (without.returncode, (tmp_path / "asked").exists()) == (2, False)

    (tmp_path / "kubeconfig").touch()
    done = diagnose("", PATH=path, KUBECONFIG=str(tmp_path / "kubeconfig"))

    assert done.returncode in (1, 3), done.stderr
    command = "`kubectl -n kube-system get daemonset konnectivity-agent -o yaml`"
    assert done.stderr.startswith(f"netprobe: {command}:16:8: ")
    assert f"--server 127.0.0.1:{port} --publishing nodeport" in done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split(" --request")[0] for line in asked] == [
        "-n kube-system get daemonset konnectivity-agent -o yaml",
        "get hostedcluster --all-namespaces -o yaml",
    ]


def test_diagnose_asks_which_of_several_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is named with its place; nothing is guessed, and no publishing is."""
    both = [agent_manifest("30091"), agent_manifest("6443")]
    Path("both.yaml").write_text("---\n".join(f"{one}\n" for one in both))
    assert status_of(["diagnose", "konnectivity", "--manifest", "both.yaml"]) == 2
    told = capsys.readouterr().err
    assert "--server and --publishing: which of these 2? Give both:\n" in told
    name = "DaemonSet konnectivity-agent, both.yaml"
    assert f"  127.0.0.1:30091 (nodeport): {name}:16:8\n" in told
    assert f"  127.0.0.1:6443: {name}:42:8\n" in told

    Path("odd.yaml").write_text(both[1])
    assert status_of(["diagnose", "konnectivity", "--manifest", "odd.yaml"]) == 2
    told = capsys.readouterr().err
    assert "--server 127.0.0.1:6443\n" in told
    assert "--publishing: route, nodeport or loadbalancer? Give it; the HostedCluster says" in told


def test_diagnose_asks_for_the_host_that_a_cluster_does_not_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the command that prints it; how the server is published is known by then."""
    cluster = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": "hc.1", "namespace": "clusters"},
    }
    for way, command in (
        ("Route", "get route konnectivity-server -o 'jsonpath={.spec.host}'"),
        ("LoadBalancer", "get service konnectivity-server -o 'jsonpath={.status."),
    ):
        service = {"service": "Konnectivity", "servicePublishingStrategy": {"type": way}}
        Path("hc.json").write_text(json.dumps({**cluster, "spec": {"services": [service]}}))
        assert status_of(["diagnose", "konnectivity", "--manifest", "hc.json"]) == 2
        told = capsys.readouterr().err
        assert re.search(rf"hc.json:1:\d+: --publishing {way.lower()}\n", told)
        assert "--server: HostedCluster hc.1 names no host; give it, or what says it:\n" in told
        assert f"  on the management cluster: oc -n clusters-hc-1 {command}" in told
        assert "get daemonset konnectivity-agent -o yaml | netprobe diagnose konn" in told
    Path("agent.json").write_text(agent_manifest("6443"))
    files = ("--manifest", "hc.json", "--manifest", "agent.json")
    assert status_of(["diagnose", "konnectivity", *files]) == 2
    assert "agent.json:16:8: --server 127.0.0.1:6443\n" in capsys.readouterr().err


def test_diagnose_without_a_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to give: options, or what a command prints through a pipe."""
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    piped = "oc -n NAMESPACE get hostedcluster NAME -o yaml | netprobe diagnose konnectivity"
    for words in (["--publishing", "route"], ["--manifest", "okd-document.yaml"]):
        assert status_of(["diagnose", "konnectivity", *words]) == 2
        told = capsys.readouterr().err
        assert f"--server{' and --publishing' if words[0] == '--manifest' else ''}: give" in told
        assert piped in told
        assert "get daemonset konnectivity-agent -o yaml | netprobe diagnose konn" in told

"""What is printed for a cluster, which nodes can take part, and what is refused."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from netprobe.cluster.manifest import MOST_BYTES, ManifestOf, write_manifest
from netprobe.cluster.nodes import close_hosts
from netprobe.errors import RequestError
from netprobe.model.inventory import NodeState, Vantage
from tests.batch.world import A, B, C, plan_of
from tests.cli.command import netprobe

ROOT = Path(__file__).parents[2]
NODES = ROOT / "tests" / "load" / "nodes" / "kubeadm.json"
WEB = ("web", "tcp", ((80, 80),))
IMAGE = 'x:1"\n'
FINE = NodeState("linux", "amd64")
WORDS = ("cluster", "manifest", "-m", "kubeadm", "-i", str(NODES), "--only", "api")


def test_why_a_host_can_have_no_pod() -> None:
    """Each reason names the host and the way that remains; who cannot start anyway has none."""
    cases: dict[NodeState | None, str | None] = {
        None: "a is no node of the cluster, or has not joined it yet: use ssh or a bundle there",
        replace(FINE, unready="no kubelet has reported"): "a is not ready (no kubelet has "
        "reported): use ssh or a bundle there",
        replace(FINE, machine="arm64"): "a is arm64, for which there is no image: use ssh or a "
        "bundle there",
        FINE: None,
        # A DaemonSet's pods start there.
        replace(FINE, is_cordoned=True): None,
    }
    for node, reason in cases.items():
        one = replace(A, node=node)
        outside = replace(B, vantage=Vantage("none"))
        shut = replace(C, node=FINE, closed="c runs windows, and netprobe's agent needs Linux")
        plan = close_hosts(plan_of(WEB, hosts=(one, outside, shut)), ["amd64"])
        found = {name: host.closed for name, host in plan.hosts().items()}
        assert found == {"a": reason, "b": None, "c": shut.closed}
        ends = {host.name: host for host, _ in plan.blocks[0].destinations}
        assert ends["a"].closed == reason


def test_objects_and_plan(tmp_path: Path) -> None:
    """The ConfigMap has the bundle without the plan; the plan is a file for its owner alone."""
    plan = tmp_path / "plan.pyz"
    done = netprobe(*WORDS, "--start", "+1h", "--image", IMAGE, "--plan", str(plan), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    space, config, daemons = yaml.safe_load_all(done.stdout)
    run = space["metadata"]["labels"]["netprobe.run"]
    assert space["metadata"]["name"] == f"netprobe-{run}"
    bundle = b64decode(config["binaryData"]["run.pyz"])
    assert b"__main__.py" in bundle
    assert b"plan" not in bundle[-400:]
    assert plan.stat().st_mode & 0o77 == 0
    pod = daemons["spec"]["template"]["spec"]
    assert {one["image"] for one in (*pod["initContainers"], *pod["containers"])} == {IMAGE}
    containers = [*pod["initContainers"], *pod["containers"]]
    assert len(containers) == 3
    # The kernel starts no program with a file capability that the container may not have.
    given = re.search(r"setcap (\S+)=ep", (ROOT / "Dockerfile").read_text())
    assert given is not None
    wanted = {name.removeprefix("cap_").upper() for name in given[1].split(",")}
    for one in containers:
        assert {*one["securityContext"]["capabilities"]["add"]} == wanted
    assert f"kubectl delete namespace netprobe-{run}" in done.stderr
    (tmp_path / "pods.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": []})
    )
    merged = netprobe("merge", str(plan), "pods.json", cwd=tmp_path)
    assert merged.returncode == 2
    assert f"has no pod of run {run}" in merged.stderr


def test_refusals(tmp_path: Path) -> None:
    """One line each, exit status 2, and nothing is written."""
    plan, image, start = tmp_path / "plan.pyz", ("--image", "x"), ("--start", "+1h")
    for words, said in (
        ((*image, *start), "give --plan FILE"),
        (("--plan", str(plan), *start), "give --image IMAGE"),
        (("--plan", str(plan), *image), "give --start TIME"),
        (("--plan", str(NODES), *image, *start), "exists; choose another name"),
    ):
        done = netprobe(*WORDS, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert not plan.exists()
    with pytest.raises(RequestError, match="a ConfigMap holds 1,048,576: choose a part"):
        write_manifest(ManifestOf("0" * 16, 900, b"x" * (MOST_BYTES + 1), "x"))

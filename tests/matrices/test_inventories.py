"""One inventory fits a platform with all its layers: what tools call hosts means the roles."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import yaml

from netprobe import pipeline
from netprobe.audit.registry import registries
from netprobe.load.request import load_request
from netprobe.plan.select import Selection
from tests.matrices.source import LAYERS, PLATFORMS, read

# Groups of the tools that install platforms: of the control plane, of workers, of all.
TOOLS = {
    "kubespray": ("kube_control_plane", "kube_node", "k8s_cluster"),
    "k3s-ansible": ("server", "agent", "k3s_cluster"),
    "rke2-ansible": ("rke2_servers", "rke2_agents", "rke2_cluster"),
    "by hand": ("masters", "workers", "nodes"),
    "k0sctl": ("controller", "worker", "cluster"),
    "openshift": ("master", "compute", "node"),
    "harvester": ("management", "compute", "cluster"),
}
Flow = tuple[str, ...]
FILE = "inventory.yaml"


def flows_of(folder: Path, matrices: tuple[str, ...], roles: tuple[list[str], ...]) -> set[Flow]:
    """The flows between two hosts of the control plane and two workers with these words."""
    first, second = roles
    words = {"cp-0": first, "cp-1": first, "worker-0": second, "worker-1": second}
    hosts = {
        name: {"address": f"10.0.0.{number}", "roles": own}
        for number, (name, own) in enumerate(words.items(), start=1)
    }
    path = folder / FILE
    path.write_text(yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts}))
    plan = pipeline.make_plan(matrices, [str(path)], (), Selection())
    return {
        (block.requirement.id, source.name, destination.name)
        for block in plan.blocks
        for source, (destination, _) in product(block.sources, block.destinations)
    }


def own_roles(name: str) -> tuple[list[str], list[str]]:
    """A matrix's own names of control plane and worker."""
    parts = {body["common"]: role for role, body in read(name)["roles"].items() if "common" in body}
    return [parts["control-plane"]], [parts["worker"]]


@pytest.mark.slow
def test_groups_of_tools_are_the_roles(tmp_path: Path) -> None:
    """With the words of any tool the plan is that of the matrix's own words."""
    for name in (*PLATFORMS, *LAYERS):
        expected = flows_of(tmp_path, (name,), own_roles(name))
        assert expected or name in ("openshift-load-balancer",), name
        for tool, (control, worker, everybody) in TOOLS.items():
            found = flows_of(tmp_path, (name,), ([control, everybody], [worker, everybody]))
            assert found == expected, (name, tool)


@pytest.mark.slow
def test_controllers_of_k0s_are_no_nodes_for_a_layer(tmp_path: Path) -> None:
    """With the words of any tool: rows of nodes are between workers, others reach controllers.

    Only a host that is called ``node`` itself is one.
    """
    for control, worker, everybody in TOOLS.values():
        all_hosts = "nodes" if everybody == "node" else everybody
        roles = ([control, all_hosts], [worker, all_hosts])
        for layer in ("cni-cilium", "cni-calico"):
            found = flows_of(tmp_path, ("k0s", layer), roles)
            of_layer = found - flows_of(tmp_path, ("k0s",), roles)
            ends = {host for row, *both in of_layer if row not in ("api", "etcd") for host in both}
            assert ends == {"worker-0", "worker-1"}, (layer, control)
            assert ("api", "worker-0", "cp-1") in found
            chosen, inventory, _ = load_request(["k0s", layer], [str(tmp_path / FILE)], ())
            audited = registries(chosen, inventory)
            assert [name for name, one in audited.items() if "node" in one.roles] == sorted(ends)

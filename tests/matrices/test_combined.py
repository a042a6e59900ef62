"""What a plan notes of bundled matrices that are chosen together, or of one that lacks a part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from netprobe import pipeline
from netprobe.load.matrix.file import load_matrices
from netprobe.model.plan import PATH_MTU, Plan
from netprobe.plan.select import Selection
from tests.plan.test_merge import FlowKey, keys

HOSTS = {"cp-0": "control-plane", "worker-0": "worker"}
# Matrices, settings, words of each note that must come.
NOTES: list[tuple[str, str, list[str]]] = [
    ("kubeadm", "", ["kubeadm leaves the cni to another matrix, and no chosen one"]),
    ("rke2", "cni=none", ["rke2 leaves the cni to another matrix (setting cni), and no"]),
    ("kubeadm cni-cilium", "", []),
    ("kubeadm cni-calico", "api-port=443", []),
    (
        *("kubeadm cni-calico", "kubeadm:api-port=443"),
        ["kubeadm says api-port 443 (setting api-port), and cni-calico says api-port 6443"],
    ),
    ("kubeadm cni-cilium talos", "talos:cni=none", []),
    (
        *("k3s cni-cilium", ""),
        ["k3s says cni flannel (setting flannel-backend), and cni-cilium says cni cilium"],
    ),
    ("k3s cni-cilium", "k3s:flannel-backend=none", []),
    (
        *("openshift-upi cni-calico", ""),
        [
            "openshift-upi:network=third-party leaves it to the other",
            "(geneve) on udp 6081 and cni-calico (ipip) on ipproto/4 are geneve and ipip",
        ],
    ),
    ("openshift-upi cni-calico", "network=third-party", []),
    (
        *("openshift-upi cni-cilium", "network=third-party"),
        ["needs tcp 9878-9879, 9890-9891, 9893, 9901 of cp-0, worker-0, which cni-cilium: local-"],
    ),
    ("openshift-ipi cni-calico", "openshift-ipi:network=third-party", []),
    (
        "rke2 cni-calico",
        "rke2:cni=calico",
        ["rke2 (calico-vxlan) on udp 4789 and cni-calico (ipip) on ipproto/4"],
    ),
    ("rke2 cni-calico", "rke2:cni=calico cni-calico:ipip=false cni-calico:vxlan=true", []),
    ("k0s cni-cilium", "k0s:cni=custom", ["k0s are no nodes: rows of cni-cilium between nodes"]),
    (
        *("kubeadm cni-cilium talos", ""),
        ["cni cilium, and talos says cni flannel", "udp 8472 and talos (vxlan-4789) on udp 4789"],
    ),
]


@pytest.mark.slow
def test_matrices_that_go_together_are_not_noted(tmp_path: Path) -> None:
    """Nor is any contradiction, or any network without rows, passed over."""
    hosts = {
        name: {"address": f"10.0.0.{number}", "roles": [role]}
        for number, (name, role) in enumerate(HOSTS.items(), start=1)
    }
    path = tmp_path / "inventory.yaml"
    path.write_text(yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts}))
    for matrices, settings, words in NOTES:
        plan = pipeline.make_plan(matrices.split(), [str(path)], settings.split(), Selection())
        assert len(plan.notes) == len(words), (matrices, settings, plan.notes)
        for note, part in zip(plan.notes, words, strict=True):
            assert part in note, (matrices, settings)


# Platforms with one layer and with two, and all names of a row that several of them have.
LAYERED: list[tuple[str, str, list[str]]] = [
    ("kubeadm cni-calico", "", ["cni-calico/api", "kubeadm/api"]),
    ("kubeadm cni-cilium talos", "cni=cilium", ["cni-cilium/vxlan", "talos/vxlan-8472"]),
    ("openshift-upi openshift-load-balancer cni-calico", "network=third-party", []),
]
MORE_HOSTS = {**HOSTS, "api": "api-lb", "apps": "ingress-lb"}


def planned(folder: Path, names: list[str], settings: str) -> Plan:
    """The plan of these matrices, of the hosts and settings that they know."""
    words = {word for one in load_matrices(names) for word in one.role_words()}
    hosts = {
        name: {"address": f"10.0.0.{number}", "roles": [role]}
        for number, (name, role) in enumerate(MORE_HOSTS.items(), start=1)
        if role in words
    }
    path = folder / "inventory.yaml"
    path.write_text(yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts}))
    known = {setting for one in load_matrices(names) for setting in one.settings}
    sets = [one for one in settings.split() if one.partition("=")[0] in known]
    return pipeline.make_plan(names, [str(path)], sets, Selection())


def count_flows(plan: Plan) -> Counter[FlowKey]:
    """How often each flow stands there; the path MTU looks like an echo request of its own."""
    flows = (flow for flow in plan.flows() if flow.block.requirement.id != PATH_MTU)
    return Counter(key for flow in flows for key in keys(flow))


@pytest.mark.slow
def test_layers_have_the_flows_of_all_and_none_twice(tmp_path: Path) -> None:
    """What each matrix demands alone, in one plan, and not more often than one of them does."""
    for matrices, settings, alike in LAYERED:
        names = matrices.split()
        alone = [count_flows(planned(tmp_path, [name], settings)) for name in names]
        made = planned(tmp_path, names, settings)
        together = count_flows(made)
        most = Counter({key: max(one[key] for one in alone) for one in alone for key in one})
        assert together == most, matrices
        assert sum(together.values()) < sum(sum(one.values()) for one in alone) or not alike

        rows = [["/".join(name) for name in flow.block.names_of_rows] for flow in made.flows()]
        assert alike in rows or not alike, matrices

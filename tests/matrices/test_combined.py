"""What a plan notes of bundled matrices that are chosen together, or of one that lacks a part."""

from __future__ import annotations

from pathlib import Path

import yaml

from netprobe import pipeline
from netprobe.plan.select import Selection

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

"""Where a document says two things, or less than is needed, the results say both readings."""

from __future__ import annotations

import re

from tests.matrices.source import requirements

# Matrix -> rows: words that a warning of each of these rows must have.
TRAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "rke2": {
        "flannel-vxlan": ("8472", "4789"),
        "kubelet": ("metrics server", "always"),
        "node-ports": ("TCP alone", "UDP"),
        "cilium-icmp": ("0, 8", "ICMP types"),
    },
    "k3s": {"api": ("agents", "all nodes"), "kubelet": ("inbound", "loopback")},
    "kubeadm": {"node-ports-udp": ("later editions", "TCP alone")},
    "openshift-upi": {
        "machine-config-server": ("all machines", "control plane"),
        "ntp": ("all machines", "external"),
        "vxlan openshift-sdn": ("earlier editions", "later ones"),
    },
    "openshift-load-balancer": {
        "api-back api-back-bootstrap": ("rise 3", "fall 2"),
        "https-back http-back": ("1936", "earlier"),
        "https-back-control-plane http-back-control-plane": ("1936", "earlier"),
    },
    "openshift-ipi": {
        "dhcp dhcp-answer": ("broadcasts", "not routed", "UDP"),
        "tftp ntp": ("no protocol", "UDP"),
        "rhcos-image inspector inspector-proxy media media-tls": ("9999 only", "TCP"),
        "ironic ironic-proxy image-cache image-cache-tls": ("9999 only", "TCP"),
        "media": ("without TLS", "always"),
        "media-tls": ("with TLS", "any virtual media"),
        "inspector": ("lacks 6443", "openshift-upi"),
        "vsphere-vxlan vsphere-openshift-sdn": ("earlier editions", "later ones"),
    },
    "cni-cilium": {
        "etcd": ("workers", "API servers"),
        "hubble hubble-relay mutual-authentication": ("available on each node", "firewall"),
        "agent-metrics operator-metrics envoy-metrics": ("available on each node", "firewall"),
    },
    "cni-calico": {
        "api": ("443 or 6443", "api-port"),
        "flannel": ("4789", "8472"),
        "typha": ("Typha agent hosts", "any node"),
        "wireguard-ipv4 wireguard-ipv6 etcd": ("OpenShift's edition", "lacks"),
    },
    "harvester": {
        "api supervisor": ("management nodes alone", "compute nodes"),
        "etcd-metrics etcd-http containerd kube-controller-manager": ("K3s", "optional"),
        "kube-scheduler kube-proxy-health cloud-controller-manager-10258": ("K3s", "optional"),
        "rke2-agent": ("K3s", "optional"),
        "kube-controller-manager-health kube-scheduler-health": ("dropped", "optional"),
        "nginx-workers": ("kubelet", "kube-proxy"),
    },
    "k0s": {
        "keepalived": ("TCP 112", "port 122", "IP protocol 112"),
        "konnectivity": ("both directions", "agents"),
        "kubelet": ("10250", "Konnectivity"),
    },
    # The limit of ICMP is told whatever the setting cni is: these rows have no condition.
    "talos": {
        "trustd": ("50001", "10250", "whole cluster"),
        "apid-control-plane": ("everybody", "5 ICMP packets"),
        "apid-worker": ("whole cluster", "5 ICMP packets"),
        "vxlan-4789": ("4789", "8472", "5 ICMP packets"),
    },
}


def test_every_trap_of_a_document_is_a_warning() -> None:
    """A reader of a result learns the other reading of its row."""
    for name, traps in TRAPS.items():
        known = requirements(name)
        for keys, words in traps.items():
            for key in keys.split():
                text = " ".join(one["text"] for one in known[key].get("warnings", []))
                assert [word for word in words if word not in text] == [], (name, key)


def test_a_warning_says_whose_document_it_means() -> None:
    """A flow of two matrices has the warnings of both: "the document" would be either's."""
    for name in TRAPS:
        for row in requirements(name).values():
            for one in row.get("warnings", []):
                assert not re.match(r"The (document|page|table|text)\b", one["text"]), (name, one)

"""Plans of small estates, counted by hand.

Hosts are named by their roles: ``s1`` is the first host of the role that stands for ``s``. A pair
of hosts counts in both directions. Node ports are 30000 to 32767: 2,768. Where an overlay runs
between two hosts, netprobe asks for their path MTU besides: one flow more a pair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from netprobe import pipeline
from netprobe.plan.cost import estimate
from netprobe.plan.select import Selection
from tests.cli.command import netprobe
from tests.matrices.source import LAYERS, PLATFORMS

NODE_PORTS = 2768
Roles = Mapping[str, str]

SERVERS = {"s": "server", "a": "agent"}
NODES = {"c": "control-plane", "w": "worker"}
OPENSHIFT = {"b": "bootstrap", **NODES}
# Matrix, hosts, what their letters stand for.
ESTATES: dict[str, tuple[str, Roles]] = {
    "rke2": ("s1 s2 a1", SERVERS),
    "k3s": ("s1 s2 a1", SERVERS),
    "kubeadm": (
        "c1 c2 w1 e1 e2 l1 u1",
        {**NODES, "e": "etcd", "l": "load-balancer", "u": "client"},
    ),
    "openshift-upi": ("b1 c1 w1 t1", {**OPENSHIFT, "t": "ntp"}),
    "openshift-load-balancer": (
        "a1 i1 b1 c1 w1 u1",
        {**OPENSHIFT, "a": "api-lb", "i": "ingress-lb", "u": "external-client"},
    ),
    "openshift-ipi": (
        "p1 b1 c1 w1 m1 t1 d1",
        {**OPENSHIFT, "p": "provisioner", "m": "bmc", "t": "ntp", "d": "dns"},
    ),
    "cni-cilium": ("c1 w1 w2", NODES),
    "cni-calico": ("c1 w1 e1", {**NODES, "e": "etcd"}),
    "harvester": (
        "m1 m2 c1 r1 g1",
        {"m": "management", "c": "compute", "r": "rancher-lb", "g": "guest-vm"},
    ),
    "k0s": ("c1 c2 w1 w2 u1", {"c": "controller", "w": "worker", "u": "cli"}),
    "talos": ("c1 c2 w1 u1", {**NODES, "u": "talosctl"}),
}

# All of rke2's, whatever the CNI. Three nodes are 6 pairs, two servers 2. To the servers: each of
# the other two nodes, 4. api 4, supervisor 4, kubelet 6, three rows of etcd 2 each, node ports.
RKE2 = 4 + 4 + 6 + 3 * 2 + 6 * NODE_PORTS
# Rows of UPI's first table between three machines, 6 pairs: ICMP, 1936, 9000-9999 of TCP and UDP,
# 10250-10259, node ports of TCP and UDP.
MACHINES = 6 + 6 + 2 * 6 * 1000 + 6 * 10 + 2 * 6 * NODE_PORTS
# Cilium between three nodes: ICMP, 4240, Hubble's two, ten local ports.
CILIUM = 4 * 6 + 10 * 6
# Bare metal, two nodes. DHCP both ways 2 + 2, TFTP 2, the image 2, NTP 2, DNS by TCP and UDP 4;
# the inspector's two ports from the worker to the control plane 2; Ironic's two ports from both
# nodes to bootstrap and from the worker to the control plane 2 x 3; the agent's port from bootstrap
# to both nodes and from the control plane to the worker 3.
BARE_METAL = 2 + 2 + 2 + 2 + 2 + 4 + 2 + 2 * 3 + 3

# Matrix, settings, how many flows.
COUNTS: list[tuple[str, str, int]] = [
    # Canal: VXLAN 6, health 6; path MTU 6.
    ("rke2", "", RKE2 + 6 + 6 + 6),
    # WireGuard for IPv4 6 more; of IPv6 these hosts have no address.
    ("rke2", "wireguard=true families=dual-stack", RKE2 + 6 + 6 + 6 + 6),
    # ICMP, 4240, VXLAN, path MTU.
    ("rke2", "cni=cilium", RKE2 + 4 * 6),
    # 179, VXLAN, Typha, its health, health, path MTU.
    ("rke2", "cni=calico", RKE2 + 6 * 6),
    # VXLAN and path MTU; Windows' VXLAN stands a second time.
    ("rke2", "cni=flannel windows=true", RKE2 + 3 * 6),
    ("rke2", "cni=none", RKE2),
    # etcd's two ports 2 x 2, api 4, VXLAN 6, kubelet 6, ten local ports 10 x 6, path MTU 6.
    ("k3s", "", 4 + 4 + 6 + 6 + 60 + 6),
    # Without etcd 4 less; without VXLAN and its path MTU 12 less; the registry's two rows 12 more.
    ("k3s", "embedded-etcd=false flannel-backend=host-gw embedded-registry=true", 86 - 4 - 12 + 12),
    # Sources of the API are three nodes, a client and a balancer: 4 others to each, 8.
    # etcd 2 ports x 2; kubelet 2 between control planes, 2 to the worker; kube-proxy 1; node ports
    # of the worker, TCP and UDP, from two nodes, a client and a balancer: 4.
    ("kubeadm", "", 8 + 4 + 2 + 2 + 1 + 2 * 4 * NODE_PORTS),
    # etcd's two ports on each of two machines from three others: 2 x 2 x 3, in place of 4.
    ("kubeadm", "etcd=external", 8 + 12 + 2 + 2 + 1 + 2 * 4 * NODE_PORTS),
    # Geneve 6, path MTU 6; 22623 and 6443 from two to the control plane, 2 + 2; NTP from three.
    ("openshift-upi", "", MACHINES + 6 + 6 + 2 + 2 + 3),
    # 500, 4500 and ESP, 6 each.
    ("openshift-upi", "ipsec=true", MACHINES + 6 + 6 + 2 + 2 + 3 + 3 * 6),
    # VXLAN in place of Geneve, and 10256.
    ("openshift-upi", "network=openshift-sdn", MACHINES + 6 + 6 + 2 + 2 + 3 + 6),
    # Fronts: 6443, 443, 80 from three machines and a client 3 x 4, 22623 from three machines 3.
    # Backs: two ports to the control plane, two to bootstrap, two to the worker.
    ("openshift-load-balancer", "", 12 + 3 + 2 + 2 + 2),
    ("openshift-load-balancer", "phase=post-bootstrap", 12 + 3 + 2 + 2),
    # The control plane in place of the worker.
    ("openshift-load-balancer", "three-node=true", 12 + 3 + 2 + 2 + 2),
    ("openshift-ipi", "", BARE_METAL),
    # A BMC can run nothing: its flows are skipped. The image stays, as media are used.
    ("openshift-ipi", "virtual-media=true image-caching=true", BARE_METAL),
    # The image comes from the cache: 80 is not needed.
    ("openshift-ipi", "image-caching=true", BARE_METAL - 2),
    ("openshift-ipi", "provisioning-network=false", BARE_METAL - 6),
    # Two nodes, 2 pairs: VRRP, ICMP, 1936, Geneve, path MTU; 9000-9999 twice, ten ports, node ports
    # twice; the API 1.
    (
        *("openshift-ipi", "platform=vsphere"),
        5 * 2 + 2 * 2 * 1000 + 2 * 10 + 2 * 2 * NODE_PORTS + 1,
    ),
    # VXLAN 6, path MTU 6.
    ("cni-cilium", "", CILIUM + 12),
    # Geneve the same; WireGuard 6; etcd's two ports from two workers 4; Prometheus 3 x 6; 4250 6.
    (
        *("cni-cilium", "tunnel=geneve encryption=wireguard kvstore=true prometheus=true"),
        CILIUM + 12 + 6 + 4 + 18,
    ),
    ("cni-cilium", "tunnel=none encryption=ipsec hubble=false", CILIUM - 12 + 6),
    # Two nodes, 2 pairs: 179, IPIP, its path MTU, Typha; the API from the worker 1.
    ("cni-calico", "", 4 * 2 + 1),
    # VXLAN in place of IPIP; etcd from two nodes 2; no WireGuard of IPv6, that of IPv4 2.
    (
        *("cni-calico", "ipip=false vxlan=true datastore=etcd wireguard-ipv4=true"),
        4 * 2 + 1 + 2 + 2,
    ),
    # Two management nodes, 2 pairs: 11 ports. 6443 and 9345 from two others to each, 2 x 4. Three
    # nodes, 6 pairs: 17 ports of TCP, VXLAN, path MTU, node ports.
    ("harvester", "", 11 * 2 + 2 * 4 + 19 * 6 + 6 * NODE_PORTS),
    # Three nodes and a guest to the balancer.
    ("harvester", "rancher=true", 11 * 2 + 2 * 4 + 19 * 6 + 6 * NODE_PORTS + 4),
    # 2380 and 9443 between controllers 2 + 2; 6443 from two workers and a client to two 6; 8132
    # from two workers to two 4; BGP 2; kubelets from two controllers 4, from the other worker 2.
    ("k0s", "", 2 + 2 + 6 + 4 + 2 + 6),
    # VXLAN and path MTU in place of BGP; VRRP 2.
    ("k0s", "cni=calico cplb=true", 2 + 2 + 6 + 4 + 4 + 6 + 2),
    # 50000 from a client to two and between them 4, to the worker 2; 50001 2; VXLAN 6, path MTU 6.
    ("talos", "", 4 + 2 + 2 + 6 + 6),
    ("talos", "cni=cilium", 4 + 2 + 2 + 6 + 6),
    ("talos", "cni=none", 4 + 2 + 2),
]


# The same of matrices that are chosen together, on the hosts of the first.
KUBEADM = 8 + 4 + 2 + 2 + 1 + 2 * 4 * NODE_PORTS
TOGETHER: list[tuple[str, str, int]] = [
    # Three nodes, 6 pairs: 179, IPIP, its path MTU, Typha. The API is kubeadm's row, too: no more.
    ("kubeadm cni-calico", "", KUBEADM + 4 * 6),
    # 50000 between the control planes 2, to the worker 2; 50001 from the worker 2; no talosctl.
    ("kubeadm cni-calico talos", "talos:cni=none", KUBEADM + 4 * 6 + 2 + 2 + 2),
    # 2380 and 9443 between two controllers 4; api 6; Konnectivity 4; kubelet 6. Cilium between the
    # two workers alone, 2 pairs: ICMP, 4240, Hubble's two, ten local ports, VXLAN, path MTU.
    ("k0s cni-cilium", "k0s:cni=custom", 4 + 6 + 4 + 6 + 2 * 16),
]


@pytest.fixture(scope="module")
def estates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an inventory for each matrix."""
    folder = tmp_path_factory.mktemp("estates")
    for name, (hosts, roles) in ESTATES.items():
        body = {
            host: {"address": f"10.0.0.{number}", "roles": [roles[host[0]]]}
            for number, host in enumerate(hosts.split(), start=1)
        }
        text = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": body})
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.mark.slow
def test_plans_are_what_was_counted(estates: Path) -> None:
    """Every matrix, with its defaults and with those settings that change the most."""
    for names, settings, flows in (*COUNTS, *TOGETHER):
        matrices = names.split()
        files = [str(estates / f"{matrices[0]}.yaml")]
        plan = pipeline.make_plan(matrices, files, settings.split(), Selection())
        assert estimate(plan).flows == flows, (names, settings)


@pytest.mark.slow
def test_the_command_says_the_same(estates: Path) -> None:
    """``plan --count`` prints the number."""
    done = netprobe("plan", "-m", "k3s", "-i", str(estates / "k3s.yaml"), "--count", cwd=estates)

    assert re.match(r"86 flows, ", done.stdout)


def test_every_platform_and_layer_is_counted() -> None:
    """No matrix is left out, and each has its defaults in the table."""
    assert {name for name, settings, _ in COUNTS if not settings} == {*PLATFORMS, *LAYERS}

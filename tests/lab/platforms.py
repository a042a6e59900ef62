"""Clusters of every platform and layer, for the exactness test: roles, and settings off the path.

One runs in ``make test``; it draws every kind of rule that only platforms have.
"""

from __future__ import annotations

from tests.lab.scenarios import Scenario

SERVERS = {"server-0": ["server"], "server-1": ["server"], "agent-0": ["agent"]}
# Ranges of thousands of ports between each two.
CONTROL_PLANES = {"cp-0": ["control-plane"], "cp-1": ["control-plane"]}
MACHINES = {"cp-0": ["control-plane"], "cp-1": ["control-plane"], "worker-0": ["worker"]}

PLATFORM_SCENARIOS = (
    Scenario(
        "k0s-vrrp",
        "k0s",
        {
            "controller-0": ["controller"],
            "controller-1": ["controller"],
            "worker-0": ["worker"],
            "worker-1": ["worker"],
            "laptop": ["cli"],
        },
        {"cni": "calico", "cplb": True},
        dual=("controller-0", "worker-0"),
    ),
    Scenario(
        "rke2-canal",
        "rke2",
        SERVERS,
        {"wireguard": True, "families": "dual-stack"},
        dual=("server-0", "agent-0"),
        full=True,
    ),
    Scenario("rke2-cilium", "rke2", SERVERS, {"cni": "cilium", "wireguard": True}, full=True),
    Scenario("rke2-calico-windows", "rke2", SERVERS, {"cni": "calico", "windows": True}, full=True),
    Scenario(
        "k3s",
        "k3s",
        SERVERS,
        {"flannel-backend": "wireguard", "families": "dual-stack", "embedded-registry": True},
        dual=("server-1", "agent-0"),
        full=True,
    ),
    Scenario(
        "kubeadm",
        "kubeadm",
        {**MACHINES, "etcd-0": ["etcd"], "etcd-1": ["etcd"], "lb": ["load-balancer", "client"]},
        {"etcd": "external", "api-port": 8443},
        dual=("cp-0", "worker-0"),
        full=True,
    ),
    Scenario(
        "openshift-upi",
        "openshift-upi",
        {"boot": ["bootstrap"], "cp-0": ["control-plane"], "worker-0": ["worker"], "ntp": ["ntp"]},
        {"ipsec": True},
        dual=("cp-0", "worker-0"),
        full=True,
    ),
    Scenario(
        "openshift-load-balancer",
        "openshift-load-balancer",
        {
            **{"api": ["api-lb"], "apps": ["ingress-lb"], "boot": ["bootstrap"]},
            **MACHINES,
            "outside": ["external-client"],
        },
        dual=("api", "cp-0"),
        full=True,
    ),
    Scenario(
        "openshift-bare-metal",
        "openshift-ipi",
        {
            **{"provisioner": ["provisioner"], "boot": ["bootstrap"]},
            **{"cp-0": ["control-plane"], "worker-0": ["worker"], "bmc-0": ["bmc"]},
            "services": ["ntp", "dns"],
        },
        {"virtual-media": True, "tls": True, "image-caching": True},
        dual=("provisioner", "bmc-0"),
        full=True,
    ),
    Scenario(
        "openshift-vsphere",
        "openshift-ipi",
        {"cp-0": ["control-plane"], "worker-0": ["worker"]},
        {"platform": "vsphere", "ipsec": True, "network": "openshift-sdn"},
        full=True,
    ),
    Scenario(
        "cilium",
        "cni-cilium",
        MACHINES,
        {
            **{"tunnel": "geneve", "encryption": "ipsec", "kvstore": True},
            **{"prometheus": True, "mutual-authentication": True},
        },
        dual=("cp-0", "worker-0"),
        full=True,
    ),
    Scenario(
        "calico",
        "cni-calico",
        {**MACHINES, "etcd-0": ["etcd"]},
        {
            **{"vxlan": True, "wireguard-ipv4": True, "wireguard-ipv6": True},
            "datastore": "etcd",
        },
        dual=("cp-0", "worker-0"),
        full=True,
    ),
    Scenario(
        "harvester",
        "harvester",
        {
            **{"m-0": ["management"], "m-1": ["management"], "c-0": ["compute"]},
            **{"rancher": ["rancher-lb"], "guest": ["guest-vm"]},
        },
        {"rancher": True},
        dual=("m-0", "c-0"),
        full=True,
    ),
    Scenario(
        "talos",
        "talos",
        {**MACHINES, "laptop": ["talosctl"]},
        {"cni": "cilium"},
        dual=("cp-0", "worker-0"),
        full=True,
    ),
    # What those above leave out: the other values of settings that exclude each other.
    Scenario(
        "k0s-kube-router",
        "k0s",
        {"controller-0": ["controller"], "worker-0": ["worker"], "worker-1": ["worker"]},
        full=True,
    ),
    Scenario("k3s-vxlan", "k3s", SERVERS, full=True),
    Scenario("rke2-flannel", "rke2", SERVERS, {"cni": "flannel"}, full=True),
    Scenario("kubeadm-stacked", "kubeadm", MACHINES, full=True),
    Scenario("upi-sdn", "openshift-upi", CONTROL_PLANES, {"network": "openshift-sdn"}, full=True),
    Scenario(
        "openshift-three-node",
        "openshift-load-balancer",
        {"api": ["api-lb"], "apps": ["ingress-lb"], "cp-0": ["control-plane"]},
        {"three-node": True, "phase": "post-bootstrap"},
        full=True,
    ),
    Scenario(
        "openshift-media",
        "openshift-ipi",
        {"provisioner": ["provisioner"], "cp-0": ["control-plane"], "bmc-0": ["bmc"]},
        {"virtual-media": True, "image-caching": True, "provisioning-network": False},
        full=True,
    ),
    Scenario("vsphere-geneve", "openshift-ipi", CONTROL_PLANES, {"platform": "vsphere"}, full=True),
    Scenario("cilium-wireguard", "cni-cilium", MACHINES, {"encryption": "wireguard"}, full=True),
    Scenario(
        *("calico-flannel", "cni-calico", MACHINES),
        {"flannel": True, "bgp": False, "ipip": False},
        full=True,
    ),
    Scenario("talos-flannel", "talos", MACHINES, full=True),
)

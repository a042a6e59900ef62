"""What is agreed of the matrices for platforms and layers: counts of rows, roles, settings."""

from __future__ import annotations

# Setting -> (type, values, default). The default of a choice is its first value.
Shape = tuple[str, list[str], object]


def choice(*values: str) -> Shape:
    """A setting that is one of these values, the first by default."""
    return ("choice", list(values), values[0])


OFF: Shape = ("boolean", [], False)
ON: Shape = ("boolean", [], True)
API_PORT: Shape = ("port", [], 6443)
FAMILIES = choice("ipv4", "ipv6", "dual-stack")
OPENSHIFT_NETWORK = choice("ovn-kubernetes", "openshift-sdn", "third-party")

ALL = "Ports used for all-machine to all-machine communications"
TO_CONTROL_PLANE = "Ports used for all-machine to control plane communications"
IN_CONTROL_PLANE = "Ports used for control plane machine to control plane machine communications"

# How many requirements each table of a document became. Where that is not the number of its rows,
# the comment says why.
COUNTS = {
    "rke2": {
        "Inbound Network Rules": 7,
        "CNI Specific Inbound Network Rules, Canal": 4,
        "CNI Specific Inbound Network Rules, Cilium": 4,
        "CNI Specific Inbound Network Rules, Calico": 5,
        "CNI Specific Inbound Network Rules, Flannel": 1,
        "Windows Specific Inbound Network Rules": 2,
    },
    "k3s": {
        "Inbound Rules for K3s Nodes": 8,
        "Local Ports": 10,  # 11 rows, 10250 is in the table above
    },
    "kubeadm": {
        "Control plane": 4,  # 5 rows: two are "Self" alone, etcd is stacked or external
        "Worker node(s)": 4,
    },
    "openshift-upi": {
        ALL: 15,  # 14 rows, 30000-32767 is TCP and UDP
        TO_CONTROL_PLANE: 1,
        IN_CONTROL_PLANE: 1,
    },
    "openshift-load-balancer": {
        # 2 rows: front, back, and back to bootstrap
        "API load balancer": 6,
        # 2 rows and one of an earlier edition: front, back, and back in three-node clusters
        "Application Ingress load balancer": 6,
    },
    "openshift-ipi": {
        "Required ports (bare metal)": 14,  # 13 rows, "67, 68" are two directions
        "DNS requirements (bare metal)": 2,  # a sentence of the text, TCP and UDP
        f"{ALL} (vSphere)": 14,  # 13 rows, 30000-32767 is TCP and UDP
        f"{TO_CONTROL_PLANE} (vSphere)": 1,
        f"{IN_CONTROL_PLANE} (vSphere)": 1,
    },
    "cni-cilium": {
        "Firewall Rules": 7,  # 26 rows are 4 of them; ESP, Geneve, 51871 stand in the text
        "Ports that should be available on each node": 16,  # 18 rows, 4240 and 51871 are above
    },
    "cni-calico": {"Network requirements": 9},
    "harvester": {
        "Port Requirements for Harvester Nodes": 29,  # 30 rows, UDP 68 is no flow
        "Port Requirements for Integrating Harvester with Rancher": 2,  # two sentences
    },
    "k0s": {"Required ports and protocols": 8},
    "talos": {
        "Control plane node(s)": 2,
        "Worker node(s)": 1,
        "Ingress Firewall: default configurations": 2,  # two lines of a list
    },
}

OPENSHIFT_ROLES: dict[str, list[str]] = {"control-plane": ["node"], "worker": ["node"], "node": []}
ROLES: dict[str, dict[str, list[str]]] = {
    "rke2": {"server": ["node"], "agent": ["node"], "node": []},
    "k3s": {"server": ["node"], "agent": ["node"], "node": []},
    "kubeadm": {**OPENSHIFT_ROLES, "etcd": [], "load-balancer": [], "client": []},
    "openshift-upi": {"bootstrap": ["node"], **OPENSHIFT_ROLES, "ntp": []},
    "openshift-load-balancer": {
        **{"api-lb": [], "ingress-lb": [], "bootstrap": ["node"]},
        **OPENSHIFT_ROLES,
        "external-client": [],
    },
    "openshift-ipi": {
        **{"provisioner": [], "bootstrap": []},
        **OPENSHIFT_ROLES,
        **{"bmc": [], "ntp": [], "dns": []},
    },
    "cni-cilium": OPENSHIFT_ROLES,
    "cni-calico": {**OPENSHIFT_ROLES, "etcd": []},
    "harvester": {
        **{"management": ["node"], "compute": ["node"], "node": []},
        **{"rancher-lb": [], "guest-vm": []},
    },
    "k0s": {"controller": [], "worker": [], "cli": []},
    "talos": {**OPENSHIFT_ROLES, "talosctl": []},
}
# The role that each common part is.
COMMON = {
    **{name: ("control-plane", "worker", "node") for name in ROLES},
    "rke2": ("server", "agent", "node"),
    "k3s": ("server", "agent", "node"),
    "harvester": ("management", "compute", "node"),
    "k0s": ("controller", "worker", None),
}

SETTINGS: dict[str, dict[str, Shape]] = {
    "rke2": {
        "cni": choice("canal", "cilium", "calico", "flannel", "none"),
        "vxlan": ON,
        "wireguard": OFF,
        "families": FAMILIES,
        "calico-bgp": ON,
        "calico-typha": ON,
        "windows": OFF,
    },
    "k3s": {
        "embedded-etcd": ON,
        "flannel-backend": choice("vxlan", "wireguard", "host-gw", "none"),
        "families": FAMILIES,
        "metrics-server": ON,
        "embedded-registry": OFF,
    },
    "kubeadm": {"etcd": choice("stacked", "external"), "api-port": API_PORT},
    "openshift-upi": {"network": OPENSHIFT_NETWORK, "ipsec": OFF},
    "openshift-load-balancer": {"phase": choice("bootstrap", "post-bootstrap"), "three-node": OFF},
    "openshift-ipi": {
        "platform": choice("baremetal", "vsphere"),
        "provisioning-network": ON,
        "virtual-media": OFF,
        "tls": OFF,
        "image-caching": OFF,
        "ipsec": OFF,
        "network": OPENSHIFT_NETWORK,
    },
    "cni-cilium": {
        "tunnel": choice("vxlan", "geneve", "none"),
        "encryption": choice("none", "ipsec", "wireguard"),
        "kvstore": OFF,
        "hubble": ON,
        "mutual-authentication": OFF,
        "prometheus": OFF,
    },
    "cni-calico": {
        **{"bgp": ON, "ipip": ON, "vxlan": OFF, "typha": ON},
        **{"wireguard-ipv4": OFF, "wireguard-ipv6": OFF, "flannel": OFF},
        "datastore": choice("kubernetes", "etcd"),
        "api-port": API_PORT,
    },
    "harvester": {"rancher": OFF},
    "k0s": {"cni": choice("kube-router", "calico", "custom"), "cplb": OFF},
    "talos": {"cni": choice("flannel", "calico", "cilium", "none")},
}

EXISTING = {
    "openshift-upi": {"ntp"},
    "openshift-load-balancer": {"api-lb", "ingress-lb"},
    "openshift-ipi": {"ntp", "dns"},
    "harvester": {"rancher-lb"},
}
# What a cluster has one of, and which one it is; a word in braces is a setting.
# Whose setting api-port is the API's port: given to one alone it contradicts the other.
PORT_CLAIMS = ("kubeadm", "cni-calico")
CLAIMS = {
    "dce": "{cni}",
    "deckhouse-nodes": "{cni}",
    "rke2": "{cni}",
    "k3s": "{flannel-backend} says flannel",
    "kubeadm": "none",  # it has no row of a CNI: a layer has them
    "openshift-upi": "{network}",
    "openshift-ipi": "{network}",
    "cni-cilium": "cilium",
    "cni-calico": "calico",
    "harvester": "canal",
    "k0s": "{cni}",
    "talos": "{cni}",
}

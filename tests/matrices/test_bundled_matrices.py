"""The shape of the bundled matrices: counts, names, roles, settings and meaningful conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.matrices import contract
from tests.matrices.contract import OFF, ON, Shape, choice
from tests.matrices.source import (
    FIRST,
    FOLDER,
    LAYERS,
    NAMES,
    Plain,
    as_list,
    read,
    requirements,
)

# How many requirements each table of a document became. Where that is not the number of its rows,
# the comment says why.
COUNTS = {
    **contract.COUNTS,
    "openshift-host-ports": {
        "External / TCP": 69,
        "External / UDP": 6,  # 5 rows; 4789 has two conditions joined by "or"
        "Localhost-only": 23,
    },
    "hypershift-hcp": {
        "Common Ingress Ports": 2,  # 1 row, workers and external clients
        "Common Egress Ports": 4,  # 3 rows, 53 is TCP and UDP
        "Platform-Specific Port Configurations: AWS": 1,
        "Platform-Specific Port Configurations: Azure": 2,  # workers and external clients
        "Platform-Specific Port Configurations: IBM Cloud": 2,  # the same
        "Platform-Specific Port Configurations: PowerVS": 1,
        "Platform-Specific Port Configurations: KubeVirt": 1,
        "Platform-Specific Port Configurations: OpenStack": 2,
        "Platform-Specific Port Configurations: Agent": 3,
        "Platform-Specific Port Configurations: None": 1,
        "Private Clusters (AWS/Azure/GCP)": 2,
        "Worker Node Egress Requirements": 10,  # 7 rows, 443 has three destinations, 53 is two
    },
    "okd-hcp": {
        "Table 1. Common ingress ports": 3,  # 2 rows, 6443 has two sources
        "Table 2. Platform-specific ingress port configurations": 8,
        "Table 3. Ingress port configurations for private clusters": 2,
        "Table 4. Common egress ports": 4,  # 3 rows, 53 is TCP and UDP
        "Table 5. Compute node egress requirements": 8,  # 5 rows, 443 is three, 53 is two
        # The text about proxies has no tables: its sentences about flows, by their headings.
        "Proxy support: Control plane workloads that need to access external services": 6,
        "Proxy support: Compute nodes that need to access an ignition endpoint": 1,
        "Proxy support: Compute nodes that need to access the API server": 3,
        "Proxy support: Management clusters that need external access": 1,
    },
    "dce": {
        "Bootstrap Node": 4,
        "K8s Control Plane": 7,
        "All K8s Nodes": 4,
        "Calico (Default)": 6,
        "MetalLB (Default)": 4,  # 2 rows, both TCP and UDP
        "Cilium (Optional)": 9,
        "SpiderPool (Optional)": 8,
        "KubeVIP (Optional)": 1,
        "Istio-Gateway VIP": 2,
        "Insight VIP": 4,
        "Other Ports to be Opened in the Worker Cluster": 2,
        "Container Registry": 1,
    },
    "deckhouse-nodes": {
        "Master to master nodes traffic": 4,
        "Master to nodes traffic": 4,
        "Nodes to masters traffic": 5,
        "Nodes to nodes traffic": 24,
        "External traffic to masters": 2,
        "External traffic to frontends": 5,
        "External traffic for all nodes": 4,
    },
}

HCP_ROLES: dict[str, list[str]] = {
    "worker": [],
    "hcp": [],
    "hcp-apiserver": [],
    "hcp-konnectivity": [],
    "hcp-ignition": [],
    "management-cluster": [],
    "management-api": [],
    "ocp-router": [],
    "konnectivity-route": [],
    "ignition-route": [],
    "external-https": [],
    "dns": [],
    "external-client": [],
    "proxy": [],
}
ROLES: dict[str, dict[str, list[str]]] = {
    **contract.ROLES,
    "openshift-host-ports": {"node": [], "control-plane": ["node"], "router-node": ["node"]},
    "hypershift-hcp": HCP_ROLES,
    "okd-hcp": {
        **HCP_ROLES,
        "http-proxy": [],
        "https-proxy": [],
        "ignition-proxy": [],
        "management-proxy": [],
        "ldap": [],
        "node-local-proxy": [],
    },
    "dce": {
        "node": [],
        "control-plane": ["node"],
        "bootstrap": [],
        "global-node": ["node"],
        "worker-cluster-node": [],
        "worker-cluster-api": [],
        "istio-gateway-vip": [],
        "insight-vip": [],
        "registry": [],
        "web-client": [],
    },
    "deckhouse-nodes": {
        "master": ["node"],
        "node": [],
        "frontend": ["node"],
        "external": [],
        "external-dns": [],
        "external-ntp": [],
        "external-registry": [],
    },
}

FEATURES = [
    "baremetal-provisioning",
    "cli-manager",
    "cloud-node-manager",
    "csi-drivers",
    "ingress-node-firewall",
    "ipsec",
    "metallb",
    "run-once-duration-override",
    "windows-hybrid-networking",
]
MODULES = [
    "cloud-provider-vcd",
    "l2-load-balancer",
    "metallb",
    "node-local-dns",
    "openvpn",
    "runtime-audit-engine",
    "sds-node-configurator",
    "sds-replicated-volume",
    "virtualization",
]
PUBLISHING = choice("route", "nodeport", "loadbalancer")
AS_PUBLISHING: Shape = (*PUBLISHING[:2], {"setting": "publishing"})
HCP_SETTINGS: dict[str, Shape] = {
    "publishing": PUBLISHING,
    "konnectivity-publishing": AS_PUBLISHING,
    "ignition-publishing": AS_PUBLISHING,
    "oauth-publishing": AS_PUBLISHING,
    "apiserver-publishing": AS_PUBLISHING,
    "private": OFF,
    "phase": choice("bootstrap", "post-bootstrap"),
    "version": ("version", [], "4.20"),
    "apiserver-port": ("port", [], 6443),
    "konnectivity-port": ("port", [], 8091),
    "ignition-port": ("port", [], 8443),
    "konnectivity-hostname": ("string", [], ""),
    "ignition-hostname": ("string", [], ""),
    "api-hostname": ("string", [], ""),
    "api-int-hostname": ("string", [], ""),
    "oauth-hostname": ("string", [], ""),
    "apps-hostname": ("string", [], ""),
    "registry-hostname": ("string", [], ""),
}
SETTINGS: dict[str, dict[str, Shape]] = {
    **contract.SETTINGS,
    "openshift-host-ports": {
        "version": ("version", [], "4.16"),
        "network": choice("ovn-kubernetes", "openshift-sdn", "third-party"),
        "platform": choice(
            *("none", "aws", "azure", "gcp", "ibmcloud"),
            *("baremetal", "vsphere", "openstack", "nutanix"),
        ),
        "hypershift-guest": OFF,
        "features": ("list", FEATURES, []),
    },
    "hypershift-hcp": {
        "platform": choice(
            *("aws", "azure", "gcp", "ibmcloud", "powervs"),
            *("kubevirt", "openstack", "agent", "none"),
        ),
        **HCP_SETTINGS,
    },
    "okd-hcp": {
        "platform": choice("aws", "kubevirt", "openstack", "agent", "baremetal-no-agent"),
        **HCP_SETTINGS,
        "proxy": OFF,
        "http-proxy-port": ("port", [], 3128),
        "https-proxy-port": ("port", [], {"setting": "http-proxy-port"}),
        "ignition-proxy": OFF,
        "ignition-proxy-port": ("port", [], {"setting": "http-proxy-port"}),
        "apiserver-proxy": OFF,
        "node-local-port": ("port", [], 6443),
        "management-proxy": OFF,
        "management-proxy-port": ("port", [], 3128),
        "ldap": OFF,
        "ldap-port": ("port", [], 636),
    },
    "dce": {
        "cni": choice("calico", "cilium", "spiderpool"),
        "cluster": choice("global", "worker"),
        "metallb": ON,
        "kubevip": OFF,
        "deployment-function": OFF,
        "calico-vxlan": OFF,
        "calico-typha": ON,
        "calico-ipip": OFF,
        "calico-wireguard-ipv4": OFF,
        "calico-wireguard-ipv6": OFF,
        "spiderpool-gops": OFF,
    },
    "deckhouse-nodes": {
        "modules": ("list", MODULES, MODULES),
        "nodes": choice("static", "cloud"),
        "cni": choice("cilium", "flannel"),
        "inlet": choice("HostWithFailover", "HostPort", "LoadBalancer"),
        "api-hostname": ("string", [], ""),
        "api-int-hostname": ("string", [], ""),
        "apps-hostname": ("string", [], ""),
        "registry-hostname": ("string", [], ""),
    },
}

KEYS = {
    *("id", "from", "to", "tcp", "udp", "icmp", "ipproto", "purpose", "row", "when", "unless"),
    *("family", "optional", "stops", "expect", "probe", "sni", "process", "owner", "warnings"),
    *("binds", "any_of", "multicast", "keepalive", "persistence"),
}
# What runs before the installation; roles that are not named here do not.
HCP_EXISTING = {
    *("management-api", "ocp-router", "konnectivity-route", "ignition-route"),
    *("external-https", "dns", "proxy"),
}
EXISTING = {
    **contract.EXISTING,
    "hypershift-hcp": HCP_EXISTING,
    "okd-hcp": HCP_EXISTING
    | {"http-proxy", "https-proxy", "ignition-proxy", "management-proxy", "ldap"},
    "deckhouse-nodes": {"external-dns", "external-ntp", "external-registry"},
}
PROBES = {
    *("dns", "vxlan", "geneve", "ntp", "ipip", "memberlist", "ike", "openvpn", "kube-apiserver"),
    *("konnectivity", "ignition", "machine-config-server", "etcd", "kubelet", "registry", "oauth"),
    *("http-health", "https", "tls"),
}


def each_matrix(ask: Callable[[str], None]) -> Callable[[], None]:
    """One test that asks the same of every matrix; the name is the argument that failed."""

    def test() -> None:
        for name in NAMES:
            ask(name)

    test.__doc__ = ask.__doc__
    return test


def test_these_matrices_are_all_there_are() -> None:
    """Every file of the folder is one of the sixteen matrices, under its own name."""
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NAMES)
    assert len(NAMES) == 16


@each_matrix
def test_head(name: str) -> None:
    """A matrix carries its schema, its name, and where its document came from and when."""
    matrix = read(name)
    assert matrix["schema"] == "netprobe.matrix/1"
    assert matrix["name"] == name
    assert matrix["title"]
    assert {"title", "publisher", "retrieved"} <= set(matrix["document"])
    assert set(matrix["document"]) <= {"title", "publisher", "retrieved", "version", "sources"}
    assert matrix["document"]["retrieved"] == "2026-11-20"
    known = {"schema", "name", "title", "document", "local", "roles", "settings", "requirements"}
    known |= {"layer", "claims"}
    registry = {"ranges", "retired"} if name == "openshift-host-ports" else set()
    assert set(matrix) <= known | registry


@each_matrix
def test_layers(name: str) -> None:
    """These four are layers; a matrix claims the CNI and port that it, or its setting, names."""
    matrix = read(name)
    claims = {"cni": contract.CLAIMS[name]} if name in contract.CLAIMS else {}
    claims |= {"api-port": "{api-port}"} if name in contract.PORT_CLAIMS else {}

    assert matrix.get("layer", False) is (name in LAYERS)
    assert {key: claimed(value) for key, value in matrix.get("claims", {}).items()} == claims


@each_matrix
def test_common_parts(name: str) -> None:
    """Control plane, worker and node are what inventories of many tools call so."""
    if name in FIRST:
        return
    parts = {body["common"]: role for role, body in read(name)["roles"].items() if "common" in body}
    wanted = dict(zip(("control-plane", "worker", "node"), contract.COMMON[name], strict=True))

    assert parts == {part: role for part, role in wanted.items() if role}


@each_matrix
def test_only_a_bmc_can_run_nothing(name: str) -> None:
    """Every other role is one on which an agent may start."""
    dumb = {role for role, body in read(name)["roles"].items() if "vantage" in body}

    assert dumb == ({"bmc"} if name == "openshift-ipi" else set())


@each_matrix
def test_only_deckhouse_tests_a_host_against_itself(name: str) -> None:
    """Only its document has a sentence about traffic within a node."""
    assert read(name).get("local", False) is (name == "deckhouse-nodes")


@each_matrix
def test_every_row_is_there(name: str) -> None:
    """Each table of the document became as many requirements as were counted by hand."""
    rows = Counter(one["row"] for one in read(name)["requirements"])
    assert dict(rows) == COUNTS[name]


@each_matrix
def test_ids_are_unique_and_readable(name: str) -> None:
    """An id names one requirement of its matrix, in lower case with dashes."""
    ids = [one["id"] for one in read(name)["requirements"]]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", one) for one in ids)


@each_matrix
def test_roles(name: str) -> None:
    """The roles are exactly those that inventories in the field are written against."""
    roles = read(name)["roles"]
    assert {role: as_list(body.get("implies")) for role, body in roles.items()} == ROLES[name]
    assert all(body["description"] for body in roles.values())


@each_matrix
def test_what_exists_before_the_installation(name: str) -> None:
    """These roles, and no requirement overrules its role."""
    roles = read(name)["roles"]
    existing = {role for role, body in roles.items() if body.get("existing")}

    assert existing == EXISTING.get(name, set())
    assert not [one["id"] for one in read(name)["requirements"] if "existing" in one]


@each_matrix
def test_ssh_may_be_held_by_sshd(name: str) -> None:
    """It runs before the installation on every node that somebody can log in to."""
    held = {
        tuple(one.get("process", ()))
        for one in read(name)["requirements"]
        if 22 in one.get("tcp", ())
    }
    assert held <= {("sshd", "systemd", "dropbear")}


# Words of a document that say what a row stops.
SAYS = {
    "installation": r"initialization",
    "nodes": r"nodes bootstrapping|node configurations",
    "pods": r"pod-to-pod",
    "feature": r"administrators|Virtualization",
    "monitoring": r"(?i)metric|monitor|exporter|Insight VIP|stats",
}


@each_matrix
def test_every_row_says_what_it_stops(name: str) -> None:
    """A row whose own words do not say it gives a reason; what must not answer stops nothing."""
    for one in read(name)["requirements"]:
        stops = one["stops"]
        if isinstance(stops, str):
            assert re.search(SAYS[stops], one["purpose"]), one["id"]
        else:
            ((weight, reason),) = stops.items()
            assert weight in SAYS, one["id"]
            assert len(reason.split()) >= 4, one["id"]
        if one.get("expect") == "denied":
            assert "monitoring" in stops, one["id"]


@each_matrix
def test_settings(name: str) -> None:
    """The settings have exactly the agreed types, values and defaults."""
    settings = read(name)["settings"]
    assert {key: shape_of(body) for key, body in settings.items()} == SETTINGS[name]
    assert all(body["description"] for body in settings.values())


@each_matrix
def test_every_setting_is_used(name: str) -> None:
    """A setting decides or fills in something, or is a name that servers are asked for.

    No row is about OAuth, but a site's own may be.
    """
    followed = {str(body["default"]) for body in read(name)["settings"].values()}
    text = str(followed) + "".join(str(one) for one in read(name)["requirements"])
    settings = read(name)["settings"]
    idle = {key for key in settings if f"'{key}'" not in text}
    idle -= {key for key, body in settings.items() if "resolves_to" in body}
    assert idle <= {"version", "oauth-publishing"}


@each_matrix
def test_requirements_are_complete(name: str) -> None:
    """A requirement has known keys only, both ends, one protocol, the row and its words."""
    for key, requirement in requirements(name).items():
        assert set(requirement) <= KEYS, key
        assert requirement["purpose"].strip(), key
        assert requirement["row"].strip(), key
        assert len({"tcp", "udp", "icmp", "ipproto"} & set(requirement)) == 1, key
        assert requirement.get("probe", "dns") in PROBES, key
        assert requirement.get("expect", "denied") == "denied", key
        ends = as_list(requirement["from"]) + as_list(requirement["to"])
        assert set(ends) <= set(ROLES[name]), key


@each_matrix
def test_ports_are_ports(name: str) -> None:
    """A port entry is a port, a range in order, or a setting that holds a port."""
    for key, requirement in requirements(name).items():
        for entry in as_list(requirement.get("tcp")) + as_list(requirement.get("udp")):
            if isinstance(entry, dict):
                assert SETTINGS[name][entry["setting"]][0] == "port", key
            else:
                first, _, last = str(entry).partition("-")
                assert 1 <= int(first) <= int(last or first) <= 65535, key


@each_matrix
def test_conditions_mean_something(name: str) -> None:
    """A condition refers to a setting of the matrix and to a value that it can have."""
    for key, requirement in requirements(name).items():
        conditions = [requirement.get("when", {}), requirement.get("unless", {})]
        conditions += [warning.get("when", {}) for warning in requirement.get("warnings", [])]
        for setting, values in (pair for one in conditions for pair in one.items()):
            assert all(can_be(SETTINGS[name][setting], value) for value in as_list(values)), key


@each_matrix
def test_warnings_are_sentences(name: str) -> None:
    """A warning is whole sentences: which number is the pod's and what is really dialled, or the
    two readings of the document and which of them holds here.
    """
    for key, requirement in requirements(name).items():
        for warning in requirement.get("warnings", []):
            assert warning["text"].endswith("."), key
            if name in FIRST:
                assert "pod" in warning["text"], key
                assert name.endswith("-hcp"), key
            else:
                # Settings of which one is needed: neither a provisioning network nor media.
                assert "when" not in warning or (name, key) == ("openshift-ipi", "inspector")
                assert len(warning["text"].split()) >= 12, key


def claimed(value: Any) -> str:
    """A claim in the words of the contract."""
    if not isinstance(value, dict):
        return str(value)
    says = f" says {value['says']}" if "says" in value else ""
    return f"{{{value['setting']}}}{says}"


def shape_of(setting: Plain) -> Shape:
    """Type, values and default of a setting as the file gives them."""
    kind = setting.get("type", "choice" if "values" in setting else "missing")
    return (kind, setting.get("values", []), setting["default"])


def can_be(shape: Shape, value: Any) -> bool:
    """Whether a setting of this shape can satisfy a condition with that value."""
    kind, values, _ = shape
    if kind == "version":
        return re.fullmatch(r">=\d+\.\d+", value) is not None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "port":
        return isinstance(value, int)
    return value in values


def test_one_document_forbids_persistence() -> None:
    """That of OpenShift's balancers, of the API alone."""
    found = {
        (name, key): requirement["persistence"]
        for name in NAMES
        for key, requirement in requirements(name).items()
        if "persistence" in requirement
    }

    assert found == {("openshift-load-balancer", key): "none" for key in ("api-front", "mcs-front")}


def test_keepalives_are_those_of_the_decision() -> None:
    """Rows have the numbers that decision 0056 names a source for, and no other row has any."""
    found = {
        (name, key): requirement["keepalive"]
        for name in NAMES
        for key, requirement in requirements(name).items()
        if "keepalive" in requirement
    }

    assert found == {
        ("k0s", "konnectivity"): {"data": "1h", "tcp": "15s"},
        ("hypershift-hcp", "worker-konnectivity"): "30s",
        ("hypershift-hcp", "worker-konnectivity-route"): "30s",
        ("kubeadm", "etcd-external"): "30s",
    }

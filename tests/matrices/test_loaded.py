"""The bundled matrices as netprobe reads them, and what they require under given settings."""

from __future__ import annotations

import pytest

from netprobe.load.matrix.file import load_matrices
from netprobe.model.matrix import ChosenMatrix, Matrix, SettingValue, choose_settings
from netprobe.plan.conditions import holds, why_not
from tests.matrices.source import NAMES, requirements

Settings = dict[str, SettingValue]


def matrix(name: str) -> Matrix:
    """A bundled matrix; FileErrors with every problem where it has any."""
    (loaded,) = load_matrices([name])
    return loaded


def required(name: str, **changes: SettingValue) -> set[str]:
    """The ids that apply under the default settings and these changes (``_`` stands for ``-``)."""
    chosen = choose(name, **changes)
    return {one.id for one in chosen.matrix.requirements if why_not(one, chosen) is None}


def choose(name: str, **changes: SettingValue) -> ChosenMatrix:
    """The matrix with its default settings and these changes."""
    loaded = matrix(name)
    given = {key.replace("_", "-"): value for key, value in changes.items()}
    assert set(given) <= set(loaded.settings)
    return choose_settings(loaded, given)


def words(value: Settings | set[str]) -> str:
    """A name of a case that every process gives alike: sets have no order of their own."""
    return str(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize("name", NAMES)
def test_loads_without_a_problem(name: str) -> None:
    """The loader finds nothing wrong, and every requirement arrives in file order."""
    assert [one.id for one in matrix(name).requirements] == list(requirements(name))


@pytest.mark.slow
def test_all_load_together() -> None:
    """One run may use all of them at once."""
    assert [one.name for one in load_matrices(NAMES)] == list(NAMES)


HCP_ALWAYS = {
    *("kube-apiserver", "kube-apiserver-external", "hcp-https", "hcp-management-api"),
    *("hcp-dns-tcp", "hcp-dns-udp", "worker-https", "worker-kube-apiserver"),
    *("worker-dns-tcp", "worker-dns-udp"),
}
ROUTES = {"worker-konnectivity-route", "worker-ignition-route"}
PRIVATE = {"private-router-http", "private-router-https"}
AGENT = {"agent-capi-health", "agent-capi-metrics"}
# Settings and what hypershift-hcp requires beside the rows that always hold.
HYPERSHIFT_CASES: list[tuple[Settings, set[str]]] = [
    ({}, ROUTES | {"aws-capi-health"}),
    ({"phase": "post-bootstrap"}, {"worker-konnectivity-route", "aws-capi-health"}),
    ({"private": True}, ROUTES | PRIVATE | {"aws-capi-health"}),
    ({"platform": "gcp", "private": True}, ROUTES | PRIVATE),
    ({"platform": "kubevirt", "private": True}, ROUTES | {"kubevirt-capi-health"}),
    ({"platform": "powervs"}, ROUTES | {"powervs-capi-health"}),
    (
        {"platform": "azure", "publishing": "loadbalancer"},
        {
            *("azure-kube-apiserver", "azure-kube-apiserver-external"),
            *("worker-kube-apiserver-azure", "worker-konnectivity"),
        },
    ),
    (
        {"platform": "ibmcloud", "publishing": "nodeport"},
        {
            *("ibmcloud-kube-apiserver", "ibmcloud-kube-apiserver-external"),
            *("worker-kube-apiserver-ibmcloud", "worker-konnectivity"),
        },
    ),
    (
        {"platform": "agent", "publishing": "nodeport"},
        AGENT | {"agent-ignition-proxy", "worker-ignition-proxy", "worker-konnectivity"},
    ),
    (
        {"platform": "agent", "publishing": "nodeport", "phase": "post-bootstrap"},
        AGENT | {"worker-konnectivity"},
    ),
    ({"platform": "agent"}, AGENT | ROUTES),
    (
        {"platform": "none", "publishing": "nodeport"},
        {"none-ignition-proxy", "worker-ignition-proxy", "worker-konnectivity"},
    ),
    (
        {"platform": "openstack", "version": "4.19"},
        ROUTES | {"openstack-capi-health", "openstack-orc-health"},
    ),
    ({"platform": "openstack", "version": "4.9"}, ROUTES | {"openstack-capi-health"}),
]


@pytest.mark.parametrize(("settings", "more"), HYPERSHIFT_CASES, ids=words)
def test_hypershift(settings: Settings, more: set[str]) -> None:
    """Platform, publishing strategy, phase and version decide, and nothing else is required."""
    assert required("hypershift-hcp", **settings) == HCP_ALWAYS | more


OKD_CASES: list[tuple[Settings, set[str]]] = [
    ({}, ROUTES | {"aws-capi-health", "ignition-server"}),
    ({"publishing": "loadbalancer"}, {"aws-capi-health", "worker-konnectivity"}),
    (
        {"phase": "post-bootstrap"},
        {"worker-konnectivity-route", "aws-capi-health", "node-local-haproxy"},
    ),
    (
        {"proxy": True},
        {
            *("aws-capi-health", "ignition-server", "worker-http-proxy", "worker-https-proxy"),
            *("proxy-external-https", "workloads-dns-tcp", "workloads-dns-udp"),
        }
        | ROUTES,
    ),
    (
        {"apiserver_proxy": True, "phase": "post-bootstrap"},
        {
            *("worker-konnectivity-route", "aws-capi-health", "node-local-own-proxy"),
            "worker-apiserver-proxy",
        },
    ),
    (
        {"ignition_proxy": True, "management_proxy": True, "ldap": True},
        ROUTES
        | {"aws-capi-health", "ignition-server"}
        | {"worker-stub-proxy", "management-proxy", "worker-ldap"},
    ),
    (
        {"ignition_proxy": True, "phase": "post-bootstrap"},
        {"worker-konnectivity-route", "aws-capi-health", "node-local-haproxy"},
    ),
    (
        {"platform": "baremetal-no-agent", "publishing": "nodeport"},
        {
            *("baremetal-ignition-proxy", "worker-ignition-proxy", "worker-konnectivity"),
            "ignition-server",
        },
    ),
    ({"platform": "agent", "publishing": "loadbalancer"}, AGENT | {"worker-konnectivity"}),
    (
        {"platform": "agent", "publishing": "loadbalancer", "private": True},
        PRIVATE | {"agent-capi-health", "worker-konnectivity"},
    ),
    (
        {"platform": "openstack", "version": "4.9", "publishing": "loadbalancer"},
        {"openstack-capi-health", "openstack-orc-health", "worker-konnectivity"},
    ),
]


@pytest.mark.parametrize(("settings", "more"), OKD_CASES, ids=words)
def test_okd(settings: Settings, more: set[str]) -> None:
    """As for HyperShift, with this document's own conditions."""
    assert required("okd-hcp", **settings) == HCP_ALWAYS | more


def test_openshift_versions_compare_as_versions() -> None:
    """4.9 comes before 4.10: what came with 4.10 is not required of 4.9."""
    early = required("openshift-host-ports", version="4.9")
    later = required("openshift-host-ports", version="4.10")
    assert later - early == {
        *("ovn-node-ovn-metrics", "local-ovn-29105"),
        "local-cloud-controller-operator-config-sync",
    }
    assert early < later


def test_openshift_plugins_exclude_each_other() -> None:
    """Of the rows that stand twice, one plugin has one."""
    plugins = ("ovn-kubernetes", "openshift-sdn", "third-party")
    got = {one: required("openshift-host-ports", network=one) for one in plugins}
    common = set.intersection(*got.values())
    own = {one: ids - common for one, ids in got.items()}
    assert own["openshift-sdn"] == {
        *("openshift-sdn-metrics", "openshift-sdn-health", "sdn-controller-metrics", "vxlan"),
        *("local-openshift-sdn-29100", "local-openshift-sdn-29101"),
    }
    assert own["third-party"] == {
        *("kube-proxy-metrics-9101", "kube-proxy-metrics-9102"),
        *("kube-proxy-health-10255", "kube-proxy-health-10256"),
    }
    assert own["ovn-kubernetes"] == {
        *("ovn-master-metrics", "ovn-node-metrics", "ovn-node-ovn-metrics"),
        *("ovn-egressip-healthcheck", "ovn-control-plane-metrics", "geneve"),
        *("ovn-northd-9641", "ovn-southd-9642", "ovn-northd-9643", "ovn-southd-9644"),
        *("local-ovn-29102", "local-ovn-29103", "local-ovn-29105", "local-ovn-29108"),
    }


FEATURES: dict[str, set[str]] = {
    "baremetal-provisioning": {
        *("ironic-inspector", "provisioning-httpd", "image-cache-httpd", "provisioning-httpd-tls"),
        *("ironic", "ironic-internal", "baremetal-operator-healthz", "baremetal-operator-webhook"),
        "baremetal-operator-metrics",
    },
    "cli-manager": {"cli-manager"},
    "cloud-node-manager": {"cloud-node-manager"},
    "csi-drivers": {
        *("csi-metrics", "local-csi-10300", "local-csi-10301", "local-csi-10302"),
        "local-csi-10303",
    },
    "ingress-node-firewall": {
        *("ingress-node-firewall-metrics-9300", "ingress-node-firewall-metrics-9301"),
        *("local-ingress-node-firewall-manager", "local-ingress-node-firewall-daemon"),
    },
    "ipsec": {"ipsec-ike", "ipsec-nat-t"},
    "metallb": {
        *("metallb-metrics-9120", "metallb-metrics-9121", "metallb-leader-election-tcp"),
        *("metallb-leader-election-udp", "local-metallb-29150", "local-metallb-29151"),
    },
    "run-once-duration-override": {"run-once-duration-override-webhook"},
    "windows-hybrid-networking": {"vxlan-windows"},
}


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
def test_openshift_features(feature: str) -> None:
    """A feature adds its own rows and nothing else."""
    without = required("openshift-host-ports")
    assert required("openshift-host-ports", features=(feature,)) - without == FEATURES[feature]


ON_PREM = {"onprem-lb-healthcheck", "onprem-lb", "local-onprem-lb-stats"}
ROUTER = {"router-http", "router-https", "router-stats", "router-fe-no-sni", "router-fe-sni"}


@pytest.mark.parametrize(
    ("platform", "more"),
    [("vsphere", ON_PREM), ("nutanix", ON_PREM), ("baremetal", ON_PREM | ROUTER), ("aws", set())],
)
def test_openshift_platforms(platform: str, more: set[str]) -> None:
    """On-prem platforms run the internal load balancer, bare metal also the router on its nodes."""
    without = required("openshift-host-ports")
    assert required("openshift-host-ports", platform=platform) - without == more


@pytest.mark.slow
def test_openshift_guest_clusters_not_on_ibm_cloud() -> None:
    """2041 is for hosted clusters, but not on IBM Cloud."""
    guest = required("openshift-host-ports", hypershift_guest=True)
    assert guest - required("openshift-host-ports") == {"konnectivity-agent"}
    ibm = required("openshift-host-ports", hypershift_guest=True, platform="ibmcloud")
    assert "konnectivity-agent" not in ibm


DCE_ALWAYS = {
    *("bootstrap-registry", "bootstrap-charts", "bootstrap-minio-api", "bootstrap-minio-ui"),
    *("etcd", "etcd-peer", "etcd-metrics", "kube-apiserver", "kubelet-control-plane"),
    *("kube-scheduler", "kube-controller-manager", "ssh", "node-exporter", "kubelet"),
    *("node-ports", "insight-metrics", "insight-logs", "insight-traces", "insight-audit-logs"),
    "container-registry",
}
METALLB = {
    *("metallb-metrics-tcp", "metallb-metrics-udp"),
    *("metallb-memberlist-tcp", "metallb-memberlist-udp"),
}
ISTIO = {"istio-gateway-http", "istio-gateway-https"}
CALICO = {"calico-bgp", "calico-typha"}
DCE_CASES: list[tuple[Settings, set[str]]] = [
    ({}, METALLB | ISTIO | CALICO),
    ({"metallb": False, "calico-typha": False}, ISTIO | {"calico-bgp"}),
    ({"cluster": "worker"}, METALLB | CALICO | {"worker-cluster-api"}),
    (
        {"cluster": "worker", "deployment-function": True},
        METALLB | CALICO | {"worker-cluster-api", "worker-cluster-ssh"},
    ),
    (
        {"deployment-function": True, "kubevip": True},
        METALLB | ISTIO | CALICO | {"kube-vip-metrics"},
    ),
    (
        {"calico-vxlan": True, "calico-ipip": True, "calico-wireguard-ipv6": True},
        METALLB | ISTIO | CALICO | {"calico-vxlan", "calico-ipip", "calico-wireguard-ipv6"},
    ),
    (
        {"cni": "cilium", "calico-vxlan": True},
        METALLB
        | ISTIO
        | {
            *("cilium-health", "hubble-server", "hubble-relay", "cilium-vxlan", "cilium-icmp"),
            *("cilium-agent-metrics", "cilium-operator-metrics", "cilium-proxy-metrics"),
            "cilium-wireguard",
        },
    ),
    (
        {"cni": "spiderpool"},
        METALLB
        | ISTIO
        | {
            *("spiderpool-agent", "spiderpool-agent-metrics", "spiderpool-controller"),
            *("spiderpool-controller-metrics", "spiderpool-controller-webhook", "spiderpool-cli"),
        },
    ),
]


@pytest.mark.parametrize(("settings", "more"), DCE_CASES, ids=words)
def test_dce(settings: Settings, more: set[str]) -> None:
    """CNI, cluster and options decide, and nothing else is required."""
    assert required("dce", **settings) == DCE_ALWAYS | more


def test_deckhouse_with_everything() -> None:
    """With the default settings every row of the document is required."""
    assert required("deckhouse-nodes") == set(requirements("deckhouse-nodes"))


DECKHOUSE_CASES: list[tuple[Settings, set[str]]] = [
    ({"nodes": "cloud"}, {"ssh-static-nodes"}),
    ({"inlet": "HostPort"}, {"ingress-nginx-metrics"}),
    ({"inlet": "LoadBalancer"}, {"ingress-nginx-metrics"}),
    (
        {"cni": "flannel"},
        {
            *("cilium-agent-health", "cilium-agent-metrics"),
            *("cilium-operator-metrics", "cilium-hubble"),
        },
    ),
    (
        {"modules": ("metallb",)},
        {
            *("vcd-webhook", "node-local-dns-metrics", "openvpn-udp", "openvpn-tcp", "drbd"),
            *("runtime-audit-engine-webhook", "runtime-audit-engine-metrics", "vm-live-migration"),
            *("sds-node-configurator-metrics", "sds-replicated-volume-api"),
            "sds-replicated-volume-metrics",
        },
    ),
]


@pytest.mark.parametrize(("settings", "without"), DECKHOUSE_CASES, ids=words)
def test_deckhouse(settings: Settings, without: set[str]) -> None:
    """A setting takes away the rows that name it and no others."""
    assert required("deckhouse-nodes") - required("deckhouse-nodes", **settings) == without


@pytest.mark.parametrize("name", ["hypershift-hcp", "okd-hcp"])
def test_node_port_warnings_end_when_the_port_is_given(name: str) -> None:
    """The warning stands while the port is the document's, and goes with a node port."""
    for port, warned in ((8091, True), (31091, False)):
        chosen = choose(name, publishing="nodeport", konnectivity_port=port)
        (one,) = (one for one in chosen.matrix.requirements if one.id == "worker-konnectivity")
        assert [holds(warning.when, chosen) for warning in one.warnings] == [warned]


HCP = ("hypershift-hcp", "okd-hcp")
SERVICES = ("konnectivity", "ignition", "oauth", "apiserver")


@pytest.mark.parametrize("name", HCP)
@pytest.mark.parametrize("way", ["route", "nodeport", "loadbalancer"])
def test_publishing_sets_all_services(name: str, way: str) -> None:
    """One setting says it of every service, and a service's own setting says it of that alone."""
    every = choose(name, publishing=way).settings
    alone = choose(name, publishing=way, konnectivity_publishing="loadbalancer").settings

    assert [every[f"{service}-publishing"] for service in SERVICES] == [way] * 4
    assert [alone[f"{service}-publishing"] for service in SERVICES] == ["loadbalancer", *[way] * 3]


MIXED: list[tuple[Settings, set[str]]] = [
    ({"konnectivity_publishing": "nodeport"}, {"worker-konnectivity", "worker-ignition-route"}),
    (
        {"publishing": "loadbalancer", "ignition_publishing": "route"},
        {"worker-konnectivity", "worker-ignition-route"},
    ),
    (
        {"publishing": "route", "ignition_publishing": "nodeport", "platform": "agent"},
        {"worker-konnectivity-route", "worker-ignition-proxy", "agent-ignition-proxy"},
    ),
    ({"publishing": "route", "oauth_publishing": "nodeport"}, ROUTES),
    ({"publishing": "route", "apiserver_publishing": "nodeport"}, ROUTES),
]


@pytest.mark.parametrize("name", HCP)
@pytest.mark.parametrize(("settings", "more"), MIXED, ids=words)
def test_each_service_in_its_own_way(name: str, settings: Settings, more: set[str]) -> None:
    """A row is required by how its own service is published, whatever the others are."""
    published = {
        one for one in required(name, **settings) if "konnectivity" in one or "ignition-" in one
    }
    assert published - {"ignition-server"} == more


@pytest.mark.parametrize("name", HCP)
def test_the_api_server_at_a_node_port(name: str) -> None:
    """Its rows take the node port that is given, and warn until then."""
    ids = {"kube-apiserver", "kube-apiserver-external", "worker-kube-apiserver"}
    for port, warned in ((6443, True), (31443, False)):
        chosen = choose(name, apiserver_publishing="nodeport", apiserver_port=port)
        rows = [one for one in chosen.matrix.requirements if one.id in ids]
        assert len(rows) == 3
        for one in rows:
            assert [holds(warning.when, chosen) for warning in one.warnings] == [warned]


@pytest.mark.parametrize("name", ["hypershift-hcp", "okd-hcp"])
def test_no_warning_behind_a_load_balancer(name: str) -> None:
    """A load balancer really serves 8091: nothing to warn of."""
    chosen = choose(name, publishing="loadbalancer")
    (one,) = (one for one in chosen.matrix.requirements if one.id == "worker-konnectivity")
    assert not any(holds(warning.when, chosen) for warning in one.warnings)

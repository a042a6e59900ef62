"""Rows of the documents that are easy to get wrong: ends, ports and conditions, in full."""

from __future__ import annotations

import pytest

from tests.matrices.source import Plain, as_list, requirements

OCP, HYPERSHIFT, OKD = "openshift-host-ports", "hypershift-hcp", "okd-hcp"
DCE, DECKHOUSE = "dce", "deckhouse-nodes"

ON_PREM = ["baremetal", "vsphere", "openstack", "nutanix"]
API_SERVER: list[object] = [{"setting": "apiserver-port"}]
KONNECTIVITY: list[object] = [{"setting": "konnectivity-port"}]
IGNITION: list[object] = [{"setting": "ignition-port"}]

# matrix, id, ends, protocol, ports, when, and what else the requirement says (probe apart).
Row = tuple[str, str, str, str, object, Plain, Plain]
ROWS: list[Row] = [
    # "baremetal only; only on nodes running router pod replicas"
    (OCP, "router-http", "node > router-node", "tcp", [80],
     {"platform": "baremetal", "version": ">=3.0"}, {}),
    # "Only for Hypershift guest clusters not on IBM cloud"
    (OCP, "konnectivity-agent", "node > node", "tcp", [2041],
     {"hypershift-guest": True, "version": ">=4.10"}, {"unless": {"platform": "ibmcloud"}}),
    (OCP, "etcd-peer", "node > control-plane", "tcp", [2380], {}, {}),
    (OCP, "image-cache-httpd", "node > control-plane", "tcp", [6181],
     {"features": "baremetal-provisioning", "version": ">=4.7"}, {}),
    (OCP, "ironic-internal", "node > control-plane", "tcp", [6388],
     {"features": "baremetal-provisioning", "version": ">=4.12"}, {}),
    # Rows that stand twice, for plugins that exclude each other.
    (OCP, "openshift-sdn-metrics", "node > node", "tcp", [9101],
     {"network": "openshift-sdn"}, {}),
    (OCP, "kube-proxy-metrics-9101", "node > node", "tcp", [9101],
     {"network": "third-party"}, {}),
    (OCP, "ovn-master-metrics", "node > control-plane", "tcp", [9102],
     {"network": "ovn-kubernetes"}, {}),
    (OCP, "kube-proxy-metrics-9102", "node > node", "tcp", [9102],
     {"network": "third-party", "version": ">=4.7"}, {}),
    (OCP, "openshift-sdn-health", "node > node", "tcp", [10256], {"network": "openshift-sdn"}, {}),
    (OCP, "kube-proxy-health-10256", "node > node", "tcp", [10256],
     {"network": "third-party"}, {}),
    # The process name ties the row to a plugin or a component.
    (OCP, "ovn-node-metrics", "node > node", "tcp", [9103], {"network": "ovn-kubernetes"}, {}),
    (OCP, "ovn-node-ovn-metrics", "node > node", "tcp", [9105],
     {"network": "ovn-kubernetes", "version": ">=4.10"}, {}),
    (OCP, "ovn-control-plane-metrics", "node > control-plane", "tcp", [9108],
     {"network": "ovn-kubernetes", "version": ">=4.14"}, {}),
    (OCP, "baremetal-operator-metrics", "node > control-plane", "tcp", [60000],
     {"features": "baremetal-provisioning", "version": ">=4.6"}, {}),
    (OCP, "sdn-controller-metrics", "node > control-plane", "tcp", [9106],
     {"network": "openshift-sdn", "version": ">=4.10"}, {}),
    (OCP, "ovn-egressip-healthcheck", "node > node", "tcp", [9107],
     {"network": "ovn-kubernetes", "version": ">=4.12"}, {"optional": True}),
    (OCP, "metallb-leader-election-tcp", "node > node", "tcp", [9122],
     {"features": "metallb", "version": ">=4.9"}, {}),
    (OCP, "metallb-leader-election-udp", "node > node", "udp", [9122],
     {"features": "metallb", "version": ">=4.9"}, {}),
    (OCP, "csi-metrics", "node > node", "tcp", ["9200-9219"],
     {"features": "csi-drivers", "version": ">=4.8"}, {}),
    # The notes say control plane only, the column is empty.
    (OCP, "cloud-controller-operator-metrics-9257", "node > control-plane", "tcp", [9257],
     {"version": ">=4.15"}, {}),
    (OCP, "cloud-controller-operator-metrics-9258", "node > control-plane", "tcp", [9258],
     {"version": ">=4.9"}, {}),
    (OCP, "ingress-node-firewall-metrics-9301", "node > node", "tcp", [9301],
     {"features": "ingress-node-firewall", "version": ">=4.12"}, {}),
    (OCP, "onprem-lb-healthcheck", "node > node", "tcp", [9444],
     {"platform": ON_PREM, "version": ">=4.7"}, {}),
    (OCP, "run-once-duration-override-webhook", "node > node", "tcp", [9448],
     {"features": "run-once-duration-override", "version": ">=4.13"}, {}),
    (OCP, "cli-manager", "node > node", "tcp", [9449],
     {"features": "cli-manager", "version": ">=4.16"}, {}),
    (OCP, "cloud-node-manager", "node > node", "tcp", [10263],
     {"features": "cloud-node-manager", "version": ">=4.9"}, {}),
    # Under External, but "localhost only".
    (OCP, "router-fe-no-sni", "node > router-node", "tcp", [10443],
     {"platform": "baremetal", "version": ">=3.0"}, {"expect": "denied"}),
    (OCP, "router-fe-sni", "node > router-node", "tcp", [10444],
     {"platform": "baremetal", "version": ">=3.0"}, {"expect": "denied"}),
    (OCP, "ipsec-nat-t", "node > node", "udp", [4500],
     {"network": "ovn-kubernetes", "features": "ipsec", "version": ">=4.7"}, {}),
    (OCP, "vxlan", "node > node", "udp", [4789],
     {"network": "openshift-sdn", "version": ">=3.0"}, {}),
    (OCP, "vxlan-windows", "node > node", "udp", [4789],
     {"network": "ovn-kubernetes", "features": "windows-hybrid-networking", "version": ">=3.0"},
     {}),
    (OCP, "geneve", "node > node", "udp", [6081],
     {"network": "ovn-kubernetes", "version": ">=4.3"}, {}),
    (OCP, "local-etcd", "node > node", "tcp", [9977], {}, {"expect": "denied"}),
    (OCP, "local-csi-10303", "node > node", "tcp", [10303],
     {"features": "csi-drivers", "version": ">=4.9"}, {"expect": "denied"}),
    (OCP, "local-openshift-sdn-29100", "node > control-plane", "tcp", [29100],
     {"network": "openshift-sdn", "version": ">=4.10"}, {"expect": "denied"}),
    (OCP, "local-ovn-29108", "node > control-plane", "tcp", [29108],
     {"network": "ovn-kubernetes", "version": ">=4.14"}, {"expect": "denied"}),
    (OCP, "local-onprem-lb-stats", "node > node", "tcp", [29445],
     {"platform": ON_PREM, "version": ">=4.7"}, {"expect": "denied"}),
    # The API server stays at 6443 everywhere; external clients are optional.
    (HYPERSHIFT, "kube-apiserver", "worker > hcp,hcp-apiserver", "tcp", API_SERVER, {}, {}),
    (HYPERSHIFT, "kube-apiserver-external", "external-client > hcp,hcp-apiserver", "tcp",
     API_SERVER, {}, {"optional": True}),
    (HYPERSHIFT, "azure-kube-apiserver", "worker > hcp,hcp-apiserver", "tcp", [7443],
     {"platform": "azure"}, {}),
    (HYPERSHIFT, "ibmcloud-kube-apiserver-external", "external-client > hcp,hcp-apiserver", "tcp",
     [2040], {"platform": "ibmcloud"}, {"optional": True}),
    (HYPERSHIFT, "hcp-management-api", "hcp > management-api", "tcp", [6443], {}, {}),
    (HYPERSHIFT, "powervs-capi-health", "management-cluster > hcp", "tcp", [9440],
     {"platform": "powervs"}, {}),
    # The two documents disagree about the version.
    (HYPERSHIFT, "openstack-orc-health", "management-cluster > hcp", "tcp", [8081],
     {"platform": "openstack", "version": ">=4.19"}, {}),
    (OKD, "openstack-orc-health", "management-cluster > hcp", "tcp", [8081],
     {"platform": "openstack"}, {}),
    # Binds to loopback.
    (HYPERSHIFT, "agent-capi-metrics", "worker,management-cluster,external-client > hcp", "tcp",
     [8080], {"platform": "agent"}, {"expect": "denied"}),
    (OKD, "agent-capi-metrics", "worker,management-cluster,external-client > hcp", "tcp",
     [8080], {"platform": "agent"}, {"expect": "denied", "unless": {"private": True}}),
    (HYPERSHIFT, "none-ignition-proxy", "worker > hcp,hcp-ignition", "tcp", IGNITION,
     {"platform": "none", "ignition-publishing": "nodeport", "phase": "bootstrap"}, {}),
    (HYPERSHIFT, "private-router-http", "worker > hcp", "tcp", [8080],
     {"private": True, "platform": ["aws", "azure", "gcp"]}, {}),
    (OKD, "private-router-https", "worker > hcp", "tcp", [8443], {"private": True}, {}),
    (HYPERSHIFT, "worker-https", "worker > external-https", "tcp", [443], {}, {}),
    (HYPERSHIFT, "worker-konnectivity-route", "worker > ocp-router,konnectivity-route", "tcp",
     [443],
     {"konnectivity-publishing": "route"}, {}),
    (HYPERSHIFT, "worker-ignition-route", "worker > ocp-router,ignition-route", "tcp", [443],
     {"ignition-publishing": "route", "phase": "bootstrap"}, {}),
    (HYPERSHIFT, "worker-konnectivity", "worker > hcp,hcp-konnectivity", "tcp", KONNECTIVITY,
     {"konnectivity-publishing": ["nodeport", "loadbalancer"]}, {}),
    (HYPERSHIFT, "worker-ignition-proxy", "worker > hcp,hcp-ignition", "tcp", IGNITION,
     {"ignition-publishing": "nodeport", "platform": ["agent", "none"], "phase": "bootstrap"}, {}),
    (OKD, "worker-ignition-proxy", "worker > hcp,hcp-ignition", "tcp", IGNITION,
     {"ignition-publishing": "nodeport", "platform": ["agent", "baremetal-no-agent"],
      "phase": "bootstrap"}, {}),
    (OKD, "ignition-server", "worker > hcp", "tcp", [9090],
     {"ignition-publishing": ["nodeport", "route"], "phase": "bootstrap"}, {}),
    (OKD, "hcp-dns-udp", "hcp > dns", "udp", [53], {}, {}),
    # "through the data plane to the configured proxy and then to its final destination"
    (OKD, "worker-http-proxy", "worker > proxy,http-proxy", "tcp",
     [{"setting": "http-proxy-port"}], {"proxy": True}, {}),
    (OKD, "worker-https-proxy", "worker > proxy,https-proxy", "tcp",
     [{"setting": "https-proxy-port"}], {"proxy": True}, {}),
    (OKD, "proxy-external-https", "proxy,https-proxy > external-https", "tcp", [443],
     {"proxy": True}, {}),
    # "You must open the firewall port 53" for both protocols.
    (OKD, "workloads-dns-tcp", "hcp > dns", "tcp", [53], {"proxy": True}, {}),
    (OKD, "workloads-dns-udp", "hcp > dns", "udp", [53], {"proxy": True}, {}),
    (OKD, "worker-ldap", "worker > ldap", "tcp", [{"setting": "ldap-port"}], {"ldap": True}, {}),
    (OKD, "worker-stub-proxy", "worker > proxy,ignition-proxy", "tcp",
     [{"setting": "ignition-proxy-port"}], {"ignition-proxy": True, "phase": "bootstrap"}, {}),
    (OKD, "node-local-haproxy", "worker > node-local-proxy", "tcp",
     [{"setting": "node-local-port"}], {"apiserver-proxy": False, "phase": "post-bootstrap"}, {}),
    (OKD, "node-local-own-proxy", "worker > node-local-proxy", "tcp",
     [{"setting": "node-local-port"}], {"apiserver-proxy": True, "phase": "post-bootstrap"}, {}),
    (OKD, "worker-apiserver-proxy", "worker > proxy,https-proxy", "tcp",
     [{"setting": "https-proxy-port"}], {"apiserver-proxy": True}, {}),
    (OKD, "management-proxy", "management-cluster,hcp > management-proxy", "tcp",
     [{"setting": "management-proxy-port"}], {"management-proxy": True}, {}),
    # As printed, also where the names are swapped.
    (DCE, "kube-scheduler", "node > control-plane", "tcp", [10257], {}, {}),
    (DCE, "kube-controller-manager", "node > control-plane", "tcp", [10259], {}, {}),
    (DCE, "bootstrap-registry", "node > bootstrap", "tcp", [443], {}, {}),
    (DCE, "node-ports", "node > node", "tcp", ["30000-32767"], {}, {}),
    (DCE, "calico-bgp", "node > node", "tcp", [179], {"cni": "calico"}, {}),
    (DCE, "calico-vxlan", "node > node", "udp", [4789],
     {"cni": "calico", "calico-vxlan": True}, {}),
    (DCE, "calico-ipip", "node > node", "ipproto", 4,
     {"cni": "calico", "calico-ipip": True}, {"family": "ipv4"}),
    (DCE, "calico-wireguard-ipv4", "node > node", "udp", [51820],
     {"cni": "calico", "calico-wireguard-ipv4": True}, {"family": "ipv4"}),
    (DCE, "calico-wireguard-ipv6", "node > node", "udp", [51821],
     {"cni": "calico", "calico-wireguard-ipv6": True}, {"family": "ipv6"}),
    (DCE, "metallb-metrics-udp", "node > node", "udp", [7472], {"metallb": True}, {}),
    (DCE, "cilium-wireguard", "node > node", "udp", [51871], {"cni": "cilium"}, {}),
    (DCE, "cilium-icmp", "node > node", "icmp", "echo", {"cni": "cilium"}, {}),
    (DCE, "spiderpool-controller-gops", "node > node", "tcp", [5724],
     {"cni": "spiderpool", "spiderpool-gops": True}, {}),
    (DCE, "kube-vip-metrics", "node > control-plane", "tcp", [2112], {"kubevip": True}, {}),
    (DCE, "istio-gateway-https", "web-client > istio-gateway-vip", "tcp", [443],
     {"cluster": "global"}, {}),
    (DCE, "insight-audit-logs", "node > insight-vip", "tcp", [8006], {}, {}),
    (DCE, "worker-cluster-ssh", "global-node > worker-cluster-node", "tcp", [22],
     {"cluster": "worker", "deployment-function": True}, {}),
    (DCE, "worker-cluster-api", "global-node > worker-cluster-api", "tcp", [6443],
     {"cluster": "worker"}, {}),
    (DECKHOUSE, "etcd", "master > master", "tcp", [2379, 2380], {}, {}),
    (DECKHOUSE, "vcd-webhook", "master > master", "tcp", [4201],
     {"modules": "cloud-provider-vcd"}, {}),
    (DECKHOUSE, "ssh-static-nodes", "master > node", "tcp", [22], {"nodes": "static"}, {}),
    # The direction is the document's.
    (DECKHOUSE, "bashible-apiserver", "master > node", "tcp", [4221], {}, {}),
    (DECKHOUSE, "control-plane-metrics", "node > node", "tcp", [4209], {}, {}),
    (DECKHOUSE, "ntp-between-nodes", "node > master", "udp", [4234], {}, {}),
    (DECKHOUSE, "icmp", "node > node", "icmp", "echo", {}, {}),
    (DECKHOUSE, "drbd", "node > node", "tcp", ["7000-7999"],
     {"modules": "sds-replicated-volume"}, {}),
    (DECKHOUSE, "vxlan", "node > node", "udp", [8469, 8472], {}, {}),
    (DECKHOUSE, "ingress-nginx-metrics", "node > node", "tcp", [4207, 4208],
     {"inlet": "HostWithFailover"}, {}),
    (DECKHOUSE, "vm-live-migration", "node > node", "tcp", [49152, 49153],
     {"modules": "virtualization"}, {}),
    (DECKHOUSE, "speakers-memberlist-udp", "node > node", "udp", [4218, 4225],
     {"modules": ["metallb", "l2-load-balancer"]}, {}),
    (DECKHOUSE, "cilium-hubble", "node > node", "tcp", [4244], {"cni": "cilium"}, {}),
    (DECKHOUSE, "external-ssh", "external > master", "tcp", [22, 22322], {}, {}),
    (DECKHOUSE, "ingress", "external > frontend", "tcp", [80, 443], {}, {}),
    (DECKHOUSE, "openvpn-tcp", "external > frontend", "tcp", [5416], {"modules": "openvpn"}, {}),
    (DECKHOUSE, "ntp", "node > external-ntp", "udp", [123], {}, {}),
    (DECKHOUSE, "registry", "node > external-registry", "tcp", [443], {}, {}),
]  # fmt: skip

# What is sent where plain bytes prove little: the ports of each probe, as (matrix, id) pairs.
PROBES = {
    "dns": [
        (DECKHOUSE, "dns-udp"), (DECKHOUSE, "dns-tcp"), (OKD, "hcp-dns-tcp"), (OKD, "hcp-dns-udp"),
        (OKD, "worker-dns-tcp"), (OKD, "worker-dns-udp"), (OKD, "workloads-dns-tcp"),
        (OKD, "workloads-dns-udp"), (HYPERSHIFT, "hcp-dns-tcp"),
        (HYPERSHIFT, "hcp-dns-udp"), (HYPERSHIFT, "worker-dns-tcp"), (HYPERSHIFT, "worker-dns-udp"),
    ],
    "vxlan": [
        (OCP, "vxlan"), (OCP, "vxlan-windows"), (DCE, "calico-vxlan"), (DCE, "cilium-vxlan"),
        (DECKHOUSE, "vxlan"),
    ],
    "geneve": [(OCP, "geneve")],
    "ntp": [(DECKHOUSE, "ntp"), (DECKHOUSE, "ntp-between-nodes")],
    "ipip": [(DCE, "calico-ipip")],
    "ike": [(OCP, "ipsec-ike"), (OCP, "ipsec-nat-t")],
    "openvpn": [(DECKHOUSE, "openvpn-udp"), (DECKHOUSE, "openvpn-tcp")],
    "memberlist": [
        (OCP, "metallb-leader-election-tcp"), (OCP, "metallb-leader-election-udp"),
        (DCE, "metallb-memberlist-tcp"), (DCE, "metallb-memberlist-udp"),
        (DECKHOUSE, "speakers-memberlist-tcp"), (DECKHOUSE, "speakers-memberlist-udp"),
    ],
}  # fmt: skip
NAMES = (OCP, HYPERSHIFT, OKD, DCE, DECKHOUSE)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}:{row[1]}" for row in ROWS])
def test_row(row: Row) -> None:
    """A tricky row became this requirement, with these conditions and nothing more."""
    name, key, ends, protocol, ports, when, rest = row
    one = requirements(name)[key]
    assert f"{','.join(as_list(one['from']))} > {','.join(as_list(one['to']))}" == ends
    assert one[protocol] == ports
    assert one.get("when", {}) == when
    said = {key: one[key] for key in ("unless", "optional", "expect", "family") if key in one}
    assert said == rest


@pytest.mark.parametrize("probe", PROBES)
def test_probe_stands_where_it_is_needed(probe: str) -> None:
    """Exactly these rows are probed with packets of their own protocol."""
    found = {
        (name, key)
        for name in NAMES
        for key, one in requirements(name).items()
        if one.get("probe") == probe
    }
    assert found == set(PROBES[probe])


@pytest.mark.parametrize("name", NAMES)
def test_overlay_ports_are_never_plain_bytes(name: str) -> None:
    """A VXLAN, Geneve or DNS port is never proved by random bytes."""
    need = {4789: "vxlan", 8472: "vxlan", 8469: "vxlan", 6081: "geneve", 53: "dns"}
    for one in requirements(name).values():
        for port in one.get("udp", []):
            assert one.get("probe") == need.get(port, one.get("probe"))


def test_removed_components_are_left_out() -> None:
    """3306 and 8089 belong to components that were removed: nothing requires them."""
    ports = [port for one in requirements(OCP).values() for port in one.get("tcp", [])]
    assert not {3306, 8089} & set(ports)


@pytest.mark.parametrize("name", [HYPERSHIFT, OKD])
def test_the_control_plane_never_dials_a_worker(name: str) -> None:
    """Konnectivity is a reverse tunnel: no requirement leads to a worker."""
    assert all("worker" not in as_list(one["to"]) for one in requirements(name).values())


def test_the_two_hcp_documents_are_not_merged() -> None:
    """9090, 7443, 2040, PowerVS and proxies stand in one of the documents only."""
    ports = {
        name: {
            str(port)
            for one in requirements(name).values()
            for port in one.get("tcp", [])
            if "Proxy support" not in one["row"]
        }
        for name in (HYPERSHIFT, OKD)
    }
    assert ports[HYPERSHIFT] - ports[OKD] == {"7443", "2040"}
    assert ports[OKD] - ports[HYPERSHIFT] == {"9090"}
    assert "powervs" not in str(requirements(OKD))


def test_localhost_only_rows_are_all_denied() -> None:
    """Every row of the table is denied, and outside of it only the two router rows are."""
    denied = [one for one in requirements(OCP).values() if one.get("expect") == "denied"]
    local = [one for one in requirements(OCP).values() if one["row"] == "Localhost-only"]
    assert [one for one in denied if one in local] == local
    others = {one["id"] for one in denied if one not in local}
    assert others == {"router-fe-no-sni", "router-fe-sni"}


# Requirement -> the settings under which its number is the pod's and not what workers dial.
TUNNEL_NODE_PORT: Plain = {"konnectivity-publishing": "nodeport", "konnectivity-port": 8091}
NODE_PORT: Plain = {"apiserver-publishing": "nodeport", "apiserver-port": 6443}
WARNED: list[tuple[str, str, list[Plain]]] = [
    *(
        (name, key, [NODE_PORT])
        for name in (HYPERSHIFT, OKD)
        for key in ("kube-apiserver", "kube-apiserver-external", "worker-kube-apiserver")
    ),
    (
        HYPERSHIFT,
        "worker-konnectivity",
        [TUNNEL_NODE_PORT],
    ),
    (HYPERSHIFT, "worker-ignition-proxy", [{"ignition-port": 8443}]),
    (HYPERSHIFT, "agent-ignition-proxy", [{"ignition-port": 8443}]),
    (HYPERSHIFT, "none-ignition-proxy", [{"ignition-port": 8443}]),
    (HYPERSHIFT, "private-router-http", [{"private": True}]),
    (HYPERSHIFT, "private-router-https", [{"private": True}]),
    (
        OKD,
        "worker-konnectivity",
        [TUNNEL_NODE_PORT],
    ),
    (OKD, "worker-ignition-proxy", [{"ignition-port": 8443}]),
    (OKD, "agent-ignition-proxy", [{"ignition-port": 8443}]),
    (OKD, "baremetal-ignition-proxy", [{"ignition-port": 8443}]),
    (OKD, "private-router-http", [{"private": True}]),
    (OKD, "private-router-https", [{"private": True}]),
    (
        OKD,
        "ignition-server",
        [{"ignition-publishing": "route"}, {"ignition-publishing": "nodeport"}],
    ),
]


def test_warnings_about_pod_ports() -> None:
    """Exactly these rows warn, and only while the number is the one of the document."""
    found = [
        (name, key, [warning["when"] for warning in one["warnings"]])
        for name in (HYPERSHIFT, OKD)
        for key, one in requirements(name).items()
        if "warnings" in one
    ]
    assert sorted(found, key=str) == sorted(WARNED, key=str)

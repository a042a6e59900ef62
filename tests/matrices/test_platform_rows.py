"""Ends and conditions of every row of the platforms and layers, as they were agreed.

A line is ``IDS: FROM > TO | WHEN | MARKS``. In WHEN ``name`` is a setting that is true, ``!name``
one that is false, ``name=a,b`` one of these values; behind ``unless`` stand its terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.matrices.source import LAYERS, PLATFORMS, Plain, as_list, requirements

ROWS = {
    "rke2": """
        api supervisor: node > server
        kubelet node-ports: node > node
        etcd-client etcd-peer etcd-metrics: server > server
        canal-vxlan: node > node | cni=canal vxlan
        canal-health: node > node | cni=canal
        canal-wireguard-ipv4: node > node | cni=canal wireguard unless families=ipv6 | ipv4
        canal-wireguard-ipv6: node > node | cni=canal wireguard unless families=ipv4 | ipv6
        cilium-icmp cilium-health: node > node | cni=cilium
        cilium-vxlan: node > node | cni=cilium vxlan
        cilium-wireguard: node > node | cni=cilium wireguard
        calico-bgp: node > node | cni=calico calico-bgp
        calico-vxlan: node > node | cni=calico vxlan
        calico-typha calico-typha-health: node > node | cni=calico calico-typha
        calico-health: node > node | cni=calico
        flannel-vxlan: node > node | cni=flannel vxlan
        windows-vxlan: node > node | windows cni=calico,flannel vxlan
        windows-bgp: node > node | windows cni=calico calico-bgp
    """,
    "k3s": """
        etcd: server > server | embedded-etcd
        api: node > server
        flannel-vxlan: node > node | flannel-backend=vxlan
        kubelet: node > node | metrics-server
        flannel-wireguard-ipv4: node > node | flannel-backend=wireguard unless families=ipv6 | ipv4
        flannel-wireguard-ipv6: node > node | flannel-backend=wireguard unless families=ipv4 | ipv6
        registry-peers registry: node > node | embedded-registry
        local-etcd-metrics local-etcd-http local-kube-apiserver local-cri: node > node || denied
        local-kubelet-health local-kube-proxy-metrics: node > node || denied
        local-kube-proxy-health local-kube-controller-manager: node > node || denied
        local-cloud-controller-manager local-kube-scheduler: node > node || denied
    """,
    "kubeadm": """
        api: node,client,load-balancer > control-plane
        etcd: control-plane > control-plane | etcd=stacked
        etcd-external: control-plane,etcd > etcd | etcd=external
        kubelet-control-plane: control-plane > control-plane
        kubelet-worker: control-plane > worker
        kube-proxy: load-balancer > worker
        node-ports-tcp node-ports-udp: node,client,load-balancer > worker
    """,
    "openshift-upi": """
        icmp metrics host-services-tcp kubernetes-ports host-services-udp: node > node
        node-ports-tcp node-ports-udp: node > node
        openshift-sdn vxlan: node > node | network=openshift-sdn
        geneve: node > node | network=ovn-kubernetes
        ipsec-ike ipsec-nat-t ipsec-esp: node > node | ipsec
        machine-config-server api: node > control-plane
        ntp: node > ntp
        etcd: control-plane > control-plane
    """,
    "openshift-load-balancer": """
        api-front: node,external-client > api-lb
        mcs-front: node > api-lb
        api-back mcs-back: api-lb > control-plane
        api-back-bootstrap mcs-back-bootstrap: api-lb > bootstrap | phase=bootstrap
        https-front http-front: node,external-client > ingress-lb
        https-back http-back: ingress-lb > worker | !three-node
        https-back-control-plane http-back-control-plane: ingress-lb > control-plane | three-node
    """,
    "openshift-ipi": """
        dhcp: node > bootstrap | platform=baremetal provisioning-network | optional
        dhcp-answer: bootstrap > node | platform=baremetal provisioning-network | optional
        tftp: node > bootstrap | platform=baremetal provisioning-network
        rhcos-image: node > provisioner | platform=baremetal unless image-caching !virtual-media
        ntp: node > ntp | platform=baremetal
        dns-tcp dns-udp: node > dns | platform=baremetal
        inspector inspector-proxy: node > control-plane | platform=baremetal
        ironic ironic-proxy: node > bootstrap,control-plane | platform=baremetal
        media: bmc > provisioner,control-plane | platform=baremetal virtual-media !tls
        media-tls: bmc > provisioner,control-plane | platform=baremetal virtual-media tls
        image-cache: bmc > provisioner | platform=baremetal image-caching !tls
        image-cache-tls: bmc > provisioner | platform=baremetal image-caching tls
        ipa: bootstrap,control-plane > node | platform=baremetal
        vsphere-vrrp: node > node | platform=vsphere | 224.0.0.18
        vsphere-icmp vsphere-metrics vsphere-host-services-tcp: node > node | platform=vsphere
        vsphere-kubernetes-ports vsphere-host-services-udp: node > node | platform=vsphere
        vsphere-node-ports-tcp vsphere-node-ports-udp: node > node | platform=vsphere
        vsphere-openshift-sdn: node > node | platform=vsphere network=openshift-sdn
        vsphere-vxlan: node > node | platform=vsphere network=openshift-sdn
        vsphere-geneve: node > node | platform=vsphere network=ovn-kubernetes
        vsphere-ipsec-ike vsphere-ipsec-nat-t: node > node | platform=vsphere ipsec
        vsphere-ipsec-esp: node > node | platform=vsphere ipsec
        vsphere-api: node > control-plane | platform=vsphere
        vsphere-etcd: control-plane > control-plane | platform=vsphere
    """,
    "cni-cilium": """
        health-icmp health-tcp: node > node || optional health
        vxlan: node > node | tunnel=vxlan
        geneve: node > node | tunnel=geneve
        wireguard: node > node | encryption=wireguard
        ipsec: node > node | encryption=ipsec
        etcd: worker > control-plane | kvstore
        hubble hubble-relay: node > node | hubble
        mutual-authentication: node > node | mutual-authentication
        agent-metrics operator-metrics envoy-metrics: node > node | prometheus
        local-spire-health local-agent-pprof local-operator-pprof: node > node || denied
        local-hubble-relay-pprof local-envoy-health local-agent-health: node > node || denied
        local-agent-gops local-operator-gops local-hubble-relay-gops: node > node || denied
        local-envoy-admin: node > node || denied
    """,
    "cni-calico": """
        bgp: node > node | bgp
        ipip: node > node | ipip | ipv4
        vxlan: node > node | vxlan
        typha: node > node | typha
        wireguard-ipv4: node > node | wireguard-ipv4 | ipv4
        wireguard-ipv6: node > node | wireguard-ipv6 | ipv6
        flannel: node > node | flannel
        api: node > control-plane
        etcd: node > etcd | datastore=etcd
    """,
    "harvester": """
        etcd-client etcd-peer kube-vip: management > management
        etcd-metrics etcd-http kube-scheduler-health: management > management || optional
        kube-controller-manager-health kube-controller-manager: management > management || optional
        kube-scheduler cloud-controller-manager-10258: management > management || optional
        cloud-controller-manager-10260: management > management || optional
        api supervisor: node > management
        kubelet felix canal-health nginx-controller-8181 nginx-controller-8444 nginx: node > node
        node-exporter node-ports ssh iscsi canal-vxlan: node > node
        containerd kube-proxy-health rke2-agent nginx-internal: node > node || optional
        nginx-workers: node > node || optional
        rancher: node > rancher-lb | rancher
        rancher-guests: guest-vm > rancher-lb | rancher
    """,
    "k0s": """
        etcd k0s-api: controller > controller
        keepalived: controller > controller | cplb | 224.0.0.18
        api: worker,cli > controller
        konnectivity: worker > controller
        kube-router-bgp: worker > worker | cni=kube-router
        calico-vxlan: worker > worker | cni=calico
        kubelet: controller,worker > worker
    """,
    "talos": """
        apid-control-plane: talosctl,control-plane > control-plane
        apid-worker: control-plane > worker
        trustd: worker > control-plane
        vxlan-4789: node > node | cni=flannel,calico
        vxlan-8472: node > node | cni=cilium
    """,
}


def test_every_row_of_every_platform_is_as_agreed() -> None:
    """No row is missing, and none has other ends, conditions or marks."""
    assert set(ROWS) == {*PLATFORMS, *LAYERS}
    for name, text in ROWS.items():
        assert dict(agreed(text)) == {key: plain(one) for key, one in requirements(name).items()}, (
            name
        )


def agreed(text: str) -> Iterator[tuple[str, Plain]]:
    """The requirements of a text of lines."""
    for line in text.strip().splitlines():
        ids, _, rest = line.strip().partition(": ")
        ends, conditions, marks = (*(part.strip() for part in rest.split("|")), "", "")[:3]
        source, _, destination = ends.partition(" > ")
        when, _, unless = conditions.partition("unless ")
        for one in ids.split():
            yield (
                one,
                {
                    "from": source.split(","),
                    "to": destination.split(","),
                    "when": dict(map(term, when.split())),
                    "unless": dict(map(term, unless.split())),
                    "marks": set(marks.split()),
                },
            )


def term(word: str) -> tuple[str, list[Any]]:
    """A key of a condition and its values."""
    name, _, values = word.partition("=")
    return (name, list(values.split(","))) if values else (name.lstrip("!"), [name[0] != "!"])


def plain(one: Plain) -> Plain:
    """A requirement in the same shape."""
    marks = {str(one[key]) for key in ("family", "any_of", "multicast", "expect") if key in one}
    return {
        "from": as_list(one["from"]),
        "to": as_list(one["to"]),
        "when": {key: as_list(value) for key, value in one.get("when", {}).items()},
        "unless": {key: as_list(value) for key, value in one.get("unless", {}).items()},
        "marks": marks | ({"optional"} if one.get("optional") else set()),
    }

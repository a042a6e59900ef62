"""Kubean and Kubespray: the cluster's references, its machines, and its variables."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from netprobe.load.manifest.kinds.shared import (
    read_plain,
    say_address,
    say_known,
    say_node_proxy,
    say_setting,
)
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said
from netprobe.model.matrix import fold_role

REFERENCES = ("hostsConfRef", "varsConfRef")


def read_kubean_cluster(one: Manifest) -> Iterator[Said]:
    """Say what else must be given; Clusters of other projects say nothing here."""
    if not one.text("apiVersion").startswith("kubean.io/"):
        yield NoteSaid(one.place("apiVersion"), "this Cluster is none of Kubean: nothing is taken")


def references_of(one: Manifest) -> Iterator[tuple[str, str, str]]:
    """Give place, key and name of each ConfigMap that the cluster refers to."""
    if one.text("apiVersion").startswith("kubean.io/"):
        for key in REFERENCES:
            path = ("spec", key, "name")
            if one.has(*path):
                yield one.place(*path), key, one.text(*path)


_ADDRESSES = ("ip", "access_ip", "ansible_host")
# Groups of groups and of nothing that a matrix could know.
_NO_ROLES = frozenset({"calico-rr", "k8s-cluster"})


def read_kubean_hosts(one: Manifest) -> Iterator[Said]:
    """Say each host's address with its groups as roles; no password of the file is read."""
    groups: dict[str, list[str]] = {}
    for group in one.keys("all", "children"):
        if fold_role(group) not in _NO_ROLES:
            for host in one.keys("all", "children", group, "hosts"):
                groups.setdefault(host, []).append(group)
    for host in one.keys("all", "hosts"):
        path = ("all", "hosts", host)
        key = next((name for name in _ADDRESSES if one.has(*path, name)), None)
        if key is None:
            yield NoteSaid(one.place(*path), f"host {host} has no ip, access_ip or ansible_host")
        else:
            yield from say_address(one, (*path, key), tuple(groups.get(host, ())), host)


_MODES = {"Always": True, "CrossSubnet": True, "Never": False}
# Variables and their settings.
_CALICO = {"calico_vxlan_mode": "calico-vxlan", "calico_ipip_mode": "calico-ipip"}
_FLAGS = {
    "typha_enabled": "calico-typha",
    "calico_wireguard_enabled": "calico-wireguard-ipv4",
    "metallb_enabled": "metallb",
    "kube_vip_enabled": "kubevip",
}
_PROXY = ("http_proxy", "https_proxy", "no_proxy")


def read_kubean_vars(one: Manifest) -> Iterator[Said]:
    """Say everything that the variables have for the matrices."""
    yield from read_plain(one, "cni", "kube_network_plugin")
    yield from _read_calico(one)
    for name, setting in _FLAGS.items():
        flag = _read_flag(one, name)
        if flag is not None:
            yield say_setting(one, setting, (name,), [flag])
    more = [part for part in one.text("additional_no_proxy").split(",") if part.strip()]
    yield from say_node_proxy(one, (), _PROXY, more)


def _read_calico(one: Manifest) -> Iterator[Said]:
    """Say the modes; the backend alone means VXLAN too."""
    for name, setting in _CALICO.items():
        yield from say_known(one, setting, (name,), _MODES)
    if one.text("calico_network_backend") == "vxlan":
        said = say_setting(one, "calico-vxlan", ("calico_network_backend",), [True])
        yield replace(said, weak=True)


def _read_flag(one: Manifest, name: str) -> bool | None:
    """Read a boolean as Ansible does: yes and no are booleans there."""
    words = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
    value = one.get(name)
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    return one.boolean(name)

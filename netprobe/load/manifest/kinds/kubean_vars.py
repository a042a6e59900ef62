"""group_vars of Kubean and Kubespray: CNI and its modes, MetalLB, kube-vip, the nodes' proxy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from netprobe.load.manifest.kinds.shared import say_node_proxy, say_setting
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said

# A variable, the setting, and what its values mean.
_MODES = {"Always": True, "CrossSubnet": True, "Never": False}
_WORDS = {
    "calico_vxlan_mode": ("calico-vxlan", _MODES),
    "calico_ipip_mode": ("calico-ipip", _MODES),
}
_FLAGS = {
    "typha_enabled": "calico-typha",
    "calico_wireguard_enabled": "calico-wireguard-ipv4",
    "metallb_enabled": "metallb",
    "kube_vip_enabled": "kubevip",
}
_PROXY = ("http_proxy", "https_proxy", "no_proxy")


def read_kubean_vars(one: Manifest) -> Iterator[Said]:
    """Say everything that the variables have for the matrices."""
    if one.has("kube_network_plugin"):
        plugin = one.text("kube_network_plugin")
        yield say_setting(one, "cni", ("kube_network_plugin",), [plugin])
    yield from _read_calico(one)
    for name, setting in _FLAGS.items():
        flag = _read_flag(one, name)
        if flag is not None:
            yield say_setting(one, setting, (name,), [flag])
    more = [part for part in one.text("additional_no_proxy").split(",") if part.strip()]
    yield from say_node_proxy(one, (), _PROXY, more)


def _read_calico(one: Manifest) -> Iterator[Said]:
    """Say the modes; the backend alone means VXLAN too."""
    for name, (setting, meanings) in _WORDS.items():
        word = one.text(name)
        if word and word not in meanings:
            yield NoteSaid(one.place(name), f"{name} {word} is not known here")
        elif word:
            yield say_setting(one, setting, (name,), [meanings[word]])
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

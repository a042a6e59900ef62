"""Deckhouse: its cluster, the modules that are on or off, and the inlet of its ingress."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.shared import read_plain, say_known, say_node_proxy
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, NoteSaid, Said, SettingSaid

_NODES = {"Static": "static", "Cloud": "cloud"}
_VCD = "cloud-provider-vcd"


def read_cluster_configuration(one: Manifest) -> Iterator[Said]:
    """Say how nodes come about, which cloud it is, and the nodes' proxy."""
    yield from say_known(one, "nodes", ("clusterType",), _NODES)
    path = ("cloud", "provider")
    if one.has(*path):
        is_vcd = one.text(*path) == "VCD"
        yield SettingSaid(one.origin(*path), "modules", items={_VCD: is_vcd})
    # Deckhouse adds these by itself.
    more = ["127.0.0.1", "169.254.169.254", one.text("clusterDomain") or "cluster.local"]
    more += [one.text(key) for key in ("podSubnetCIDR", "serviceSubnetCIDR") if one.has(key)]
    yield from say_node_proxy(one, ("proxy",), more=more)


def read_static_configuration(one: Manifest) -> Iterator[Said]:
    """Say that nodes are static, unless the ClusterConfiguration says that they are not."""
    yield SettingSaid(one.origin("kind"), "nodes", ("static",), weak=True)


def read_init_configuration(one: Manifest) -> Iterator[Said]:
    """Say where the container registry is."""
    path = ("deckhouse", "imagesRepo")
    host, _, port = one.text(*path).partition("/")[0].partition(":")
    if not host:
        return
    try:
        address = parse_address(host)
    except ValueError as error:
        one.problem(str(error), *path)
        return
    if port not in ("", "443"):
        words = f"the registry has port {port}, and the document's row 443: it is not asked for"
        yield NoteSaid(one.place(*path), words)
        return
    yield AddressSaid(one.origin(*path), "deckhouse", ("external-registry",), address)


def read_ingress_controller(one: Manifest) -> Iterator[Said]:
    """Say the inlet."""
    return read_plain(one, "inlet", "spec", "inlet")


_CNI = "cni-"
# "Tunneling mode for traffic between pods is enabled": where each CNI says so.
# The key, the value that tunnels, and what Deckhouse takes where it is left out.
_TUNNELS = {
    "cni-cilium": ("tunnelMode", "VXLAN", "Disabled"),
    "cni-flannel": ("podNetworkMode", "VXLAN", "HostGW"),
}


def read_module_config(one: Manifest) -> Iterator[Said]:
    """Say whether the module is on; a CNI's module is the setting ``cni``."""
    enabled = one.boolean("spec", "enabled")
    if enabled is None:
        return
    origin = one.origin("spec", "enabled", shown=f"{one.name} {'on' if enabled else 'off'}")
    if not one.name.startswith(_CNI):
        yield SettingSaid(origin, "modules", items={one.name: enabled})
        return
    if enabled:
        yield SettingSaid(origin, "cni", (one.name.removeprefix(_CNI),))
        yield from _read_tunnel(one)


def _read_tunnel(one: Manifest) -> Iterator[Said]:
    if one.name not in _TUNNELS:
        return
    key, wanted, default = _TUNNELS[one.name]
    path = ("spec", "settings", key)
    mode = one.text(*path) or default
    if mode != wanted:
        how = "" if one.has(*path) else " by default"
        words = (
            f"{key} of {one.name} is {mode}{how}; the document demands tunnelling between pods "
            'where traffic between hosts is limited: "Tunneling mode for traffic between pods is '
            'enabled"'
        )
        yield NoteSaid(one.place(*path), words)

"""ClusterConfiguration, InitConfiguration and StaticClusterConfiguration of Deckhouse."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.shared import say_node_proxy, say_setting
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, NoteSaid, Said, SettingSaid

_NODES = {"Static": "static", "Cloud": "cloud"}
_VCD = "cloud-provider-vcd"


def read_cluster_configuration(one: Manifest) -> Iterator[Said]:
    """Say how nodes come about, which cloud it is, and the nodes' proxy."""
    kind = one.text("clusterType")
    if kind in _NODES:
        yield say_setting(one, "nodes", ("clusterType",), [_NODES[kind]])
    elif kind:
        yield NoteSaid(one.place("clusterType"), f"clusterType {kind} is not known here")
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

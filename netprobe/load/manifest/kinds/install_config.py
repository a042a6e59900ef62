"""install-config of OpenShift: platform, network plugin, provisioning, and the nodes' proxy."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.kinds.hosted_cluster import KINDS_OF_NETWORK
from netprobe.load.manifest.kinds.shared import say_node_proxy, say_setting
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import networks_of
from netprobe.load.manifest.said import NoteSaid, Said, SettingSaid

_PROVISIONING = ("platform", "baremetal", "provisioningNetwork")
_ADDED = ("127.0.0.1", "localhost", ".svc", ".cluster.local")


def read_install_config(one: Manifest) -> Iterator[Said]:
    """Say everything that an install-config has for the matrices."""
    for platform in one.keys("platform"):
        yield SettingSaid(one.origin("platform", shown=platform), "platform", (platform.lower(),))
        if platform == "baremetal":
            yield from _read_provisioning(one)
    path = ("networking", "networkType")
    if one.has(*path):
        name = KINDS_OF_NETWORK.get(one.text(*path), "third-party")
        yield say_setting(one, "network", path, [name])
    networks = tuple(network.text for network in networks_of(one, ("networking",)))
    inner = f"api-int.{one.name}.{one.text('baseDomain')}"
    yield from say_node_proxy(one, ("proxy",), more=(*_ADDED, inner, *networks))


def _read_provisioning(one: Manifest) -> Iterator[Said]:
    """Provisioning of bare metal is on unless it says otherwise."""
    kind = one.text(*_PROVISIONING) or "Managed"
    if kind not in ("Managed", "Unmanaged", "Disabled"):
        yield NoteSaid(one.place(*_PROVISIONING), f"provisioningNetwork {kind} is not known here")
        return
    origin = one.origin(*_PROVISIONING, shown=kind)
    yield SettingSaid(origin, "features", items={"baremetal-provisioning": kind != "Disabled"})

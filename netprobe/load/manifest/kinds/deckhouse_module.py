"""ModuleConfig of Deckhouse: modules that are on or off, and the CNI."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said, SettingSaid

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

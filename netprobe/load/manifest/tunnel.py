"""How a HostedCluster publishes Konnectivity: the words that ``diagnose`` needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from netprobe.load.manifest.manifest import Manifest

Publishing = Literal["route", "nodeport", "loadbalancer"]

_KEYS: Final[dict[str, tuple[Publishing, str, str]]] = {
    "Route": ("route", "route", "hostname"),
    "NodePort": ("nodeport", "nodePort", "address"),
    "LoadBalancer": ("loadbalancer", "loadBalancer", "hostname"),
}


@dataclass(frozen=True, slots=True)
class TunnelSaid:
    """``server`` is HOST or HOST:PORT; ``place`` is where it stands."""

    server: str
    publishing: Publishing
    place: str


def tunnel_of(one: Manifest) -> TunnelSaid | None:
    """Give how workers reach Konnectivity; None where the manifest names no host."""
    for base in one.each("spec", "services"):
        if one.get(*base, "service") != "Konnectivity":
            continue
        strategy = (*base, "servicePublishingStrategy")
        way = one.text(*strategy, "type")
        if way not in _KEYS:
            return None
        publishing, key, name = _KEYS[way]
        host = one.text(*strategy, key, name)
        if not host:
            return None
        port = one.port(*strategy, key, "port") if way == "NodePort" else None
        shown = f"[{host}]" if port and ":" in host else host
        server = f"{shown}:{port}" if port else host
        return TunnelSaid(server, publishing, one.place(*strategy, key, name))
    return None

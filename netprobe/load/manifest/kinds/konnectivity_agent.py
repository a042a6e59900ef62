"""The DaemonSet konnectivity-agent of a hosted cluster: its arguments say where agents dial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from netprobe.load.manifest.kinds.hosted_cluster import Publishing, TunnelSaid
from netprobe.load.manifest.kinds.shared import KeyPath
from netprobe.load.manifest.manifest import Manifest

_CONTAINERS: Final = ("spec", "template", "spec", "containers")
_HOST, _PORT = "proxy-server-host", "proxy-server-port"
# Who dials another port than these dials a nodePort, or nobody can tell.
_BY_PORT: Final[Mapping[str, Publishing]] = {
    "443": "route",
    "8091": "loadbalancer",
    "8132": "loadbalancer",
}
_NODE_PORTS: Final = range(30000, 32768)


def tunnel_of_agent(one: Manifest) -> TunnelSaid | None:
    """Give where the agents of a DaemonSet dial; None where no argument says it."""
    given = dict(_read_arguments(one))
    path, host = given.get(_HOST, ((), ""))
    _, port = given.get(_PORT, ((), ""))
    if not host:
        return None
    shown = f"[{host}]" if ":" in host else host
    server = f"{shown}:{port}" if port else host
    by_number: Publishing | None = "nodeport" if _is_node_port(port) else None
    return TunnelSaid(server, _BY_PORT.get(port, by_number), one.place(*path), one.title)


def _read_arguments(one: Manifest) -> Iterator[tuple[str, tuple[KeyPath, str]]]:
    """Give the arguments with a value, ``--name=value`` or ``--name value``, and their places."""
    for container in one.each(*_CONTAINERS):
        for key in ("command", "args"):
            paths = list(one.each(*container, key))
            texts = [one.text(*path) for path in paths]
            for path, text, behind in zip(paths, texts, (*texts[1:], ""), strict=False):
                name, equals, value = text.removeprefix("--").partition("=")
                if text.startswith("--"):
                    yield name, (path, value if equals else behind)


def _is_node_port(port: str) -> bool:
    return port.isdecimal() and int(port) in _NODE_PORTS

"""AgentConfig of OpenShift's agent-based installer: the hosts, their roles and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.kinds.shared import KeyPath, say_address
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said

_ROLES = {"master": "control-plane", "worker": "node", "arbiter": "control-plane"}


def read_agent_config(one: Manifest) -> Iterator[Said]:
    """Say the addresses of all hosts; one without any is a note."""
    named = set()
    for base in one.each("hosts"):
        role = one.text(*base, "role") or "worker"
        name = one.text(*base, "hostname")
        if role not in _ROLES:
            yield NoteSaid(one.place(*base, "role"), f"role {role} is not known here")
            continue
        paths = list(_address_paths(one, base))
        if not paths:
            words = f"host {name or 'without a name'} has no address in its networkConfig"
            yield NoteSaid(one.place(*base), words)
        for path in paths:
            named.add(one.text(*path))
            yield from say_address(one, path, (_ROLES[role],), name)
    if one.has("rendezvousIP") and one.text("rendezvousIP") not in named:
        yield from say_address(one, ("rendezvousIP",), ("control-plane",), "rendezvous")


def _address_paths(one: Manifest, base: KeyPath) -> Iterator[KeyPath]:
    """Give the paths of all addresses of a host's nmstate; link-local ones are nobody's."""
    for interface in one.each(*base, "networkConfig", "interfaces"):
        for family in ("ipv4", "ipv6"):
            for address in one.each(*interface, family, "address"):
                if not one.text(*address, "ip").lower().startswith("fe80:"):
                    yield (*address, "ip")

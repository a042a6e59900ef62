"""hosts.yml of Kubean: the machines of the cluster and the groups that are their roles."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.kinds.shared import say_address
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said
from netprobe.model.matrix import fold_role

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

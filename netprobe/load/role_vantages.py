"""Roles on whose hosts nothing can run: ``vantage: none`` of the matrix."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.matrix import Matrix

NOWHERE = Vantage("none")


def apply_role_vantages(matrices: Sequence[Matrix], inventory: Inventory) -> Inventory:
    """Give the inventory in which nothing runs on hosts of such roles.

    A host whose own vantage the inventory says keeps it.
    """
    hosts = tuple(
        host if host.own_vantage or not _is_closed(matrices, host) else _close_host(host)
        for host in inventory.hosts
    )
    return replace(inventory, hosts=hosts)


def _is_closed(matrices: Sequence[Matrix], host: Host) -> bool:
    return any(
        matrix.roles[name].vantage == "none"
        for matrix in matrices
        for name in matrix.roles_of(host.roles)
    )


def _close_host(host: Host) -> Host:
    return replace(host, vantage=NOWHERE, become=None)

"""NodePool of HyperShift: what its cluster says too, and how many nodes there will be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from netprobe.load.manifest.kinds.shared import say_platform, say_setting, version_of_image
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import Said


def read_node_pool(one: Manifest) -> Iterator[Said]:
    """Say platform and version, which count where no HostedCluster says them."""
    for said in say_platform(one):
        yield replace(said, weak=True)
    version = version_of_image(one.text("spec", "release", "image"))
    if version:
        said = say_setting(one, "version", ("spec", "release", "image"), [version])
        yield replace(said, weak=True)


def cluster_of(one: Manifest) -> str:
    """Give the name of the hosted cluster that the pool belongs to."""
    return one.text("spec", "clusterName")


def is_pool_of(one: Manifest, cluster: Manifest) -> bool:
    """Tell whether the pool is the cluster's: HyperShift looks in the cluster's namespace only.

    One that names no namespace may be in any.
    """
    spaces = {here for here in (one.namespace, cluster.namespace) if here}
    return cluster_of(one) == cluster.name and len(spaces) < 2


def nodes_of(one: Manifest) -> tuple[int, int] | None:
    """Give how many nodes it has now, and at most; None where it does not say."""
    most = one.number("spec", "autoScaling", "max")
    least = one.number("spec", "autoScaling", "min")
    replicas = one.number("spec", "replicas")
    if most is not None:
        return (least if least is not None else 1), most
    return None if replicas is None else (replicas, replicas)

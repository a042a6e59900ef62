"""Cluster of Kubean: it names the ConfigMaps that say the rest."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import NoteSaid, Said

REFERENCES = ("hostsConfRef", "varsConfRef")


def read_kubean_cluster(one: Manifest) -> Iterator[Said]:
    """Say what else must be given; Clusters of other projects say nothing here."""
    if not one.text("apiVersion").startswith("kubean.io/"):
        yield NoteSaid(one.place("apiVersion"), "this Cluster is none of Kubean: nothing is taken")


def references_of(one: Manifest) -> Iterator[tuple[str, str, str]]:
    """Give place, key and name of each ConfigMap that the cluster refers to."""
    if one.text("apiVersion").startswith("kubean.io/"):
        for key in REFERENCES:
            path = ("spec", key, "name")
            if one.has(*path):
                yield one.place(*path), key, one.text(*path)

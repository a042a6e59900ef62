"""Pods as the API server lists them, as far as ports of nodes are concerned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of the node that a container declares."""

    protocol: str
    port: int
    container: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod. ``uids`` are its own and, for a static pod, that by which its node knows it.

    ``ports`` are those that it declares on the node: of a pod in the host's network all, of
    another one its host ports, which no socket shows.
    """

    name: str
    uids: tuple[str, ...]
    node: str
    addresses: tuple[str, ...]
    host_network: bool
    running: bool
    ports: tuple[PodPort, ...]

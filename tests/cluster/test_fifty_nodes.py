"""Fifty nodes that ask each other: what they found comes whole, in further rounds, and is what
files of them would say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.parts import OutcomeKind
from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.manifest import LIMITS
from tests.batch.merging import make_world
from tests.batch.world import SILENT, plan_of
from tests.cluster.api import Api, make_node, serving
from tests.cluster.kubelets import KUBECTL
from tests.cluster.playing import verdicts, verdicts_of_files
from tests.cluster.test_rounds import Cluster, count_lists, words_of
from tests.probe.fakes import host

pytestmark = [pytest.mark.slow, pytest.mark.full]

COUNT, DROPPED = 50, 9001
HOSTS = [host(f"n{at:02}", f"10.0.2.{at + 1}") for at in range(COUNT)]
MOST_CALLS = 12


def lose(source: str, order: Any, port: int) -> OutcomeKind | None:
    """The firewall: one node opens a port of no other one."""
    return SILENT._replace(packets=9) if source == "n07" and port == DROPPED else None


def test_fifty_nodes(tmp_path: Path) -> None:
    """Of each flow; blocked is what the firewall drops."""
    ports = ((f"p{at}", "tcp", ((9000 + at, 9000 + at),)) for at in range(6))
    world = make_world(plan_of(*ports, ("ping", "icmp", ()), hosts=HOSTS), "engine", lose, HOSTS)
    api = Api([make_node(one.name, str(one.addresses[0])) for one in HOSTS])
    with serving(api, tmp_path) as config:
        kube = Kubectl(str(KUBECTL), (f"--kubeconfig={config}",))
        cluster = Cluster(world, api, kube, LIMITS[0])
        api.kubelet = cluster.run_pod
        played, stored = cluster.play()
    assert (stored.missing, words_of(stored)) == ({}, [])
    found = verdicts(stored)
    assert found == verdicts_of_files(world)
    assert found["blocked"] == COUNT - 1
    assert "50 of 50 pods are there" in played.lines
    assert len(api.calls) - count_lists(cluster) <= MOST_CALLS
    assert api.spaces == {}

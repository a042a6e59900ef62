"""Whom the contrast asks for logs, and what it says where the API is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from netprobe.batch.request import BatchRequest
from netprobe.batch.script import HostScript
from netprobe.cli.cluster_diagnose import Contrast
from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.pod_states import RunPod
from netprobe.cluster.pods import ArrivedPods
from netprobe.model.inventory import NodeState
from tests.batch.world import first_round, plan_of, request_of
from tests.cluster.kubelets import Json
from tests.probe.fakes import host

pytestmark = pytest.mark.slow

NAMES = [f"n{at:02}" for at in range(25)]
RUNNING = [{"name": "page-1", "state": {"running": {}}}]
PULLING = [{"name": "page-1", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]


def make_run() -> tuple[BatchRequest, list[HostScript]]:
    """A run on 25 nodes."""
    hosts = [
        replace(host(name, f"10.0.1.{at}"), node=NodeState("linux", "amd64"))
        for at, name in enumerate(NAMES, 1)
    ]
    return first_round(request_of(plan_of(("api", "tcp", ((6443, 6443),)), hosts=hosts)))


def make_pod(name: str, states: list[Json]) -> RunPod:
    """A pod of a node."""
    pod = {"metadata": {"name": f"netprobe-{name}"}, "spec": {"nodeName": name},
           "status": {"initContainerStatuses": states}}  # fmt: skip
    return convert(pod, RunPod)


def ask(folder: Path, most: int | None, pulling: int = 0) -> tuple[Contrast, list[str]]:
    """Ask, where so many pods have not started; give the nodes whose logs kubectl was asked for."""
    program, asked = folder / "kubectl", folder / "asked"
    program.write_text(f'#!/bin/sh\necho "$*" >> {asked}\n')
    program.chmod(0o755)
    request, scripts = make_run()
    arrived = ArrivedPods(request, scripts)
    arrived.take(
        make_pod(name, PULLING if at < pulling else RUNNING) for at, name in enumerate(NAMES)
    )
    contrast = Contrast(Kubectl(str(program)), "space", request, most)
    asyncio.run(contrast.ask(arrived))
    lines = asked.read_text().splitlines() if asked.exists() else []
    return contrast, sorted(line.partition("netprobe-")[2][:3] for line in lines)


@pytest.mark.parametrize(("most", "count"), [(20, 20), (None, 25), (0, 0)])
def test_of_how_many_it_is_asked(tmp_path: Path, most: int | None, count: int) -> None:
    """Of so many, each once; of all; of none."""
    contrast, asked = ask(tmp_path, most)
    assert len(asked) == len(set(asked)) == count
    assert sorted(contrast.logs) == asked
    assert {one.state for one in contrast.logs.values()} <= {"work"}


def test_a_pod_that_has_not_started_takes_no_ones_place(tmp_path: Path) -> None:
    """The API server would say so itself, whatever the way to the node is."""
    contrast, asked = ask(tmp_path, 20, pulling=20)
    assert asked == NAMES[20:]
    assert len(contrast.logs) == 5


def test_pods_that_nobody_has_seen(tmp_path: Path) -> None:
    """Where no list of pods has come, nobody says of a node that it has none."""
    request, scripts = make_run()
    arrived = ArrivedPods(request, scripts)
    arrived.gone = "its results have not arrived: no API"
    contrast = Contrast(Kubectl(str(tmp_path)), "space", request, 20)
    asyncio.run(contrast.ask(arrived))
    assert {one.missing for one in contrast.list_rows(arrived.read())} == {arrived.gone}

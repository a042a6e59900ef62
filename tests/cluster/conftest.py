"""A cluster of three nodes behind an API, and the real kubectl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from netprobe.cluster.kubectl import Kubectl
from tests.batch.merging import World, make_world
from tests.batch.world import plan_of
from tests.cluster.api import Api, make_node, serving
from tests.cluster.kubelets import KUBECTL, report_pages
from tests.cluster.pods import make_pages


@pytest.fixture(scope="module")
def world() -> World:
    """Three hosts, of which two flows from b to c are dropped."""
    return make_world(plan_of(("web", "tcp", ((8000, 8009),))))


@pytest.fixture
def api(world: World) -> Api:
    """A cluster of three nodes whose pods have all pages."""
    nodes = [make_node(name, f"10.0.0.{at}") for at, name in enumerate("abc", 1)]
    pages = {name: make_pages(world.scripts[name], world.recordings[name]) for name in "abc"}
    return Api(nodes, report_pages(pages))


@pytest.fixture
def kube(api: Api, tmp_path: Path) -> Iterator[Kubectl]:
    """The real kubectl, with a way to that cluster."""
    with serving(api, tmp_path) as config:
        yield Kubectl(str(KUBECTL), (f"--kubeconfig={config}",))

"""The demo's estate through the cluster: all that a live run says of it, and the differences that
docs/cluster.md lists; real probes, a real firewall, imitated kubelets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo import estate
from tests.cluster.api import Api, make_node, serving
from tests.cluster.kubelets import KUBECTL, Kubelets
from tests.lab.batch import COMPARED, Key, netprobe, rows_of
from tests.lab.netlab import Lab
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.lab, pytest.mark.full]

Json = dict[str, Any]
OUTSIDE = "outside"
MOST_CALLS = 12
# What four further pages of results take.
ROUNDS_S = 250.0


@dataclass(frozen=True)
class Told:
    """What a live run says of each flow, and what a run through the cluster does; the API as it
    was left."""

    live: dict[Key, Json]
    told: dict[Key, Json]
    api: Api


def list_nodes() -> list[Json]:
    """The machines of the cluster, with their zones."""
    return [
        make_node(
            name, estate.ADDRESSES[name][0], *roles,
            labels={"topology.kubernetes.io/zone": estate.ZONES[name]},
        )
        for name, roles in estate.ROLES.items() if name != OUTSIDE
    ]  # fmt: skip


def run_in_cluster(lab: Lab, folder: Path) -> tuple[Api, Json]:
    """One command; who is outside is in an inventory by hand."""
    outer = {"addresses": estate.ADDRESSES[OUTSIDE], "roles": estate.ROLES[OUTSIDE],
             "vantage": "none"}  # fmt: skip
    inventory = folder / "outside.json"
    inventory.write_text(json.dumps({"schema": "netprobe.inventory/1", "hosts": {OUTSIDE: outer}}))
    kubelets = Kubelets(folder, lambda node: lab[node].enter)
    api = Api(list_nodes(), kubelets.start_pod)
    with serving(api, folder) as kubeconfig:
        done = netprobe(
            "cluster", "run", "-m", estate.MATRIX, "-i", str(inventory), "--start", "+30s",
            "--kubeconfig", str(kubeconfig), "--image", "python:3", "-o", "json", ok=(1,),
            limit_s=PATIENCE_S + ROUNDS_S, PATH=f"{KUBECTL.parent}:{os.environ['PATH']}",
        )  # fmt: skip
    kubelets.wait_for_pods()
    return api, json.loads(done.stdout)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Both runs of the same estate."""
    with Lab() as lab:
        estate.build(lab)
        words = ("-m", estate.MATRIX, "-i", str(estate.write_inventory(lab)), "-o", "json")
        live = json.loads(netprobe("run", *words, ok=(1,)).stdout)
        api, document = run_in_cluster(lab, tmp_path_factory.mktemp("estate"))
        yield Told(rows_of(live), rows_of(document), api)


def test_the_verdicts_are_those_of_the_live_run(told: Told) -> None:
    """Of each flow between nodes, and from them: verdict, state, reason, where. Nobody probes from
    outside."""
    assert told.told.keys() == {key for key in told.live if key[1] != OUTSIDE}
    other = {
        key: {name: (told.live[key][name], one[name]) for name in COMPARED}
        for key, one in told.told.items()
        if any(told.live[key][name] != one[name] for name in COMPARED)
    }
    assert other == {}


def test_what_is_blocked_is_what_the_firewall_stops(told: Told) -> None:
    """By the estate's own list, which reads the matrix by itself; all else has passed."""
    every, stopped = (
        {(*flow[:5], flow.port or 0) for flow in some if flow.source != OUTSIDE}
        for some in estate.expected()
    )
    verdicts = {key: one["verdict"] for key, one in told.told.items() if key in every}
    assert verdicts.keys() == every
    assert {key for key, verdict in verdicts.items() if verdict == "blocked"} == stopped
    assert {key for key, verdict in verdicts.items() if verdict == "pass"} == every - stopped
    assert stopped


def test_the_proof_differs_where_the_page_says_so(told: Told) -> None:
    """The registry outside is not spoken to."""
    other = {
        (key[0], key[2], told.live[key]["proof"], one["proof"])
        for key, one in told.told.items()
        if told.live[key]["proof"] != one["proof"]
    }
    assert other == {("registry", OUTSIDE, "service", "handshake")}


def test_what_it_costs(told: Told) -> None:
    """Twelve calls, and a list for each round; nothing is left."""
    lists = sum(path.endswith("/pods") for _, path in told.api.calls)
    assert lists > 1
    assert len(told.api.calls) - lists <= MOST_CALLS
    assert told.api.spaces == {}

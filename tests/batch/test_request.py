"""What a bundle keeps of a request: enough to judge, and nothing of the ways onto hosts."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from netprobe.batch.request import read_request, write_request
from netprobe.batch.rounds import make_first_round
from netprobe.errors import RequestError
from netprobe.load.matrix.bundled import bundled_names
from netprobe.load.matrix.file import load_matrices
from netprobe.load.starter import starter_inventory
from netprobe.model.inventory import Proxy, Vantage
from netprobe.pipeline import make_plan
from netprobe.plan.select import Selection
from tests.batch.world import A, B, plan_of, request_of
from tests.plan.test_merge import KUBELET, layer
from tests.plan.test_merge import plan as merged_plan

NOTHING = Selection((), (), (), (), ())
WEB = ("web", "tcp", ((80, 80),))


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_names())
def test_a_plan_comes_back_as_it_was(name: str, tmp_path: object) -> None:
    """Of every bundled matrix: what is read is written the same again, and plans the same."""
    path = f"{tmp_path}/inventory.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(starter_inventory(load_matrices([name])))
    plan = make_plan([name], [path], [], NOTHING)
    request, _ = make_first_round(request_of(plan), plan)

    data = write_request(request)
    again = read_request(data, "run.pyz")

    assert write_request(again) == data
    assert again.plan.flow_count() == plan.flow_count()
    assert (again.key, again.hosts, again.templates) == (
        request.key, request.hosts, request.templates,
    )  # fmt: skip


def test_ways_onto_hosts_and_passwords_stay_at_home() -> None:
    """The bundle lies on every host."""
    secret = replace(
        A,
        vantage=Vantage("command", command=("ssh", "-i", "/root/key", "a")),
        proxy=Proxy(https_proxy="http://user:hunter2@proxy:3128"),
    )
    data = write_request(request_of(plan_of(WEB, hosts=(secret, B))))

    assert b"hunter2" not in data
    assert b"/root/key" not in data
    assert read_request(data, "x").plan.hosts()["a"].vantage.kind == "local"


@pytest.mark.parametrize(
    "change",
    [{"format": 99}, {"plan": {}}, {"hosts": []}, {"templates": [["x"]]}, {"key": "%"}],
    ids=str,
)
def test_another_file_is_refused(change: dict[str, object]) -> None:
    """With the file's name."""
    document = json.loads(write_request(request_of(plan_of(WEB))))

    with pytest.raises(RequestError, match=r"^run\.pyz: "):
        read_request(json.dumps({**document, **change}).encode(), "run.pyz")


def test_a_plan_of_several_matrices_comes_back_with_all_names() -> None:
    """What a bundle's results are judged by has groups and further rows, too."""
    health = replace(KUBELET, id="health", any_of="health")
    other = replace(health, id="other", tcp=((4240, 4240),))
    plan = merged_plan(
        layer("base", KUBELET), layer("cni", health, other), layer("x", health, other)
    )
    again = read_request(write_request(request_of(plan)), "x").plan

    assert [(one.also, one.any_of, one.alone) for one in again.blocks] == [
        (one.also, one.any_of, one.alone) for one in plan.blocks
    ]
    assert [one.group_name for one in again.blocks] == [None, "health"]
    assert [len(one.also) for one in again.blocks] == [2, 1]
    assert again.requirements == plan.requirements

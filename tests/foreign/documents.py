"""A genuine report, record, request and plan, with one of everything that they can hold."""

from __future__ import annotations

import io
import json
from typing import Any

from msgspec.structs import replace

from netprobe.model.codec import info_to_json, result_to_json
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.plan import PlannedMatrix, Skipped
from netprobe.model.result import HostFacts, HostReport, Result
from netprobe.model.story import Story, StoryError, StoryPlace
from netprobe.report.run.json import write_json
from tests.report.samples import report_of
from tests.report.test_redact import accepted_entry
from tests.request import samples
from tests.request.flows import ask, written

STORY = Story(
    source_out=StoryPlace("yes", 2, None, "eth0", 64),
    errors=(StoryError("10.0.0.1", 3, 13, 64, 1, "tcp 6443", left="worker-0"),),
)
ENTRY = replace(accepted_entry(), to=("master-1",))
INFO = replace(
    samples.RUN,
    selection="--from worker: 14 of 20 flows",
    earlier="RETRIED: none",
    sample="a sample of 10 %",
    baseline="BASELINE: base.json",
    notes=("warning: a note",),
    matrices=(
        PlannedMatrix(
            "deckhouse-nodes",
            {"cni": "cilium", "modules": ("sds", "cloud"), "ha": True},
            {"title": "Network policies", "publisher": "Flant", "retrieved": "2026-11-20"},
        ),
    ),
    hosts=(
        replace(
            samples.HOSTS[0],
            words="the agent's words",
            user="core",
            python="3.11",
            zone="zone-a",
            facts=HostFacts(hostname="vm-1", taken=("x of y",)),
            cost=("no recorder",),
        ),
        *samples.HOSTS[1:],
        HostReport(
            name="gone", state="failed", words="ssh: no route to host", addresses=("10.0.3.3",)
        ),
    ),
    skipped=(Skipped("deckhouse-nodes", "vcd", "no such setting", "worker-0", "master-0"),),
    accepted=(ENTRY,),
)
COVERAGE = Coverage(
    zones={"zone-a": ("master-0",), "zone-b": ("worker-0", "worker-1")},
    pairs=2, all_pairs=6, required=20, probed=14, mixed=("zone-b: worker-0",),
    host_sets=(("worker-0",), ("master-0",)),
    unprobed=(
        Unprobed(
            matrix="deckhouse-nodes", requirement="api", protocol="tcp", ports=((6443, 6443),),
            from_zone="zone-b", to_zone="zone-a", sources=0, destinations=1, flows=1,
            because="worker-0 stands for it", by=(("worker-0", "master-0", 6443, 6443),),
            by_verdict="blocked",
        ),
    ),
)  # fmt: skip


def genuine_results() -> tuple[Result, ...]:
    """Give results of every kind, in their order."""
    first, second, *rest = samples.results("etcd peers")
    marked = [
        replace(first, story=STORY, warnings=("a warning",), last_hop="10.0.0.1"),
        replace(second, accepted=ENTRY.signature, holder="nginx (pid 3) on 0.0.0.0"),
        replace(rest[0], waived="until Monday", known="base.json"),
        replace(rest[1], next_hop="10.0.0.254", sent_from="10.5.0.5", came_from="10.6.0.6"),
        # Of a source that has several addresses, and whose own one is not known.
        replace(rest[0], port=6444, end_port=6444),
        *map(_make_possible, rest[2:]),
    ]
    return tuple(replace(one, order=(place, 0, 0)) for place, one in enumerate(marked))


def _make_possible(result: Result) -> Result:
    """Give a result as runs write it: readers refuse what contradicts itself."""
    if result.expect == "denied":
        return replace(result, requirement="closed")
    # Either end may stop it: its rule stands with both.
    several = len(result.where) > 1
    return replace(result, where=("destination", "source")) if several else result


def report_document(*, covering: bool = False) -> Any:
    """Give a JSON report as parsed."""
    stream = io.StringIO()
    info = replace(INFO, coverage=COVERAGE) if covering else INFO
    write_json(report_of(list(genuine_results()), info=info), stream)
    return json.loads(stream.getvalue())


def record_document() -> Any:
    """Give the lines of a record as parsed, in a list."""
    own = info_to_json(replace(INFO, coverage=COVERAGE))
    ranges = [["deckhouse-nodes", "etcd", "tcp", [[2379, 2379], [2380, 2380]]]]
    header = {"schema": "netprobe.record/1", **own, "ranges": ranges}
    lines = [{"order": list(one.order), **result_to_json(one)} for one in genuine_results()]
    return [header, *lines, {"end": own}]


def request_document() -> Any:
    """Give a request as parsed."""
    return json.loads(written(ask(genuine_results(), samples.WISHES, INFO), "json"))


def plan_documents() -> Any:
    """Give an inventory and a matrix as parsed: JSON is YAML, too."""
    hosts = {
        "master-0": {"addresses": ["10.0.0.10", "fd00::10"], "roles": ["master"], "zone": "zone-a"},
        "master-1": {"address": "10.0.0.11", "roles": ["master"], "vantage": "local"},
        "worker-0": {"address": "10.0.1.20", "roles": ["node"], "vantage": "none"},
        "worker-1": {"address": "10.0.1.21", "roles": "node",
                     "ssh": {"host": "10.0.1.21", "user": "core"}},
    }  # fmt: skip
    inventory = {
        "schema": "netprobe.inventory/1",
        "settings": {"cni": "cilium"},
        "hosts": hosts,
    }
    matrix = {
        "schema": "netprobe.matrix/1",
        "name": "own",
        "title": "Our own matrix",
        "document": {"title": "Ports", "publisher": "us", "url": "https://example.com/x"},
        "roles": {"master": {"description": "a master"}, "node": {}},
        "settings": {"cni": {"values": ["cilium", "calico"], "default": "cilium"}},
        "requirements": [
            {"id": "api", "from": "node", "to": "master", "tcp": [6443, "7000-7009"],
             "purpose": "kube-apiserver", "row": "Nodes to masters", "when": {"cni": "cilium"},
             "warnings": [{"text": "a warning"}]},
            {"id": "peers", "from": ["master"], "to": ["master"], "icmp": "echo"},
            {"id": "vrrp", "from": ["master"], "to": ["master"], "ipproto": [112]},
            {"id": "dns", "from": "node", "to": "master", "udp": [53], "optional": True},
            {"id": "ro", "from": "node", "to": "master", "tcp": [10255], "expect": "denied"},
        ],
        "waive": {"dns": "opened on Monday, until 2027-01-31"},
    }  # fmt: skip
    return {"inventory": inventory, "matrix": matrix}

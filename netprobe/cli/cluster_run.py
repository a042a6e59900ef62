"""The verbs ``cluster run|plan|clean``: a run in a cluster, through kubectl."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from netprobe.batch.bundle import pack_bundle, pack_plan
from netprobe.batch.request import BatchRequest, write_request
from netprobe.batch.results import write_private
from netprobe.batch.rounds import move_start
from netprobe.batch.script import HostScript
from netprobe.cli.asked_cluster import (
    ClusterDiagnoseOptions,
    ClusterPlanOptions,
    ClusterRunOptions,
    KubeOptions,
)
from netprobe.cli.bundle import When, make_header, make_run, tell_unplayed
from netprobe.cli.given import read_outputs, read_start
from netprobe.cli.merge import report_stored
from netprobe.cli.options import PAGE_FORMATS, RUN_FORMATS, require_matrix
from netprobe.cli.plan import make_plan, print_plan, tell_note
from netprobe.cli.report import read_marks
from netprobe.cli.run import check_record_path
from netprobe.cli.streams import tell
from netprobe.cluster.kubectl import Kubectl, find_kubectl
from netprobe.cluster.manifest import ManifestOf, check_namespace, make_objects
from netprobe.cluster.nodes import close_hosts
from netprobe.cluster.run import ClusterRun, list_nodes, list_runs, look_at_cluster, remove_runs
from netprobe.cluster.selecting import choose_terms, read_selector
from netprobe.errors import FileErrors, Problem, RequestError
from netprobe.load.inventory.nodes import LINUX
from netprobe.load.matrix.file import load_matrices
from netprobe.model.exit import PASS
from netprobe.model.plan import Plan
from netprobe.plan.cost import estimate
from netprobe.signals import run_to_end, run_until_signal

Given = TypeVar("Given", ClusterRunOptions, ClusterPlanOptions)
# A plan that takes no time leaves time for the agents.
LEAST_WINDOW_S = 30
MOST_CLOSED = 20
# What names the nodes in words of problems.
NODES_SAID = "`kubectl get nodes -o json`"


def run_cluster_verb(options: ClusterRunOptions) -> int:
    """Create, wait, report, delete."""
    outputs = read_outputs(options.outputs, RUN_FORMATS, options)
    _check_given(options)
    kube = open_kubectl(options)
    nodes = run_to_end(look_at_cluster(kube, options.nodes, tell_note))
    with _keep_nodes(options, nodes) as asked:
        request, scripts = make_run(
            asked, partial(_choose_when, options), is_shared=True,
            prepare=lambda plan: close_hosts(plan, options.machines),
        )  # fmt: skip
    if not scripts:
        raise RequestError("no node has anything to do (`kubectl netprobe plan`)")
    read_marks(options, request.plan)
    # From now on it takes no longer in a large cluster.
    starts_at = read_start(options.start, datetime.now(UTC))
    request, scripts = move_start(request, scripts, starts_at)
    run = ClusterRun(
        kube, request, scripts, make_run_objects(options, request, scripts, nodes), tell_step
    )
    if options.stored:
        write_private(Path(options.stored), pack_plan(make_header(request), write_request(request)))
    stopped = run_until_signal(run.carry_out())
    return report_stored(options, outputs, run.stored(), interrupted=stopped)


def plan_cluster_verb(options: ClusterPlanOptions) -> int:
    """Print the plan of the cluster's nodes; nothing is created."""
    outputs = read_outputs(options.outputs, PAGE_FORMATS, options)
    _check_matrices(options)
    read_selector(options.nodes)
    nodes = run_to_end(list_nodes(open_kubectl(options), options.nodes))
    with _keep_nodes(options, nodes) as asked:
        tell_unplayed(options.rehearse, options.quality)
        plan = make_plan(asked, options.zone_groups)
    closed = close_hosts(plan, options.machines)
    _tell_closed([host.closed for host in closed.hosts().values() if host.closed])
    return print_plan(options, outputs, closed)


def clean_cluster_verb(options: KubeOptions) -> int:
    """Delete the namespaces that have the label of runs."""
    check_namespace(options.namespace)
    kube = open_kubectl(options)
    found = run_to_end(list_runs(kube))
    if options.namespace:
        found = [one for one in found if one.namespace == options.namespace]
    run_to_end(remove_runs(kube, found, tell_step))
    if not found:
        where = f"in namespace {options.namespace}" if options.namespace else "in the cluster"
        tell_step(f"no run is {where}")
    return PASS


def _check_given(options: ClusterRunOptions) -> None:
    """Check what can be checked before the cluster is asked. Raises RequestError."""
    _check_matrices(options)
    read_selector(options.nodes)
    check_namespace(options.namespace)
    if not options.image:
        raise RequestError("give --image IMAGE: one with python3 that all nodes can get")
    if options.record:
        check_record_path(options.record)
    if options.stored and os.path.lexists(options.stored):
        raise RequestError(f"--plan {options.stored}: exists; choose another name")


def _check_matrices(options: ClusterRunOptions | ClusterPlanOptions) -> None:
    """Read the matrices before the cluster is asked. Raises RequestError."""
    require_matrix(options.matrices)
    load_matrices(options.matrices)


def open_kubectl(options: KubeOptions) -> Kubectl:
    """Find kubectl, for the cluster that is asked for. Raises RequestError."""
    words = {"--context": options.context, "--kubeconfig": options.kubeconfig}
    return find_kubectl(tuple(f"{name}={value}" for name, value in words.items() if value))


@contextmanager
def _keep_nodes(options: Given, nodes: Mapping[str, Any]) -> Iterator[Given]:
    """Give the options with the nodes as the first inventory, which is a file as any other."""
    with tempfile.TemporaryDirectory(prefix="netprobe-") as folder:
        path = Path(folder) / "nodes.json"
        path.write_text(json.dumps(nodes), encoding="utf-8")
        values = {**vars(options), "inventories": (str(path), *options.inventories)}
        try:
            yield type(options)(**values)
        except FileErrors as error:
            raise FileErrors([_name_nodes(one, str(path)) for one in error.problems]) from None


def _name_nodes(problem: Problem, path: str) -> Problem:
    """Name what printed the nodes instead of the file in which they are for a while."""
    return problem._replace(
        file=problem.file.replace(path, NODES_SAID), text=problem.text.replace(path, NODES_SAID)
    )


def _choose_when(options: ClusterRunOptions, probed: Plan) -> When:
    """Choose when nodes probe, and for how long: at most twice what the plan costs."""
    window = options.window
    if not window:
        window = f"{max(LEAST_WINDOW_S, math.ceil(2 * estimate(probed).seconds_dropped))}s"
    return When("clock", read_start(options.start, datetime.now(UTC)), window, options.margin)


def make_run_objects(
    options: ClusterRunOptions | ClusterDiagnoseOptions,
    request: BatchRequest,
    scripts: Sequence[HostScript],
    nodes: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Make what is created, with pods on the nodes that have something to do alone."""
    chosen = {script.start.name for script in scripts}
    bundle = pack_bundle(make_header(request), scripts)
    return make_objects(
        ManifestOf(
            request.run, len(scripts), bundle, options.image or "", options.namespace,
            choose_terms(options.nodes, chosen, find_linux(nodes) - chosen),
        )
    )  # fmt: skip


def find_linux(nodes: Mapping[str, Any]) -> set[str]:
    """Find the nodes on which pods of the run may start: their names."""
    return {one["metadata"]["name"] for one in nodes["items"] if _runs_linux(one)}


def _runs_linux(node: Mapping[str, Any]) -> bool:
    info = node.get("status", {}).get("nodeInfo", {})
    return str(info.get("operatingSystem", LINUX)) == LINUX


def _tell_closed(reasons: Sequence[str]) -> None:
    """Say which nodes take no part."""
    for reason in reasons[:MOST_CLOSED]:
        tell_note(reason)
    if len(reasons) > MOST_CLOSED:
        tell_note(f"{len(reasons) - MOST_CLOSED:,} more nodes take no part")


def tell_step(text: str) -> None:
    """Print how far a run is."""
    tell(f"netprobe: {text}")

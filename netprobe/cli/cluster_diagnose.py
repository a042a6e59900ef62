"""The verb ``cluster diagnose konnectivity``: the contrast of a cluster's nodes."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from netprobe import pipeline
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import StoredRun
from netprobe.batch.rounds import make_first_round, move_start
from netprobe.batch.script import KEY_BYTES, HostScript
from netprobe.cli.asked_cluster import ClusterDiagnoseOptions
from netprobe.cli.bundle import CARRIED
from netprobe.cli.cluster_run import make_run_objects, open_kubectl, tell_step
from netprobe.cli.given import read_outputs, read_seconds, read_start
from netprobe.cli.merge import judge_quietly
from netprobe.cli.options import TUNNEL_FORMATS
from netprobe.cli.plan import tell_note
from netprobe.cluster.kubectl import ApiRefusal, Kubectl
from netprobe.cluster.logs import LogsAnswer, ask_logs, choose_asked
from netprobe.cluster.manifest import check_namespace, name_namespace
from netprobe.cluster.nodes import close_hosts
from netprobe.cluster.pods import ArrivedPods
from netprobe.cluster.run import ClusterRun, look_at_cluster
from netprobe.cluster.selecting import read_selector
from netprobe.errors import INTERRUPTED, RequestError
from netprobe.konnectivity.contrast import judge_contrast, read_dial
from netprobe.konnectivity.request import Tunnel, TunnelOptions, make_tunnel
from netprobe.load.manifest.file import read_manifest_text
from netprobe.load.manifest.kinds import read_tunnels
from netprobe.model.contrast import ContrastReport, NodeContrast
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from netprobe.plan.select import Selection
from netprobe.probe.settings import ProbeSettings
from netprobe.report.outputs import write_or_raise
from netprobe.report.verbs.contrast import CONTRAST_WRITERS
from netprobe.signals import run_to_end, run_until_signal

AGENT = "/apis/apps/v1/namespaces/kube-system/daemonsets/konnectivity-agent"
SERVER_ROLE = "konnectivity-server"
MOST_ASKED = 20
# One port of one server, or of some addresses of it: dropped packets take less.
WINDOW_S = 30
_MATRIX = """\
schema: netprobe.matrix/1
name: konnectivity
title: The tunnel of Konnectivity
roles: {{control-plane: {{common: control-plane}}, worker: {{common: worker}}, {role}: {{}}}}
requirements:
  - {{id: tunnel, from: [worker, control-plane], to: {role}, tcp: [{port}], purpose: the tunnel}}
"""


def diagnose_cluster_verb(options: ClusterDiagnoseOptions) -> int:
    """Let every node dial, ask for some logs, and report; 1 where that shows a fault."""
    outputs = read_outputs(options.outputs, TUNNEL_FORMATS, options)
    most = _check_given(options)
    kube = open_kubectl(options)
    nodes = run_to_end(look_at_cluster(kube, options.nodes, tell_note))
    tunnel = _find_tunnel(options, kube)
    addresses = _resolve_server(tunnel)
    plan = close_hosts(_make_plan(nodes, tunnel, addresses), options.machines)
    request, scripts = _make_request(options, plan)
    namespace = options.namespace or name_namespace(request.run)
    contrast = Contrast(kube, namespace, request, most)
    objects = make_run_objects(options, request, scripts, nodes)
    run = ClusterRun(kube, request, scripts, objects, tell_step)
    stopped = run_until_signal(run.carry_out(contrast.ask))
    found = contrast.list_rows(run.stored())
    finding = judge_contrast(tunnel.host, tunnel.port, found)
    report = ContrastReport(
        tunnel.host, tunnel.port, tuple(addresses), len(contrast.logs), finding, tuple(found)
    )
    write_or_raise(outputs, CONTRAST_WRITERS, report)
    status = {True: BLOCKED, False: PASS, None: UNKNOWN}[finding.is_fault]
    return INTERRUPTED if stopped else status


class Contrast:
    """What nodes found, and what the API said of some of them. ``most``: of how many; None: all."""

    def __init__(
        self, kube: Kubectl, namespace: str, request: BatchRequest, most: int | None
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._most = most
        hosts = request.plan.hosts()
        self._nodes = [hosts[name] for name in sorted(hosts) if hosts[name].node is not None]
        self._rows: list[NodeContrast] = []
        self.logs: dict[str, LogsAnswer] = {}

    async def ask(self, arrived: ArrivedPods) -> None:
        """Ask for logs, while the pods are there: first of nodes that did not dial or report."""
        self._rows = await asyncio.to_thread(self._read_rows, arrived.read())
        pods = {node: pod for node, pod in arrived.list_pods().items() if pod.find_started()}
        known = [one for one in self._rows if one.node in pods]
        first = [one.node for one in known if one.dial != "opens"]
        others = [one.node for one in known if one.dial == "opens"]
        chosen = choose_asked(first, others, self._most)
        tell_step(f"logs are asked of {len(chosen):,} of {len(self._rows):,} nodes")
        self.logs = await ask_logs(self._kube, self._namespace, {one: pods[one] for one in chosen})

    def list_rows(self, stored: StoredRun) -> list[NodeContrast]:
        """Give all nodes, with what their logs said."""
        rows = self._rows or self._read_rows(stored)
        answers = [self.logs.get(row.node, LogsAnswer("not-asked")) for row in rows]
        return [
            replace(row, logs=answer.state, logs_words=answer.words)
            for row, answer in zip(rows, answers, strict=True)
        ]

    def _read_rows(self, stored: StoredRun) -> list[NodeContrast]:
        by_node: dict[str, list[Result]] = {}
        for one in judge_quietly(stored):
            by_node.setdefault(one.source, []).append(one)
        told = {one.name for one in stored.recordings}
        rows: list[NodeContrast] = []
        for host in self._nodes:
            missing = host.closed or stored.missing.get(host.name, "")
            if not missing and host.name not in told:
                missing = "it has nothing to dial"
            rows.append(read_dial(host.name, missing, by_node.get(host.name, ())))
        return rows


def _check_given(options: ClusterDiagnoseOptions) -> int | None:
    """Check what can be checked before the cluster is asked, and give how many nodes' logs are
    asked for; None: of all. Raises RequestError."""
    read_selector(options.nodes)
    check_namespace(options.namespace)
    if not options.image:
        raise RequestError("give --image IMAGE: one with python3 that all nodes can get")
    if options.logs == "all":
        return None
    if not options.logs.isdecimal():
        raise RequestError(f"--logs {options.logs}: expected a number of nodes, or all")
    return int(options.logs)


def _find_tunnel(options: ClusterDiagnoseOptions, kube: Kubectl) -> Tunnel:
    """Find where agents dial: as it is given, else as the cluster's konnectivity-agent says.

    Raises RequestError.
    """
    server, publishing = options.server, options.publishing
    if not server:
        try:
            found = run_to_end(kube.get(AGENT))
        except ApiRefusal as error:
            raise RequestError(f"--server: give where konnectivity-agent dials ({error})") from None
        raw = json.dumps({"kind": "DaemonSet", "apiVersion": "apps/v1", **found}).encode()
        said = read_tunnels(read_manifest_text(raw, f"{kube.name} get daemonset", []))
        if not said or not said[0].server:
            raise RequestError("--server: give it, konnectivity-agent of the cluster names none")
        server, publishing = said[0].server, publishing or said[0].publishing
        tell_step(f"konnectivity-agent dials {server}")
    # A route's name matters to TLS, which is not spoken here.
    hostname = options.server if publishing == "route" else None
    return make_tunnel(TunnelOptions(server, publishing or "loadbalancer", hostname=hostname))


def _resolve_server(tunnel: Tunnel) -> list[str]:
    """Resolve the server's name here. Raises RequestError."""
    try:
        found = socket.getaddrinfo(tunnel.host, tunnel.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise RequestError(
            f"{tunnel.host} is not found from here ({error.strerror}): give --server ADDRESS:PORT"
        ) from None
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def _make_plan(nodes: Mapping[str, Any], tunnel: Tunnel, addresses: Sequence[str]) -> Plan:
    """Plan that all nodes dial the server, which may be a node itself. Raises RequestError."""
    server = {
        "schema": "netprobe.inventory/1",
        "hosts": {
            SERVER_ROLE: {"addresses": list(addresses), "roles": [SERVER_ROLE], "vantage": "none"}
        },
    }
    with tempfile.TemporaryDirectory(prefix="netprobe-") as folder:
        files = [Path(folder, name) for name in ("matrix.yaml", "nodes.json", "server.yaml")]
        texts = (
            _MATRIX.format(role=SERVER_ROLE, port=tunnel.port), json.dumps(nodes),
            json.dumps(server),
        )  # fmt: skip
        for path, text in zip(files, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        matrix, *inventories = map(str, files)
        return pipeline.make_plan([matrix], inventories, (), Selection())


def _make_request(
    options: ClusterDiagnoseOptions, plan: Plan
) -> tuple[BatchRequest, list[HostScript]]:
    """Make the one round. Raises RequestError where no node can take part."""
    request = BatchRequest(
        run=secrets.token_hex(8),
        key=secrets.token_bytes(KEY_BYTES),
        results_key=secrets.token_bytes(KEY_BYTES),
        is_shared=True,
        plan=plan,
        hosts=(),
        settings=ProbeSettings(listen=False, live=True),
        barrier="clock",
        starts_at=read_start(options.start, datetime.now(UTC)),
        window_s=WINDOW_S,
        margin_s=read_seconds("--margin", options.margin),
        budgets=CARRIED,
        live=True,
    )
    request, scripts = make_first_round(request, plan)
    if not scripts:
        raise RequestError("no node can dial (`kubectl netprobe plan` says why)")
    return move_start(request, scripts, read_start(options.start, datetime.now(UTC)))

"""Groups of verbs: ``matrix``, ``cluster``, ``history``, ``measure``, ``runtime``.

What a verb needs is imported when it is called.
"""

from __future__ import annotations

import click
from click.core import ParameterSource

from netprobe.cli.asked import (
    HistoryAddOptions,
    HistoryOptions,
    IdleOptions,
    RuntimeOptions,
    ShowOptions,
    SourceOptions,
)
from netprobe.cli.asked_cluster import (
    ClusterDiagnoseOptions,
    ClusterPlanOptions,
    ClusterRunOptions,
    KubeOptions,
    ManifestOptions,
)
from netprobe.cli.help import IDLE_STATUS, RUN_STATUS, TUNNEL_STATUS, VerbGroup
from netprobe.cli.options import take_options
from netprobe.errors import RequestError


@click.group(cls=VerbGroup)
def matrix() -> None:
    """The bundled matrices, and your own."""


@matrix.command("list")
def matrix_list() -> int:
    """List the bundled matrices."""
    from netprobe.cli.files import matrix_list_verb

    return matrix_list_verb()


@matrix.command("show")
@take_options(ShowOptions)
def matrix_show(options: ShowOptions) -> int:
    """Show a matrix: a bundled NAME, or a file."""
    from netprobe.cli.files import matrix_show_verb

    return matrix_show_verb(options)


@matrix.command("source")
@take_options(SourceOptions)
def matrix_source(options: SourceOptions) -> int:
    """Show the document of a matrix: its files, their commits, and the hash of their tables."""
    from netprobe.cli.files import matrix_source_verb

    return matrix_source_verb(options)


@click.group(cls=VerbGroup)
def cluster() -> None:
    """Runs in a cluster (also `kubectl netprobe`), whose results come by the status of pods."""


@cluster.command("run", epilog=RUN_STATUS)
@take_options(ClusterRunOptions)
def cluster_run(options: ClusterRunOptions) -> int:
    """Probe from every node of a cluster, through kubectl, and report; leaves nothing behind.

    It creates a namespace with a DaemonSet, whose results come back by the status of its pods:
    neither `exec` nor `logs` is needed. Then it deletes the namespace, also after a Ctrl-C.

    \b
      kubectl netprobe plan -m rke2
      kubectl netprobe run -m rke2 --image registry.example.com/python:3.11
    """
    from netprobe.cli.cluster_run import run_cluster_verb

    return run_cluster_verb(options)


@cluster.command("plan")
@take_options(ClusterPlanOptions)
def cluster_plan(options: ClusterPlanOptions) -> int:
    """Print what `run` would send, of the nodes that the cluster has; nothing is created."""
    from netprobe.cli.cluster_run import plan_cluster_verb

    return plan_cluster_verb(options)


@cluster.group("diagnose", cls=VerbGroup)
def cluster_diagnose() -> None:
    """Find out why something in the cluster does not work: konnectivity."""


@cluster_diagnose.command("konnectivity", epilog=TUNNEL_STATUS)
@take_options(ClusterDiagnoseOptions)
def cluster_diagnose_konnectivity(options: ClusterDiagnoseOptions) -> int:
    """Tell which nodes report, which `kubectl logs` reaches, and which can dial the server.

    Every node dials, by a DaemonSet as `run` has it; its results come by the kubelet, also where
    the tunnel is broken. Then logs are asked of some nodes, and all that was created is deleted.

    \b
      kubectl netprobe diagnose konnectivity --image registry.example.com/python:3.11
    """
    from netprobe.cli.cluster_diagnose import diagnose_cluster_verb

    return diagnose_cluster_verb(options)


@cluster.command("clean")
@take_options(KubeOptions)
def cluster_clean(options: KubeOptions) -> int:
    """Delete what is left of any run in the cluster, by its label; with -n of one namespace."""
    from netprobe.cli.cluster_run import clean_cluster_verb

    return clean_cluster_verb(options)


@cluster.command("manifest")
@take_options(ManifestOptions)
def cluster_manifest(options: ManifestOptions) -> int:
    """Print the objects of a run in a cluster: a namespace, a ConfigMap, a DaemonSet.

    Nothing is applied. Each node probes at the start, by its own clock, and leaves its results in
    the messages of its pod, which the kubelet reports: neither `exec` nor `logs` is needed.

    \b
      kubectl get nodes -o json > nodes.json
      kubectl netprobe manifest -m rke2 -i nodes.json --start +5m \\
        --image IMAGE --plan plan.pyz > run.yaml
      kubectl create -f run.yaml                         # before the start
      kubectl get pods -n netprobe-RUN -o json > pods.json
      netprobe merge plan.pyz pods.json
      kubectl delete namespace netprobe-RUN
    """
    from netprobe.cli.cluster import manifest_verb

    return manifest_verb(options)


@click.group(cls=VerbGroup, invoke_without_command=True)
@take_options(HistoryOptions)
@click.pass_context
def history(context: click.Context, options: HistoryOptions) -> int:
    """Tell which outages runs saw over time: each with the times between which it began and ended.

    \b
      netprobe history add monday.jsonl tuesday.jsonl
      netprobe history --since 7d -o html=history.html
      netprobe history --when 2027-01-31T14:00Z
    """
    if context.invoked_subcommand is not None:
        _refuse_before(context, context.invoked_subcommand)
        return 0
    from netprobe.cli.history import history_verb

    return history_verb(options)


def _refuse_before(context: click.Context, verb: str) -> None:
    """Raises RequestError for an option before the verb, which would not heed it."""
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name))
        if given is ParameterSource.COMMANDLINE:
            raise RequestError(f"{parameter.opts[-1]} stands before {verb!r}: give it after that")


@history.command("add")
@take_options(HistoryAddOptions)
def history_add(options: HistoryAddOptions) -> int:
    """Take runs into the history: RUN is a record or a JSON report; each is one look."""
    from netprobe.cli.history import add_verb

    return add_verb(options)


@click.group(cls=VerbGroup)
def measure() -> None:
    """Measure what no single probe shows: idle."""


@measure.command("idle", epilog=IDLE_STATUS)
@take_options(IdleOptions)
def measure_idle(options: IdleOptions) -> int:
    """Tell after which silence firewalls and balancers between zones forget a TCP connection or a
    UDP flow, and hold that against `keepalive:` of the matrix's rows.

    Agents open connections on ports that rows require, which must be free. Each is silent for
    another time, and is then woken from one end. It takes as long as the longest silence.

    \b
      netprobe measure idle -m rke2 -i inventory.yaml
      netprobe measure idle -m rke2 -i inventory.yaml --up-to 1h -o json=idle.json
    """
    from netprobe.cli.measure import idle_verb

    return idle_verb(options)


@click.group(cls=VerbGroup)
def runtime() -> None:
    """The Pythons that netprobe sends to hosts that have none."""


@runtime.command("build")
@take_options(RuntimeOptions)
def runtime_build(options: RuntimeOptions) -> int:
    """Build one out of this machine's Python and its libraries, for hosts of its architecture.

    Runs do this by themselves when a host needs it. Build it by hand where hosts are of another
    architecture than the machine that runs netprobe: on a machine that is like them.
    """
    from netprobe.cli.launch import build_verb

    return build_verb(options.python, options.output)


@runtime.command("list")
def runtime_list() -> int:
    """List those that are kept on this machine."""
    from netprobe.cli.launch import list_verb

    return list_verb()

"""Groups of verbs: ``matrix``, ``cluster``, ``history``, ``runtime``.

What a verb needs is imported when it is called.
"""

from __future__ import annotations

import click
from click.core import ParameterSource

from netprobe.cli.asked import (
    HistoryAddOptions,
    HistoryOptions,
    ManifestOptions,
    RuntimeOptions,
    ShowOptions,
    SourceOptions,
)
from netprobe.cli.help import VerbGroup
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
    """Runs in a cluster, whose results come back by the status of pods."""


@cluster.command("manifest")
@take_options(ManifestOptions)
def cluster_manifest(options: ManifestOptions) -> int:
    """Print the objects of a run in a cluster: a namespace, a ConfigMap, a DaemonSet.

    Nothing is applied. Each node probes at the start, by its own clock, and leaves its results in
    the messages of its pod, which the kubelet reports: neither `exec` nor `logs` is needed.

    \b
      kubectl get nodes -o json > nodes.json
      netprobe cluster manifest -m rke2 -i nodes.json --start +5m \\
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

"""Arguments and exit status; each verb is a module, imported when it is called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

import netprobe
from netprobe.cli.asked import (
    AcceptOptions,
    AuditOptions,
    BundleOptions,
    CheckOptions,
    CostOptions,
    DiagnoseOptions,
    DiffOptions,
    ExplainOptions,
    InitOptions,
    MergeOptions,
    ReportOptions,
    RequestOptions,
    RunOptions,
    WatchOptions,
)
from netprobe.cli.help import AUDIT_STATUS, RUN_STATUS, TUNNEL_STATUS, WATCH_STATUS, VerbGroup
from netprobe.cli.options import take_options
from netprobe.cli.streams import (
    guard_streams,
    print_line,
    tell_error,
    tell_unexpected,
    tell_usage,
)
from netprobe.cli.verb_groups import cluster, history, matrix, measure, runtime
from netprobe.errors import FAILED, INTERRUPTED, NetprobeError
from netprobe.report.outputs import discard_stdout

# The status that a shell gives a program that SIGPIPE ended (128 + 13).
NO_READER = 141


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=RUN_STATUS,
)
@click.version_option(netprobe.__version__, prog_name="netprobe", message="%(prog)s %(version)s")
def cli() -> None:
    """Tell which network flows that a Kubernetes platform requires are blocked, by whom, and how
    sure it is.

    \b
      netprobe init --matrix deckhouse-nodes > inventory.yaml
      netprobe plan --matrix deckhouse-nodes
      netprobe run --matrix deckhouse-nodes
    """


for group in (matrix, cluster, history, measure, runtime):
    cli.add_command(group)


@cli.command(epilog=RUN_STATUS)
@take_options(RunOptions)
def run(options: RunOptions) -> int:
    """Probe every required flow from its source host, and report."""
    if options.engine == "ansible":
        from netprobe.cli.ansible_run import ansible_verb

        return ansible_verb(options)
    from netprobe.cli.run import run_verb

    return run_verb(options)


@cli.command()
@take_options(CostOptions)
def plan(options: CostOptions) -> int:
    """Print exactly what `run` would send, without sending anything."""
    from netprobe.cli.plan import plan_verb

    return plan_verb(options)


@cli.command()
@take_options(InitOptions)
def init(options: InitOptions) -> int:
    """Print a commented inventory to start from."""
    from netprobe.cli.files import init_verb

    return init_verb(options.matrices)


@cli.command()
@take_options(CheckOptions, "files", "hosts", "registry", "accepted", "max_acceptance")
def check(options: CheckOptions) -> int:
    """Check FILES (matrices, inventories, manifests, accepted flows), or with --hosts the hosts.

    Without FILES it checks what a run would read: --matrix, and --inventory or ./inventory.yaml.
    """
    from netprobe.cli.explain import check_hosts_verb
    from netprobe.cli.files import check_files_verb, check_registry_verb

    if options.registry:
        return check_registry_verb(options)
    if not options.hosts:
        return check_files_verb(options)
    if options.files:
        raise click.UsageError("--hosts takes no FILES; give --matrix and --inventory.")
    return check_hosts_verb(options)


@cli.command(epilog=RUN_STATUS)
@take_options(ReportOptions)
def report(options: ReportOptions) -> int:
    """Print the report of an earlier run again: FILE is a record or a JSON report.

    With --accepted it is held against what is accepted today, else as it was then.
    """
    from netprobe.cli.report import report_verb

    return report_verb(options)


@cli.command()
@take_options(RequestOptions)
def request(options: RequestOptions) -> int:
    """Ask for the firewall rules that a run lacks: FILE is a record or a JSON report of it.

    The rules together open exactly what the run found blocked, and say who must apply them.
    With --from-plan they open all that the matrices require, before any packet is sent.

    \b
      netprobe run -m deckhouse-nodes --record run.jsonl
      netprobe request run.jsonl -o xlsx=ticket.xlsx -o json=request.json
      netprobe run -m deckhouse-nodes --retry request.json
    """
    from netprobe.cli.request import request_verb

    return request_verb(options)


@cli.command()
@take_options(DiffOptions)
def diff(options: DiffOptions) -> int:
    """Tell what changed between two runs, of what both have probed: newly blocked, fixed, moved,
    unchanged; and what only one of them has probed. Exit status 1: something is newly blocked."""
    from netprobe.cli.report import diff_verb

    return diff_verb(options)


@cli.command()
@take_options(AcceptOptions)
def accept(options: AcceptOptions) -> int:
    """Accept a finding until a day: RUN is the record or JSON report of a run.

    Prints entries for a file of accepted flows; its failures no longer decide the exit status.

    \b
      netprobe accept run.jsonl --finding 2 --reason "new firewall in spring" \\
          --owner platform-team --ticket CHG-77 --until 2027-01-31 >> accepted.yaml
      netprobe run -m deckhouse-nodes --accepted accepted.yaml
    """
    from netprobe.cli.report import accept_verb

    return accept_verb(options)


@cli.command(epilog=WATCH_STATUS)
@take_options(WatchOptions)
def watch(options: WatchOptions) -> int:
    """Probe every required flow again and again, and keep outages in a history.

    Agents stay connected, and listeners are open only during a look. It runs until a signal ends
    it; SIGHUP reads matrices, inventories and maintenance again.

    \b
      netprobe watch -m deckhouse-nodes --every 5m
      netprobe history --since 7d
    """
    from netprobe.cli.watch import watch_verb

    return watch_verb(options)


@cli.command(epilog=RUN_STATUS)
@take_options(ExplainOptions, "inventories")
def explain(options: ExplainOptions) -> int:
    """Explain one flow, every step with its evidence, on one page.

    SOURCE is a host of the inventory, DESTINATION another or an address or name, PROTOCOL/PORT
    such as tcp/6443, udp/8472, icmp or ipproto/4. With --matrix, the requirement that has this
    flow says what is sent and what is expected.
    """
    from netprobe.cli.explain import explain_verb

    return explain_verb(options)


@cli.group()
def audit() -> None:
    """Compare hosts with what the matrices say; nothing is probed: ports."""


@audit.command("ports", epilog=AUDIT_STATUS)
@take_options(AuditOptions)
def audit_ports(options: AuditOptions) -> int:
    """Tell which processes listen on ports that the matrices do not give them.

    Agents list the listening sockets of every host, with process, unit or pod. The matrices are
    the registry: their rows say who may hold which port, on hosts of which role.

    \b
      netprobe audit ports -m openshift-host-ports -i inventory.yaml
      kubectl get pods -A -o json > pods.json
      netprobe audit ports -m openshift-host-ports -m ./site.yaml --pods pods.json
    """
    from netprobe.cli.explain import audit_ports_verb

    return audit_ports_verb(options)


@cli.group()
def diagnose() -> None:
    """Find out why something that should run does not: konnectivity."""


@diagnose.command("konnectivity", epilog=TUNNEL_STATUS)
@take_options(DiagnoseOptions)
def diagnose_konnectivity(options: DiagnoseOptions) -> int:
    """Tell why Konnectivity tunnels do not come up: from this host, or from every worker of an
    inventory. It never registers as an agent.

    What is not given comes from a manifest, a pipe, or the cluster of your kubeconfig.

    \b
      oc -n NAMESPACE get hostedcluster NAME -o yaml | netprobe diagnose konnectivity
      netprobe diagnose konnectivity --server konnectivity-hc1.example.com --publishing route
      netprobe diagnose konnectivity --server 10.0.0.7:31234 --publishing nodeport -i inventory.yaml
    """
    from netprobe.cli.diagnose import konnectivity_verb

    return konnectivity_verb(options)


@cli.command()
@take_options(BundleOptions)
def bundle(options: BundleOptions) -> int:
    """Write a run that hosts carry out by themselves, where nothing can talk to all of them.

    Each host writes one file; `netprobe merge` reports. Whoever has a bundle can answer probes of
    this run. One file for all hosts holds the keys of all: each could write the results of others,
    and the report says so. With --per-host no host can.

    \b
      netprobe bundle -m deckhouse-nodes --start 14:00Z --window 10m > run.pyz
      python3 run.pyz --out /media/usb                   # on every host, before 14:00
      netprobe merge run.pyz /media/usb/*.npr

    \b
      netprobe bundle -m deckhouse-nodes --start 14:00Z --per-host run
      python3 worker-1.pyz --out /media/usb              # on worker-1; keep plan.pyz
      netprobe merge run/plan.pyz /media/usb/*.npr
    """
    from netprobe.cli.bundle import bundle_verb

    return bundle_verb(options)


@cli.command(epilog=RUN_STATUS)
@take_options(MergeOptions, "outputs", "redact", "title", "record")
def merge(options: MergeOptions) -> int:
    """Report a run of `netprobe bundle` from what its hosts wrote: RESULTS are their files. Of
    `netprobe cluster manifest` they are what `kubectl get pods -o json` printed.

    Flows of hosts without a file are not tested, nor are those of a host with a bad one.
    """
    from netprobe.cli.merge import merge_verb

    return merge_verb(options)


@cli.command()
@click.argument(
    "kind",
    type=click.Choice(("matrix", "inventory", "accepted", "run", "audit", "history")),
)
def schema(kind: str) -> int:
    """Print the JSON Schema of files that people write (matrix, inventory, accepted flows), for
    editors, or of what runs, audits and histories leave (JSON report and record), for programs."""
    from netprobe.cli.files import schema_verb

    return schema_verb(kind)


@cli.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print the completion script of a shell: eval "$(netprobe completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "netprobe", "_NETPROBE_COMPLETE").source())
    return 0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line, this process's own where none is given, and exit with its status."""
    guard_streams()
    with heed_interrupts():
        status = status_of(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        print_line(f"cannot write to standard output: {error.strerror}")
        status = FAILED
    sys.exit(status)


@contextmanager
def heed_interrupts() -> Iterator[None]:
    """Let a Ctrl-C be KeyboardInterrupt for a verb, which may have something to report.

    Before and after it the process just ends (``__main__``). Ignored signals stay ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def status_of(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit status; errors are printed, never raised."""
    try:
        status = cli.main(list(arguments), prog_name="netprobe", standalone_mode=False)
    except click.ClickException as error:
        return tell_usage(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # click itself turns a reader that went away into exit 1, which here means "blocked".
        discard_stdout()
        return NO_READER
    except NetprobeError as error:
        return tell_error(error)
    except Exception as error:  # the last resort: a user gets one line, not a traceback
        return tell_unexpected(error)
    return int(status or 0)

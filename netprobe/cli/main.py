"""Arguments and exit status; each verb is a module, imported when it is called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

import netprobe
from netprobe.cli.batch_commands import bundle, merge
from netprobe.cli.command_groups import audit, diagnose, runtime
from netprobe.cli.covering import cover_options
from netprobe.cli.given import FILE, FileType, MatrixType
from netprobe.cli.options import (
    DIFF_FORMATS,
    EPILOG,
    MATRIX_FORMATS,
    REQUEST_FORMATS,
    RUN_FORMATS,
    complete_matrix,
    flag,
    flow_options,
    inventory_option,
    matrix_option,
    option,
    output_option,
    plan_options,
    probing_options,
    redact_option,
    request_options,
    role_option,
    rule_options,
    set_option,
    start_options,
)
from netprobe.cli.result_options import (
    accepted_options,
    consent_options,
    earlier_options,
)
from netprobe.cli.streams import discard_stdout, guard_streams
from netprobe.cli.telling import print_line, tell_error, tell_unexpected, tell_usage
from netprobe.errors import FAILED, INTERRUPTED, NetprobeError

# The status that a shell gives a program that SIGPIPE ended (128 + 13).
NO_READER = 141


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
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


@cli.command(epilog=EPILOG)
@request_options
@cover_options
@probing_options
@option(
    "--engine",
    type=click.Choice(("live", "ansible")),
    default="live",
    show_default=True,
    help="Who gets onto the hosts: netprobe itself, or ansible-playbook, for many hosts.",
)
@output_option(RUN_FORMATS)
@redact_option
@earlier_options
@option(
    "--evidence",
    type=FILE,
    metavar="DIR",
    help="Keep packets of what did not pass: one pcapng a finding, in this folder.",
)
@flag("-v", "--verbose", "Say what the run waits for, and at the end where the time went.")
def run(**options: Any) -> int:
    """Probe every required flow from its source host, and report."""
    from netprobe.cli.asked import RunOptions

    asked = RunOptions(**options)
    if asked.engine == "ansible":
        from netprobe.cli.ansible_run import ansible_verb

        return ansible_verb(asked)
    from netprobe.cli.run import run_verb

    return run_verb(asked)


@cli.command()
@request_options
@cover_options
@flag("--count", "Print the totals only.")
@output_option()
def plan(**options: Any) -> int:
    """Print exactly what `run` would send, without sending anything."""
    from netprobe.cli.asked import CostOptions
    from netprobe.cli.plan import plan_verb

    return plan_verb(CostOptions(**options))


@cli.command()
@matrix_option
def init(matrices: tuple[str, ...]) -> int:
    """Print a commented inventory to start from."""
    from netprobe.cli.files import init_verb

    return init_verb(matrices)


@cli.command()
@click.argument("files", nargs=-1, type=FileType("a file to check"))
@flag("--hosts", "Start and stop an agent on every host, probe nothing, and say what each can do.")
@flag("--registry", "Check matrices as registries of ports: duplicates, ranges, gaps.")
@accepted_options
@request_options
@start_options
@output_option()
def check(**options: Any) -> int:
    """Check FILES (matrices, inventories, manifests, accepted flows), or with --hosts the hosts.

    Without FILES it checks what a run would read: --matrix, and --inventory or ./inventory.yaml.
    """
    from netprobe.cli.asked import CheckOptions
    from netprobe.cli.files import check_files_verb, check_registry_verb
    from netprobe.cli.hosts import check_hosts_verb

    asked = CheckOptions(**options)
    if asked.registry:
        return check_registry_verb(asked)
    if not asked.hosts:
        return check_files_verb(asked)
    if asked.files:
        raise click.UsageError("--hosts takes no FILES; give --matrix and --inventory.")
    return check_hosts_verb(asked)


@cli.group()
def matrix() -> None:
    """The bundled matrices, and your own."""


@matrix.command("list")
def matrix_list() -> int:
    """List the bundled matrices."""
    from netprobe.cli.files import matrix_list_verb

    return matrix_list_verb()


@matrix.command("show")
@click.argument("name", type=MatrixType("the matrix"), shell_complete=complete_matrix)
@set_option
@output_option(MATRIX_FORMATS)
def matrix_show(**options: Any) -> int:
    """Show a matrix: a bundled NAME, or a file."""
    from netprobe.cli.asked import ShowOptions
    from netprobe.cli.files import matrix_show_verb

    return matrix_show_verb(ShowOptions(**options))


@cli.command(epilog=EPILOG)
@click.argument("file", type=FileType("the file to read"))
@accepted_options
@output_option(RUN_FORMATS)
@redact_option
def report(**options: Any) -> int:
    """Print the report of an earlier run again: FILE is a record or a JSON report.

    With --accepted it is held against what is accepted today, else as it was then.
    """
    from netprobe.cli.asked import ReportOptions
    from netprobe.cli.report import report_verb

    return report_verb(ReportOptions(**options))


@cli.command()
@click.argument("file", type=FileType("the file to read"), required=False)
@rule_options
@output_option(REQUEST_FORMATS)
@plan_options
def request(**options: Any) -> int:
    """Ask for the firewall rules that a run lacks: FILE is a record or a JSON report of it.

    The rules together open exactly what the run found blocked, and say who must apply them.
    With --from-plan they open all that the matrices require, before any packet is sent.

    \b
      netprobe run -m deckhouse-nodes --record run.jsonl
      netprobe request run.jsonl -o xlsx=ticket.xlsx -o json=request.json
      netprobe run -m deckhouse-nodes --retry request.json
    """
    from netprobe.cli.asked import RequestOptions
    from netprobe.cli.request import request_verb

    return request_verb(RequestOptions(**options))


@cli.command()
@click.argument("old", type=FileType("the earlier run"))
@click.argument("new", type=FileType("the later run"))
@output_option(DIFF_FORMATS)
def diff(**options: Any) -> int:
    """Tell what changed between two runs, of what both have probed: newly blocked, fixed, moved,
    unchanged; and what only one of them has probed. Exit status 1: something is newly blocked."""
    from netprobe.cli.asked import DiffOptions
    from netprobe.cli.report import diff_verb

    return diff_verb(DiffOptions(**options))


@cli.command()
@click.argument("run_file", metavar="RUN", type=FILE)
@consent_options
def accept(**options: Any) -> int:
    """Accept a finding until a day: RUN is the record or JSON report of a run.

    Prints entries for a file of accepted flows; its failures no longer decide the exit status.

    \b
      netprobe accept run.jsonl --finding 2 --reason "new firewall in spring" \\
          --owner platform-team --ticket CHG-77 --until 2027-01-31 >> accepted.yaml
      netprobe run -m deckhouse-nodes --accepted accepted.yaml
    """
    from netprobe.cli.accept import accept_verb
    from netprobe.cli.asked import AcceptOptions

    return accept_verb(AcceptOptions(**options))


@cli.command(epilog=EPILOG)
@click.argument("source")
@click.argument("destination")
@click.argument("wire", metavar="PROTOCOL/PORT")
@inventory_option
@matrix_option
@set_option
@role_option
@flow_options
@output_option()
def explain(**options: Any) -> int:
    """Explain one flow, every step with its evidence, on one page.

    SOURCE is a host of the inventory, DESTINATION another or an address or name, PROTOCOL/PORT
    such as tcp/6443, udp/8472, icmp or ipproto/4. With --matrix, the requirement that has this
    flow says what is sent and what is expected.
    """
    from netprobe.cli.asked import ExplainOptions
    from netprobe.cli.explain import explain_verb

    return explain_verb(ExplainOptions(**options))


for command in (audit, diagnose, runtime, bundle, merge):
    cli.add_command(command)


@cli.command()
@click.argument("kind", type=click.Choice(("matrix", "inventory", "accepted", "run", "audit")))
def schema(kind: str) -> int:
    """Print the JSON Schema of files that people write (matrix, inventory, accepted flows), for
    editors, or of what runs and audits leave (JSON report and record), for programs."""
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

"""What each verb is asked: its options as values.

Files are ``GivenFile`` (``cli/given.py``), so that no output writes over one.
"""

from __future__ import annotations

from typing import Literal

import click

from netprobe.cli.given import FILE, FileType, MatrixType
from netprobe.cli.option_groups import (
    ENGINE_OPTION,
    FORKS_OPTION,
    QUALITY_OPTION,
    REHEARSE_OPTION,
    STRICT_OPTION,
    AcceptedOptions,
    CarryOptions,
    CoverOptions,
    EarlierOptions,
    LaunchOptions,
    LookOptions,
    PlanOptions,
    ReportedOptions,
    RuleOptions,
    ScriptOptions,
    Texts,
    add_inventory_option,
)
from netprobe.cli.options import (
    AUDIT_FORMATS,
    DIFF_FORMATS,
    HISTORY_FORMATS,
    MATRIX_FORMATS,
    TUNNEL_FORMATS,
    AskedOptions,
    again,
    argument,
    complete_matrix,
    file_option,
    flag,
    number,
    option,
    output_option,
    repeat_option,
)


class TellingOptions(ReportedOptions, AcceptedOptions):
    """How a run is judged, what it is held against, and where it is told."""

    strict: bool = STRICT_OPTION
    baseline: str | None = file_option(
        "--baseline", "FILE", "Say what is new since this earlier run."
    )
    fail_on: str = option(
        "--fail-on",
        type=click.Choice(("any", "new")),
        default="any",
        help="Which failures decide the exit status; new: only those that the baseline has not.",
    )
    verbose: bool
    quiet: bool = flag("-q", "--quiet", "No progress, only what goes wrong.")


class RunOptions(ScriptOptions, LaunchOptions, EarlierOptions, TellingOptions):
    """``netprobe run``."""

    engine: str = ENGINE_OPTION
    forks: int = FORKS_OPTION
    # Scripts still give it; it does nothing.
    jobs: int | None = option("--jobs", type=click.IntRange(1, 1024), hidden=True)
    evidence: str | None = file_option(
        "--evidence",
        "DIR",
        "Keep packets here: a pcapng a finding.",
    )
    verbose: bool = flag("-v", "--verbose", "Say what the run is doing, and where the time went.")


class CostOptions(PlanOptions, CoverOptions):
    """``netprobe plan``."""

    rehearse: str | None = REHEARSE_OPTION
    quality: str | None = QUALITY_OPTION
    count: bool = flag("--count", "Print the totals only.")
    outputs: Texts = output_option()


class InitOptions(AskedOptions):
    """``netprobe init``."""

    matrices: Texts = PlanOptions.matrices


class CheckOptions(PlanOptions, LaunchOptions, AcceptedOptions):
    """``netprobe check``."""

    files: Texts = argument(nargs=-1, type=FileType("a file to check"))
    hosts: bool = flag(
        "--hosts", "Start and stop an agent on every host, probe nothing, and say what each can do."
    )
    registry: bool = flag(
        "--registry", "Check matrices as registries of ports: duplicates, ranges, gaps."
    )
    rehearse: str | None = REHEARSE_OPTION
    forks: int = FORKS_OPTION
    outputs: Texts = output_option()


class BundleOptions(ScriptOptions, CarryOptions):
    """``netprobe bundle``."""

    results: Texts = argument(nargs=-1, type=FileType("a result file"))
    agent_python: Texts = LaunchOptions.agent_python


class MergeOptions(TellingOptions):
    """``netprobe merge``."""

    file: str = argument(metavar="BUNDLE|DIR", type=FileType("the file to read"))
    results: Texts = again(BundleOptions.results)
    verbose: bool = flag("-v", "--verbose", "Say at the end where the time went.")


class ExplainOptions(LookOptions, LaunchOptions):
    """``netprobe explain``."""

    source: str = argument()
    destination: str = argument()
    wire: str = argument(metavar="PROTOCOL/PORT")
    inventories: Texts = PlanOptions.inventories
    matrices: Texts = PlanOptions.matrices
    sets: Texts = PlanOptions.sets
    roles: Texts = PlanOptions.roles
    rehearse: str | None = REHEARSE_OPTION
    quality: str | None = QUALITY_OPTION
    strict: bool = STRICT_OPTION
    outputs: Texts = output_option()


class AuditOptions(LaunchOptions):
    """``netprobe audit ports``."""

    matrices: Texts = PlanOptions.matrices
    inventories: Texts = PlanOptions.inventories
    sets: Texts = PlanOptions.sets
    roles: Texts = PlanOptions.roles
    pods: str | None = file_option(
        "--pods", "FILE", "Compare pods too: what `kubectl get pods -A -o json` prints."
    )
    ask_become_pass: bool = again(LaunchOptions.ask_become_pass)
    agent_python: Texts = ()
    outputs: Texts = output_option(AUDIT_FORMATS)


class IdleOptions(PlanOptions, LaunchOptions):
    """``netprobe measure idle``."""

    up_to: str = option(
        "--up-to",
        metavar="TIME",
        default="10m",
        help="The longest silence: 30s, 10m, 1h. All connections are silent at once, so that this "
        "is how long it takes.",
    )
    zone_groups: Texts = again(CoverOptions.zone_groups)
    outputs: Texts = output_option()


class DiagnoseOptions(AskedOptions):
    """``netprobe diagnose konnectivity``. ``hold``: seconds."""

    server: str | None = option(
        "--server",
        show_default="as a manifest or cluster says",
        metavar="HOST[:PORT]",
        help="Where the agents dial: --proxy-server-host and --proxy-server-port of "
        "konnectivity-agent. Port by default: route 443, loadbalancer 8091 (k0s 8132).",
    )
    publishing: Literal["route", "nodeport", "loadbalancer"] | None = option(
        "--publishing",
        show_default="as a manifest or cluster says",
        type=click.Choice(("route", "nodeport", "loadbalancer")),
        help="How the server is published; nodeport needs the port.",
    )
    flavour: Literal["hypershift", "k0s"] | None = option(
        "--flavour",
        type=click.Choice(("hypershift", "k0s")),
        show_default="found out",
        help="Whose Konnectivity it is: k0s has another port and tokens instead of certificates.",
    )
    hostname: str | None = option(
        "--hostname",
        metavar="SNI",
        show_default="HOST, or none for an address",
        help="The server name in the ClientHello, by which a router finds its route.",
    )
    proxy: str = option(
        "--proxy",
        default="env",
        metavar="URL|env|none",
        help="The agents' HTTPS proxy. env: HTTPS_PROXY and NO_PROXY of this process, or `proxy:` "
        "of a host of the inventory. A URL is used whatever NO_PROXY says.",
    )
    ca: str | None = file_option("--ca", "FILE", "Verify the server's chain against this CA (PEM).")
    client_cert: str | None = file_option("--client-cert", "FILE", "The agent's certificate (PEM).")
    client_key: str | None = file_option(
        "--client-key", "FILE", "Its key (PEM, without a password)."
    )
    repeat: int = number(
        "--repeat",
        1,
        200,
        "How many further connections must be answered: one of several servers may be dead.",
        default=4,
    )
    hold: float | None = option(
        "--hold",
        type=click.FloatRange(1, 3600),
        metavar="SECONDS",
        show_default="not held",
        help="Keep idle connections so long and see whether they still work; without a client "
        "certificate at most 115.",
    )
    manifests: Texts = again(PlanOptions.manifests)
    inventories: Texts = add_inventory_option(
        "from this host", "Diagnose from the workers of this inventory, through their vantages."
    )
    from_: Texts = repeat_option(
        "--from",
        metavar="ROLE|HOST",
        show_default="hosts of role worker",
        text="From which hosts of the inventory.",
    )
    agent_python: Texts = again(LaunchOptions.agent_python)
    outputs: Texts = output_option(TUNNEL_FORMATS)


class RequestOptions(RuleOptions, PlanOptions):
    """``netprobe request``."""

    file: str | None = argument(type=FileType("the file to read"), required=False)


class ShowOptions(AskedOptions):
    """``netprobe matrix show``."""

    name: str = argument(type=MatrixType("the matrix"), shell_complete=complete_matrix)
    sets: Texts = PlanOptions.sets
    outputs: Texts = output_option(MATRIX_FORMATS)


class SourceOptions(AskedOptions):
    """``netprobe matrix source``."""

    name: str = ShowOptions.name


class ReportOptions(AcceptedOptions):
    """``netprobe report``."""

    file: str = argument(type=FileType("the file to read"))
    outputs: Texts = again(ReportedOptions.outputs)
    redact: bool = again(ReportedOptions.redact)
    title: str = again(ReportedOptions.title)


class DiffOptions(AskedOptions):
    """``netprobe diff``."""

    old: str = argument(type=FileType("the earlier run"))
    new: str = argument(type=FileType("the later run"))
    outputs: Texts = output_option(DIFF_FORMATS)


_HISTORY = file_option("--history", "FILE", "The history's file.", default="netprobe.db")


class HistoryOptions(AskedOptions):
    """``netprobe history``."""

    history: str = _HISTORY
    since: str | None = option(
        "--since",
        metavar="TIME",
        help="Only what was there since then: 7d, 90m, or a time such as 2027-01-31T14:00Z.",
    )
    when: str | None = option("--when", metavar="TIME", help="Print the report of that moment.")
    flow: str | None = option(
        "--flow",
        metavar="FLOW",
        help="Only outages of a flow: SOURCE:DESTINATION:PROTOCOL/PORT.",
    )
    outputs: Texts = output_option(HISTORY_FORMATS)


class HistoryAddOptions(AskedOptions):
    """``netprobe history add``."""

    runs: tuple[str, ...] = argument(
        metavar="RUN...", nargs=-1, required=True, type=FileType("a run to add")
    )
    history: str = _HISTORY


class WatchOptions(PlanOptions, LookOptions, LaunchOptions):
    """``netprobe watch``."""

    every: str = option(
        "--every", metavar="TIME", default="5m", help="From one round to the next: 30s, 5m, 1h."
    )
    history: str = _HISTORY
    maintenance: str | None = file_option(
        "--maintenance",
        "FILE",
        "Hosts that may be down, and when: a YAML list of {hosts, from, until}.",
    )
    metrics: str | None = option(
        "--metrics",
        metavar="HOST:PORT",
        show_default="none",
        help="Serve metrics for Prometheus there, such as 127.0.0.1:9815.",
    )
    notify: Texts = repeat_option(
        "--notify",
        metavar="KIND=WHERE",
        show_default="none",
        text="Tell when outages begin and end: alertmanager=URL, webhook=URL, exec=PROGRAM.",
    )
    strict: bool = STRICT_OPTION
    rate: int | None = again(ScriptOptions.rate)
    forks: int = FORKS_OPTION


class AcceptOptions(AskedOptions):
    """``netprobe accept``."""

    run_file: str = argument(metavar="RUN", type=FILE)
    findings: tuple[int, ...] = repeat_option(
        "--finding",
        type=click.IntRange(1),
        required=True,
        metavar="N",
        text="The finding to accept, by its number in the report.",
    )
    renumbered: bool = flag(
        "--renumbered",
        "Take the numbers of a file that keeps none (an earlier netprobe's) as they are now.",
    )
    reason: str = option(
        "--reason", required=True, metavar="TEXT", help="Why it is accepted; reports repeat it."
    )
    owner: str = option("--owner", required=True, metavar="TEXT", help="Who answers for it.")
    ticket: str = option(
        "--ticket", required=True, metavar="TEXT", help="Where it is written down."
    )
    until: str = option(
        "--until", required=True, metavar="DATE|never", help="The last day on which it is accepted."
    )
    max_acceptance: str = again(AcceptedOptions.max_acceptance)
    same_place: bool = flag(
        "--same-place", "Accept it only while it fails at the places that are possible now."
    )
    append: bool = flag(
        "--append", "Leave the first lines out, which a file that has entries has already."
    )


class RuntimeOptions(AskedOptions):
    """``netprobe runtime build``."""

    python: str | None = option(
        "--python",
        metavar="PATH",
        show_default="the Python that runs netprobe",
        help="Build it from this interpreter (3.6 or later) of this machine.",
    )
    output: str | None = file_option(
        "-o",
        "--output",
        "FILE",
        "Write it here, for --agent-python on another machine.",
        show_default="netprobe's folder of caches, where runs find it",
    )

"""The options that verbs share, in groups; one verb alone has those about rules and carried runs.

What is written first is listed first by the help.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import click

from netprobe.cli.given import FILE, INVENTORY, FileType, MatrixType
from netprobe.cli.options import (
    PROTOCOLS,
    REQUEST_FORMATS,
    RUN_FORMATS,
    AskedOptions,
    complete_format,
    complete_matrix,
    file_option,
    flag,
    number,
    option,
    output_option,
    repeat_option,
)
from netprobe.model.accepted import MAX_ACCEPTANCE_DAYS
from netprobe.probe.settings import FORKS  # the help must import nothing heavier

Texts = tuple[str, ...]

DEFAULT_WINDOW: Final = "10m"
DEFAULT_MARGIN: Final = "30s"
_END: Final = "HOST|ROLE"


class RuleOptions(AskedOptions):
    """Which rules are asked for, and how they are written."""

    by: Literal["device", "finding", "requirement"] = option(
        "--by",
        type=click.Choice(("device", "finding", "requirement")),
        default="device",
        help="Flows of different ones never share a rule.",
    )
    at: str | None = option(
        "--at",
        metavar="path|destination|source|ADDRESS",
        show_default="everywhere",
        help="Only rules to be applied there: on the way, on the hosts at an end, or on this "
        "router. With --from-plan: where they shall be applied (path).",
    )
    include: Texts = repeat_option(
        "--include",
        type=click.Choice(("inconclusive", "exposed")),
        metavar="inconclusive|exposed",
        text="Ask also for what may be blocked; ask to close what must not answer and does.",
    )
    into: Texts = repeat_option(
        "--into",
        metavar="[FORMAT=]WHERE",
        text="Where the rules go: nftables inet/filter/forward, iptables a chain, cisco-* a list, "
        "paloalto, fortios and junos FROM/TO (zones), calico a selector, aerleon a target.",
    )
    stateless: bool = flag(
        "--stateless", "Ask also for the way back: for devices that keep no state."
    )
    one_per_row: bool = flag(
        "--one-per-row", "Tables: one pair of addresses and one port or range in a row."
    )
    until: str = option(
        "--until", metavar="DATE", default="permanent", help="Until when the rules are asked for."
    )
    ticket: Texts = repeat_option(
        "--ticket",
        metavar="KEY=VALUE",
        text="A field of your forms, such as workflow=..., subject=... or Owner=... .",
    )
    undo: Texts = repeat_option(
        "--undo",
        metavar="FORMAT[=FILE]",
        text="Write what takes the rules away again.",
    )
    outputs: Texts = output_option(REQUEST_FORMATS)
    from_plan: bool = flag(
        "--from-plan", "Ask for all that is required, before any probe; takes no FILE."
    )


def add_inventory_option(show_default: str, text: str) -> Any:
    """Give ``--inventory``, with what it means for a verb."""
    return repeat_option(
        "-i",
        "--inventory",
        type=FileType(INVENTORY),
        metavar="FILE",
        show_default=show_default,
        text=text,
    )


class PlanOptions(AskedOptions):
    """What is required between which hosts, and the part of it that filters choose."""

    matrices: Texts = repeat_option(
        "-m",
        "--matrix",
        type=MatrixType("--matrix"),
        metavar="NAME|FILE",
        shell_complete=complete_matrix,
        text="What must reach what: one of `netprobe matrix list`, or a file (with a / or .yaml).",
    )
    inventories: Texts = add_inventory_option(
        "./inventory.yaml",
        "The machines: an inventory of netprobe or of Ansible.",
    )
    manifests: Texts = repeat_option(
        "--manifest",
        type=FILE,
        metavar="FILE",
        text="Take settings, addresses and proxies from manifests: HostedCluster, NodePool, "
        "install-config, Kubean, Deckhouse and others.",
    )
    networks: Texts = repeat_option(
        "--network",
        metavar="NAME=CIDR",
        text="A further network of yours, which no subnet of a manifest may overlap.",
    )
    sets: Texts = repeat_option(
        "--set",
        metavar="[MATRIX:]KEY=VALUE",
        text="A setting of the installation, such as cni=cilium; lists are a,b.",
    )
    roles: Texts = repeat_option(
        "--role",
        metavar="ROLE=ROLE[,ROLE]",
        text="What a role or group of the inventory stands for, such as kube_node=node.",
    )
    limit: Texts = repeat_option(
        "--limit", metavar=_END, text="Only flows from or to this host or role."
    )
    from_: Texts = repeat_option("--from", metavar=_END, text="Only flows from this host or role.")
    to: Texts = repeat_option("--to", metavar=_END, text="Only flows to this host or role.")
    only: Texts = repeat_option(
        "--only", metavar="REQUIREMENT", text="Only the requirement of this id (or MATRIX:ID)."
    )
    protocol: Texts = repeat_option(
        "--protocol",
        metavar="PROTOCOL",
        shell_complete=complete_format(PROTOCOLS),
        text="Only tcp, udp, icmp, ipproto or ipproto/N.",
    )


class CoverOptions(AskedOptions):
    """Which hosts stand for others."""

    cover: str | None = option(
        "--cover",
        metavar="all|zones[:K]",
        show_default="all, up to 5 minutes",
        help="zones: probe each host to and from each zone (K times), each port between each two "
        "zones, and the rest where zones turn out to be mixed.",
    )
    seed: int = option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        metavar="N",
        default=0,
        help="Which hosts --cover zones pairs: another number, other pairs.",
    )
    zone_groups: Texts = repeat_option(
        "--zone-groups",
        metavar="PATTERN",
        show_default="`zone:` of a host, else its network",
        text="Groups or roles that are zones, such as 'rack_*'.",
    )


class CarryOptions(AskedOptions):
    """When hosts probe by themselves, and where the files for them go."""

    start: str | None = option(
        "--start",
        metavar="TIME",
        show_default="an engine says when, or each host begins at once",
        help="When all hosts probe, by their own clocks: +10m, 14:00Z (UTC), 14:00 (as here) or "
        "2027-01-31T14:00Z. Start each before.",
    )
    window: str = option(
        "--window", metavar="TIME", default=DEFAULT_WINDOW, help="How long probing may take."
    )
    margin: str = option(
        "--margin",
        metavar="TIME",
        default=DEFAULT_MARGIN,
        help="How far clocks may be apart: listeners are open so much longer, before and after.",
    )
    output: str | None = file_option(
        "-o", "--output", "FILE", "Write the bundle to this file.", show_default="standard output"
    )
    folder: str | None = file_option(
        "--folder",
        "DIR",
        "Write no bundle, but the folder from which an engine runs commands on all hosts.",
    )
    per_host: str | None = file_option(
        "--per-host",
        "DIR",
        "Write no bundle for all, but a file for each host into this new folder, so that none "
        "can write the results of another; keep its plan.pyz for merge.",
    )
    with_runtime: bool = flag(
        "--with-runtime", "Write a shell script that brings a Python, for hosts without one."
    )
    next_: str | None = file_option(
        "--next",
        "FILE|DIR",
        "Ask what the rounds so far have left open: of this bundle, with the RESULTS of its "
        "hosts, or of this folder.",
    )


class SilenceOptions(AskedOptions):
    """How long and how often answers are waited for. ``timeout``: seconds of one look."""

    timeout: float | None = option(
        "--timeout",
        type=click.FloatRange(0.1, 600),
        metavar="SECONDS",
        show_default="learned from round trips, 4 s at most",
        help="How long one look waits for an answer.",
    )
    retries: int | None = number(
        "--retries", 0, 20, "How often silence is asked again, instead of as often as makes an "
        "error unlikely; a refusal never is.",
    )  # fmt: skip


_RATE = number(
    "--rate",
    1,
    10_000_000,
    "At most so many probes a second, over all sources. Closed UDP is paced anyway.",
    show_default="not limited",
)
FORKS_OPTION = number(
    "--forks", 1, 100_000, "How many destinations are worked on at a time.", default=FORKS
)


class LaunchOptions(AskedOptions):
    """How agents get onto hosts."""

    ask_become_pass: bool = flag(
        "--ask-become-pass",
        "Ask for the sudo password (or set NETPROBE_BECOME_PASSWORD).",
    )
    agent_python: Texts = option(
        "--agent-python",
        multiple=True,
        type=FILE,
        metavar="FILE",
        show_default="the kept one, or one built now",
        help="The Python for hosts that have none: a file of `netprobe runtime build`; repeat it "
        "for other architectures.",
    )


_NO_LISTEN = flag(
    "--no-listen", "Open no listeners: only what runs already, or refuses, can answer."
)
_NO_RECORDER = flag("--no-recorder", "Record no packets: of silence, less can be said about where.")
STRICT_OPTION = flag(
    "--strict", "Accept no refusal and no bare handshake as proof: they become inconclusive."
)


class LookOptions(SilenceOptions):
    """How flows are probed."""

    no_listen: bool = _NO_LISTEN
    no_recorder: bool = _NO_RECORDER
    live: bool = flag(
        "--live", "Everything is supposed to run: a refusal is a failure of the service."
    )


REHEARSE_OPTION = option(
    "--rehearse",
    metavar="[=NAME,NAME]",
    help="Let agents play parts of the platform: overlay, balancer, segment.",
)


QUALITY_OPTION = option(
    "--quality",
    metavar="[=SAMPLES]",
    help="Sample the ways of rows with quality.",
)


class ScriptOptions(PlanOptions, CoverOptions, LookOptions):
    """A part of a plan, and how it is probed: by a live run, or by scripts. ``rate``: a second."""

    rate: int | None = _RATE
    rehearse: str | None = REHEARSE_OPTION
    quality: str | None = QUALITY_OPTION
    sample: int | None = number(
        "--sample",
        1,
        1_000_000,
        "Probe a sample only: N peers of each host, and N ports of each range.",
        show_default="everything is probed",
    )
    max_results: int = number(
        "--max-results",
        1,
        1_000_000_000,
        "Refuse a plan with more results than this.",
        default=5_000_000,
    )


ENGINE_OPTION = option(
    "--engine",
    type=click.Choice(("live", "ansible")),
    default="live",
    help="Who gets onto the hosts: netprobe, or ansible-playbook.",
)


class ReportedOptions(AskedOptions):
    """Where a run is told, and to whom."""

    outputs: Texts = output_option(RUN_FORMATS)
    redact: bool = flag(
        "--redact",
        "For strangers: all reports say host-1, address-1 ... for hosts, addresses and other "
        "names. The record keeps them.",
    )
    title: str = option(
        "--title", metavar="TEXT", default="", show_default=False,
        help="What the page (-o html) is of: it stands above the verdict.",
    )  # fmt: skip
    record: str | None = file_option(
        "--record", "FILE", "Write every result to this new file at once."
    )


class EarlierOptions(AskedOptions):
    """An earlier run of which results are kept."""

    resume: str | None = file_option(
        "--resume",
        "FILE",
        "Keep the final results of this record or JSON report; probe the rest.",
    )
    retry: str | None = file_option(
        "--retry",
        "FILE",
        "Probe again what did not pass in this record or JSON report, or what this request "
        "(-o json) asks for, and say what changed.",
    )


class AcceptedOptions(AskedOptions):
    """Failures that somebody accepted."""

    accepted: Texts = repeat_option(
        "--accepted",
        type=FILE,
        metavar="FILE",
        text="Failures that somebody accepted until a day (`netprobe accept`).",
    )
    max_acceptance: str = option(
        "--max-acceptance",
        metavar="DAYS",
        default=f"{MAX_ACCEPTANCE_DAYS}d",
        help="For how long a failure may be accepted, from its first day to its last.",
    )

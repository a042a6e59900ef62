"""The options that verbs share: their names, ranges, defaults, environment variables and help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from netprobe.cli.given import FILE, INVENTORY, FileType, MatrixType
from netprobe.errors import RequestError
from netprobe.probe.settings import FORKS  # the help must import nothing heavier

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

RUN_FORMATS: Final = ("text", "wide", "map", "json", "html", "junit", "markdown", "github")
DIFF_FORMATS: Final = ("text", "json", "markdown")
AUDIT_FORMATS: Final = ("text", "json", "junit")
MATRIX_FORMATS: Final = ("text", "json", "yaml")
# Those of ``netprobe.request.syntaxes``, which the help does not import.
REQUEST_FORMATS: Final = (
    "markdown", "json", "csv", "xlsx", "nftables", "iptables", "firewalld", "tufin", "algosec",
    "cisco-asa", "cisco-ios", "paloalto", "fortios", "junos", "terraform-aws",
    "terraform-openstack", "calico", "windows", "ufw", "aerleon",
)  # fmt: skip
PAGE_FORMATS: Final = ("text", "json")  # of every other verb
PROTOCOLS: Final = ("tcp", "udp", "icmp", "ipproto")

EPILOG: Final = """\b
Exit status: 0 all required flows pass, 1 something is blocked or exposed,
2 the request was wrong, 3 something required could not be judged,
4 netprobe itself failed, 130 interrupted.

Every option can be set in the environment too: --max-results is NETPROBE_MAX_RESULTS.
"""

# Any: click's decorators take and give whatever they stand on.
Decorator = Callable[[Any], Any]


def option(*names: str, **attributes: Any) -> Decorator:
    """Give an option that ``NETPROBE_<NAME>`` sets too."""
    long = next(name for name in names if name.startswith("--"))
    variable = "NETPROBE_" + long.split("/")[0].lstrip("-").upper().replace("-", "_")
    attributes.setdefault("show_default", True)
    return click.option(*names, envvar=variable, **attributes)


def repeat_option(*names: str, text: str, **attributes: Any) -> Decorator:
    """Give an option that may be given several times."""
    return option(*names, multiple=True, help=f"{text} Repeatable.", **attributes)


def flag(*words: str) -> Decorator:
    """Give an option without a value: its names, then the words of the help."""
    *names, text = words
    return option(*names, is_flag=True, show_default=False, help=text)


def add_number(name: str, low: int, high: int, text: str, **attributes: Any) -> Decorator:
    """Give a whole number within limits."""
    return option(name, type=click.IntRange(low, high), metavar="N", help=text, **attributes)


def together(*decorators: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def complete_matrix(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of bundled matrices, or files where a path was begun."""
    from click.shell_completion import CompletionItem

    from netprobe.load.matrix.bundled import bundled_names

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in bundled_names() if name.startswith(incomplete)]


def _complete_format(formats: tuple[str, ...]) -> Callable[..., list[CompletionItem]]:
    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in formats if name.startswith(incomplete)]

    return complete


matrix_option = repeat_option(
    "-m",
    "--matrix",
    "matrices",
    type=MatrixType("--matrix"),
    metavar="NAME|FILE",
    shell_complete=complete_matrix,
    text="What must reach what: a bundled matrix (`netprobe matrix list`), or a file of your own "
    "(its path has a / or ends in .yaml).",
)


def require_matrix(matrices: Sequence[str]) -> None:
    """Raises RequestError where no matrix is named."""
    if not matrices:
        raise RequestError(
            "no matrix: give --matrix NAME or FILE (`netprobe matrix list` shows the bundled ones)"
        )


def add_inventory_option(show_default: str, text: str) -> Decorator:
    return repeat_option(
        "-i", "--inventory", "inventories",
        type=FileType(INVENTORY), metavar="FILE", show_default=show_default, text=text,
    )  # fmt: skip


inventory_option = add_inventory_option(
    "./inventory.yaml",
    "Which machines there are and how to get onto them: an inventory of netprobe or of Ansible.",
)

set_option = repeat_option(
    "--set",
    "sets",
    metavar="[MATRIX:]KEY=VALUE",
    text="A setting of the installation, such as cni=cilium; lists are a,b.",
)

role_option = repeat_option(
    "--role",
    "roles",
    metavar="ROLE=ROLE[,ROLE]",
    text="What a role or group of the inventory stands for, such as kube_node=node.",
)

manifest_option = repeat_option(
    "--manifest",
    "manifests",
    type=FILE,
    metavar="FILE",
    text="Take settings, addresses and proxies from manifests of the installation: "
    "HostedCluster, NodePool, install-config, Kubean, Deckhouse and others, YAML or JSON.",
)

manifest_options = together(
    manifest_option,
    repeat_option(
        "--network",
        "networks",
        metavar="NAME=CIDR",
        text="A further network of yours, which no subnet of a manifest may overlap.",
    ),
)

_END: Final = "HOST|ROLE"

selection_options = together(
    repeat_option(
        "--limit", metavar=_END, text="Only flows that touch this host or role at either end."
    ),
    repeat_option("--from", "from_", metavar=_END, text="Only flows from this host or role."),
    repeat_option("--to", metavar=_END, text="Only flows to this host or role."),
    repeat_option("--only", metavar="REQUIREMENT", text="Only the requirement of this id."),
    repeat_option(
        "--protocol",
        metavar="PROTOCOL",
        shell_complete=_complete_format(PROTOCOLS),
        text="Only tcp, udp, icmp, ipproto or ipproto/N.",
    ),
)

request_options = together(
    matrix_option,
    inventory_option,
    manifest_options,
    set_option,
    role_option,
    selection_options,
)

become_option = flag(
    "--ask-become-pass",
    "Ask for the sudo password on the terminal. Or set NETPROBE_BECOME_PASSWORD.",
)

agent_python_option = option(
    "--agent-python",
    multiple=True,
    type=FILE,
    metavar="FILE",
    show_default="the kept one, or one built now",
    help="The Python for hosts that have none: a file of `netprobe runtime build`; repeat it for "
    "other architectures.",
)

start_options = together(
    add_number(
        "--forks", 1, 100_000, "How many destinations are worked on at a time.", default=FORKS
    ),
    become_option,
    agent_python_option,
)

_look_options = together(
    option(
        "--timeout",
        type=click.FloatRange(0.1, 600),
        metavar="SECONDS",
        show_default="learned from round trips, 4 s at most",
        help="How long one look waits for an answer.",
    ),
    add_number(
        "--retries", 0, 20, "How often silence is asked again, instead of as often as makes an "
        "error unlikely; a refusal never is.",
    ),
)  # fmt: skip

strict_option = flag(
    "--strict", "Accept no refusal and no bare handshake as proof: they become inconclusive."
)

_listening_options = together(
    flag("--no-listen", "Open no listeners: only what runs already, or refuses, can answer."),
    flag("--no-recorder", "Record no packets: of silence, less can be said about where."),
)
_live = flag("--live", "Everything is supposed to run: a refusal is a failure of the service.")

_judging_options = together(_listening_options, strict_option, _live)

_rate = add_number(
    "--rate",
    1,
    10_000_000,
    "At most so many probes a second, over all sources. Closed UDP is paced anyway.",
    show_default="not limited",
)

_part_options = together(
    add_number(
        "--sample",
        1,
        1_000_000,
        "Probe a sample only: N peers of each host, and N ports of each range.",
        show_default="everything is probed",
    ),
    add_number(
        "--max-results",
        1,
        1_000_000_000,
        "Refuse a plan with more results than this.",
        default=5_000_000,
    ),
)

probing_options = together(
    _look_options,
    _rate,
    start_options,
    # Scripts still give it; it does nothing.
    option("--jobs", type=click.IntRange(1, 1024), hidden=True),
    _judging_options,
    _part_options,
)

# What `bundle` puts into its scripts; `merge` judges.
script_options = together(
    _look_options, _rate, agent_python_option, _listening_options, _live, _part_options
)

# Options about one flow; a run has further ones about many flows.
flow_options = together(_look_options, become_option, agent_python_option, _judging_options)


def output_option(formats: tuple[str, ...] = PAGE_FORMATS) -> Decorator:
    """``-o FORMAT[=FILE]``, repeatable."""
    return repeat_option(
        "-o",
        "--output",
        "outputs",
        metavar="FORMAT[=FILE]",
        show_default=formats[0],
        shell_complete=_complete_format(formats),
        text=f"What to print, or to write to a file: {', '.join(formats)}. A new file is for its "
        "owner alone (0600).",
    )


redact_option = flag(
    "--redact",
    "For strangers: all reports say host-1, address-1 ... for hosts, addresses and other names. "
    "The record keeps them.",
)

rule_options = together(
    option(
        "--by",
        type=click.Choice(("device", "finding", "requirement")),
        default="device",
        help="What never shares a rule: flows of different devices, findings or requirements.",
    ),
    option(
        "--at",
        metavar="path|destination|source|ADDRESS",
        show_default="everywhere",
        help="Only rules to be applied there: on the way, on the hosts at an end, or on the router "
        "of this address. With --from-plan: where they shall be applied (path).",
    ),
    repeat_option(
        "--include",
        type=click.Choice(("inconclusive", "exposed")),
        text="Ask also for what may be blocked; ask to close what must not answer and does.",
    ),
    repeat_option(
        "--into",
        metavar="[FORMAT=]WHERE",
        text="Where the rules go: nftables inet/filter/forward, iptables a chain, cisco-* a list, "
        "paloalto, fortios and junos FROM/TO (zones), calico a selector, aerleon a target.",
    ),
    flag("--stateless", "Ask also for the way back: for devices that keep no state."),
    flag("--one-per-row", "Tables: one pair of addresses and one port or range in a row."),
    option(
        "--until", metavar="DATE", default="permanent", help="Until when the rules are asked for."
    ),
    repeat_option(
        "--ticket",
        metavar="KEY=VALUE",
        text="A field of your forms, such as workflow=..., subject=... or Owner=... .",
    ),
    repeat_option(
        "--undo",
        metavar="FORMAT[=FILE]",
        show_default="none",
        text="Write what takes the rules away again.",
    ),
)

plan_options = together(
    flag("--from-plan", "Ask for all that is required, before any probe; takes no FILE."),
    request_options,
)

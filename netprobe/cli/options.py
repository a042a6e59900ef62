"""The options that verbs share: their names, ranges, defaults, environment variables and help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from netprobe.errors import RequestError
from netprobe.probe.settings import FORKS, LOOKS  # the help must import nothing heavier

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

RUN_FORMATS: Final = ("text", "wide", "json")
PLAN_FORMATS: Final = ("text", "json")
MATRIX_FORMATS: Final = ("text", "json", "yaml")
HOST_FORMATS: Final = ("text", "json")
EXPLAIN_FORMATS: Final = ("text", "json")
TUNNEL_FORMATS: Final = ("text", "json")
PROTOCOLS: Final = ("tcp", "udp", "icmp", "ipproto")

# Any: click's decorators take and give whatever they stand on.
Decorator = Callable[[Any], Any]
VerbOptions = Mapping[str, Any]  # Any: what click made of each option


def option(*names: str, **attributes: Any) -> Decorator:
    """An option that ``NETPROBE_<NAME>`` sets too."""
    long = next(name for name in names if name.startswith("--"))
    variable = "NETPROBE_" + long.split("/")[0].lstrip("-").upper().replace("-", "_")
    attributes.setdefault("show_default", True)
    return click.option(*names, envvar=variable, **attributes)


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


matrix_option = option(
    "-m",
    "--matrix",
    "matrices",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=complete_matrix,
    help="What must reach what: a bundled matrix (`netprobe matrix list`), or a file of your own "
    "(its path has a / or ends in .yaml). Repeatable.",
)


def require_matrix(matrices: Sequence[str]) -> None:
    """Raises RequestError where no matrix is named."""
    if not matrices:
        raise RequestError(
            "no matrix: give --matrix NAME or FILE (`netprobe matrix list` shows the bundled ones)"
        )


inventory_option = option(
    "-i",
    "--inventory",
    "inventories",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    show_default="./inventory.yaml",
    help="Which machines there are and how to get onto them: an inventory of netprobe or of "
    "Ansible. Repeatable.",
)

set_option = option(
    "--set",
    "sets",
    multiple=True,
    metavar="[MATRIX:]KEY=VALUE",
    help="A setting of the installation, such as cni=cilium; lists are a,b. Repeatable.",
)

selection_options = together(
    option(
        "--limit",
        multiple=True,
        metavar="HOST|ROLE",
        help="Only flows that touch this host or role at either end. Repeatable.",
    ),
    option(
        "--from",
        "from_",
        multiple=True,
        metavar="HOST|ROLE",
        help="Only flows from this host or role. Repeatable.",
    ),
    option(
        "--to",
        multiple=True,
        metavar="HOST|ROLE",
        help="Only flows to this host or role. Repeatable.",
    ),
    option(
        "--only",
        multiple=True,
        metavar="REQUIREMENT",
        help="Only the requirement of this id. Repeatable.",
    ),
    option(
        "--protocol",
        multiple=True,
        metavar="PROTOCOL",
        shell_complete=_complete_format(PROTOCOLS),
        help="Only tcp, udp, icmp, ipproto or ipproto/N. Repeatable.",
    ),
)

request_options = together(matrix_option, inventory_option, set_option, selection_options)

_ask_become_pass = option(
    "--ask-become-pass",
    is_flag=True,
    show_default=False,
    help="Ask for the sudo password on the terminal. Or set NETPROBE_BECOME_PASSWORD.",
)

start_options = together(
    option(
        "--forks",
        type=click.IntRange(1, 100_000),
        default=FORKS,
        metavar="N",
        help="How many destinations are worked on at a time.",
    ),
    _ask_become_pass,
)

_timeout = option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    metavar="SECONDS",
    show_default="learned from round trips, 4 s at most",
    help="How long one look waits for an answer.",
)

_retries = option(
    "--retries",
    type=click.IntRange(0, 20),
    default=LOOKS - 1,
    metavar="N",
    help="How often silence is asked again; a refusal never is.",
)

_no_listen = option(
    "--no-listen",
    is_flag=True,
    show_default=False,
    help="Open no listeners: only what runs already, or refuses, can answer.",
)

_strict = option(
    "--strict",
    is_flag=True,
    show_default=False,
    help="Accept no refusal and no bare handshake as proof: they become inconclusive.",
)

_live = option(
    "--live",
    is_flag=True,
    show_default=False,
    help="Everything is supposed to run: a refusal is a failure of the service.",
)

probing_options = together(
    _timeout,
    _retries,
    option(
        "--rate",
        type=click.IntRange(1, 10_000_000),
        metavar="N",
        show_default="not limited",
        help="At most so many probes a second, over all sources. Closed UDP is paced anyway.",
    ),
    start_options,
    option(
        "--jobs",
        type=click.IntRange(1, 1024),
        # Scripts still give it; it does nothing.
        hidden=True,
    ),
    _no_listen,
    _strict,
    _live,
    option(
        "--sample",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        show_default="everything is probed",
        help="Probe a sample only: N peers of each host, and N ports of each range.",
    ),
    option(
        "--max-results",
        type=click.IntRange(1, 1_000_000_000),
        default=5_000_000,
        metavar="N",
        help="Refuse a plan with more results than this.",
    ),
)


# Options about one flow; a run has further ones about many flows.
flow_options = together(_timeout, _retries, _ask_become_pass, _no_listen, _strict, _live)


def output_option(formats: tuple[str, ...]) -> Decorator:
    """``-o FORMAT[=FILE]``, repeatable."""
    return option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        metavar="FORMAT[=FILE]",
        show_default=formats[0],
        shell_complete=_complete_format(formats),
        help=f"What to print, or to write to a file: {', '.join(formats)}. Repeatable.",
    )


tunnel_options = together(
    option(
        "--server",
        required=True,
        metavar="HOST[:PORT]",
        help="Where the agents dial: --proxy-server-host and --proxy-server-port of "
        "konnectivity-agent. Port by default: route 443, loadbalancer 8091 (k0s 8132).",
    ),
    option(
        "--publishing",
        required=True,
        type=click.Choice(("route", "nodeport", "loadbalancer")),
        help="How the server is published; nodeport needs the port.",
    ),
    option(
        "--flavour",
        type=click.Choice(("hypershift", "k0s")),
        show_default="found out",
        help="Whose Konnectivity it is: k0s has another port and tokens instead of certificates.",
    ),
    option(
        "--hostname",
        metavar="SNI",
        show_default="HOST, or none for an address",
        help="The server name in the ClientHello, by which a router finds its route.",
    ),
    option(
        "--proxy",
        default="env",
        metavar="URL|env|none",
        help="The agents' HTTPS proxy. env: HTTPS_PROXY and NO_PROXY of this process, or `proxy:` "
        "of a host of the inventory. A URL is used whatever NO_PROXY says.",
    ),
    option("--ca", metavar="FILE", help="Verify the server's chain against this CA (PEM)."),
    option("--client-cert", metavar="FILE", help="The agent's certificate (PEM)."),
    option("--client-key", metavar="FILE", help="Its key (PEM, without a password)."),
    option(
        "--repeat",
        type=click.IntRange(1, 200),
        default=4,
        metavar="N",
        help="How many further connections must be answered: one of several servers may be dead.",
    ),
    option(
        "--hold",
        type=click.FloatRange(1, 3600),
        metavar="SECONDS",
        show_default="not held",
        help="Keep idle connections so long and see whether they still work; without a client "
        "certificate at most 115.",
    ),
    option(
        "-i",
        "--inventory",
        "inventories",
        multiple=True,
        type=click.Path(),
        metavar="FILE",
        show_default="from this host",
        help="Diagnose from the workers of this inventory, through their vantages. Repeatable.",
    ),
    option(
        "--from",
        "from_",
        multiple=True,
        metavar="ROLE|HOST",
        show_default="hosts of role worker",
        help="From which hosts of the inventory. Repeatable.",
    ),
    output_option(TUNNEL_FORMATS),
)

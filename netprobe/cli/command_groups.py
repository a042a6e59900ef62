"""The groups of commands beside runs: ``audit``, ``diagnose`` and ``runtime``."""

from __future__ import annotations

from typing import Any

import click

from netprobe.cli.given import FILE
from netprobe.cli.options import (
    AUDIT_FORMATS,
    become_option,
    inventory_option,
    matrix_option,
    option,
    output_option,
    role_option,
    set_option,
)
from netprobe.cli.tunnel_options import tunnel_options

AUDIT_EPILOG = """\b
Exit status: 0 every listening port is registered, 1 a violation was found, 2 the request was
wrong, 3 a host or an owner could not be looked at, 4 netprobe itself failed, 130 interrupted.
"""

TUNNEL_EPILOG = """\b
Exit status: 0 every tunnel is fine, 1 a fault was found (of the network or of credentials: the
verdict says which), 2 the request was wrong, 3 something could not be judged or looked at,
4 netprobe itself failed, 130 interrupted.
"""


@click.group()
def audit() -> None:
    """Compare hosts with what the matrices say; nothing is probed: ports."""


@audit.command("ports", epilog=AUDIT_EPILOG)
@matrix_option
@inventory_option
@set_option
@role_option
@option(
    "--pods",
    type=FILE,
    metavar="FILE",
    help="Compare pods too: what `kubectl get pods -A -o json` prints.",
)
@become_option
@output_option(AUDIT_FORMATS)
def audit_ports(**options: Any) -> int:
    """Tell which processes listen on ports that the matrices do not give them.

    Agents list the listening sockets of every host, with process, unit or pod. The matrices are
    the registry: their rows say who may hold which port, on hosts of which role.

    \b
      netprobe audit ports -m openshift-host-ports -i inventory.yaml
      kubectl get pods -A -o json > pods.json
      netprobe audit ports -m openshift-host-ports -m ./site.yaml --pods pods.json
    """
    from netprobe.cli.asked import AuditOptions
    from netprobe.cli.audit import audit_ports_verb

    return audit_ports_verb(AuditOptions(**options))


@click.group()
def diagnose() -> None:
    """Find out why something that should run does not: konnectivity."""


@diagnose.command("konnectivity", epilog=TUNNEL_EPILOG)
@tunnel_options
def diagnose_konnectivity(**options: Any) -> int:
    """Tell why Konnectivity tunnels do not come up: from this host, or from every worker of an
    inventory. It never registers as an agent.

    \b
      netprobe diagnose konnectivity --server konnectivity-hc1.example.com --publishing route
      netprobe diagnose konnectivity --server 10.0.0.7:31234 --publishing nodeport -i inventory.yaml
    """
    from netprobe.cli.asked import DiagnoseOptions
    from netprobe.cli.diagnose import konnectivity_verb

    return konnectivity_verb(DiagnoseOptions(**options))


@click.group()
def runtime() -> None:
    """The Pythons that netprobe sends to hosts that have none."""


@runtime.command("build")
@option(
    "--python",
    metavar="PATH",
    show_default="the Python that runs netprobe",
    help="Build it from this interpreter (3.6 or later) of this machine.",
)
@option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    show_default="netprobe's folder of caches, where runs find it",
    help="Write it here, for --agent-python on another machine.",
)
def runtime_build(python: str | None, output: str | None) -> int:
    """Build one out of this machine's Python and its libraries, for hosts of its architecture.

    Runs do this by themselves when a host needs it. Build it by hand where hosts are of another
    architecture than the machine that runs netprobe: on a machine that is like them.
    """
    from netprobe.cli.runtime import build_verb

    return build_verb(python, output)


@runtime.command("list")
def runtime_list() -> int:
    """List those that are kept on this machine."""
    from netprobe.cli.runtime import list_verb

    return list_verb()

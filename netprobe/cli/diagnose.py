"""The verb ``diagnose konnectivity``."""

from __future__ import annotations

import sys

from netprobe.cli.asked import DiagnoseOptions
from netprobe.cli.given import read_outputs
from netprobe.cli.launch import make_runtimes
from netprobe.cli.options import TUNNEL_FORMATS
from netprobe.cli.streams import tell
from netprobe.errors import FileErrors, Problem, RequestError
from netprobe.konnectivity.request import Publishing, TunnelOptions, make_tunnel
from netprobe.konnectivity.run import LOCAL, choose_hosts, run
from netprobe.load.inventory.discover import load_inventory
from netprobe.load.manifest.hosts import make_role_book
from netprobe.load.manifest.kinds.hosted_cluster import tunnel_of
from netprobe.load.manifest.manifests import (
    GivenManifests,
    Manifests,
    apply_proxies,
    check_manifests,
    read_manifests,
)
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import TunnelReport
from netprobe.model.printable import word_command
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.konnectivity import KONNECTIVITY_WRITERS
from netprobe.vantage.launch import Launcher


def konnectivity_verb(options: DiagnoseOptions) -> int:
    """Diagnose and report; 0 where every tunnel is fine, 1 where one has a fault."""
    outputs = read_outputs(options.outputs, TUNNEL_FORMATS, options)
    manifests = _read_manifests(options)
    server, publishing = _find_server(options, manifests)
    tunnel = make_tunnel(
        TunnelOptions(
            server,
            publishing,
            flavour=options.flavour,
            hostname=options.hostname,
            ca=options.ca,
            client_cert=options.client_cert,
            client_key=options.client_key,
            repeat=options.repeat,
            hold_s=options.hold or 0.0,
        )
    )
    hosts = _choose_hosts(options, manifests)
    launcher = Launcher(runtimes=make_runtimes(options.agent_python))
    with progress(sys.stderr) as events:
        report = run(tunnel, hosts, options.proxy, options.inventories, launcher, events)
    write_or_raise(outputs, KONNECTIVITY_WRITERS, report)
    return _exit_status(report)


def _read_manifests(options: DiagnoseOptions) -> Manifests:
    """Read and check the manifests. Raises FileErrors with every problem."""
    problems: list[Problem] = []
    manifests = read_manifests(GivenManifests(options.manifests), problems)
    check_manifests(manifests, (), make_role_book(()), (), problems)
    if problems:
        raise FileErrors(problems)
    return manifests


def _find_server(options: DiagnoseOptions, manifests: Manifests) -> tuple[str, Publishing]:
    """Give server and publishing: as they were given, else as a HostedCluster says.

    Raises RequestError where neither says it.
    """
    server, publishing = options.server, options.publishing
    said = list(filter(None, map(tunnel_of, manifests.of_kind("HostedCluster"))))
    if server and publishing:
        return server, publishing
    if len(said) == 1:
        found = (server or said[0].server, publishing or said[0].publishing)
        words = ("--server", found[0], "--publishing", found[1])
        tell(f"netprobe: {said[0].place}: {word_command(words)}")
        return found
    missing = [
        option for option, text in (("--server", server), ("--publishing", publishing)) if not text
    ]
    hint = "a HostedCluster with --manifest"
    if manifests.objects:
        hint = f"one HostedCluster that names Konnectivity's host ({len(said)} do)"
    them = "it" if len(missing) == 1 else "both"
    raise RequestError(f"{' and '.join(missing)}: give {them}, or {hint}")


def _choose_hosts(options: DiagnoseOptions, manifests: Manifests) -> tuple[Host, ...]:
    if options.inventories:
        inventory = load_inventory(options.inventories)
        with_proxies, notes = apply_proxies(manifests, inventory, make_role_book(()))
        for note in notes:
            tell(f"netprobe: note: {note}")
        return choose_hosts(with_proxies, options.from_)
    if options.from_:
        raise RequestError("--from names hosts of an inventory: give one with -i FILE")
    return (LOCAL,)


def _exit_status(report: TunnelReport) -> int:
    outcomes = {one.outcome for one in report.diagnoses}
    if "fault" in outcomes:
        return BLOCKED
    return PASS if outcomes == {"ok"} else UNKNOWN

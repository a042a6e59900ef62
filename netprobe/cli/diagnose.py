"""The verb ``diagnose konnectivity``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from netprobe.cli.asked import DiagnoseOptions
from netprobe.cli.find_tunnel import STDIN, ask_clusters, has_piped_manifest, how_to_tell
from netprobe.cli.given import read_outputs
from netprobe.cli.launch import make_runtimes
from netprobe.cli.options import TUNNEL_FORMATS
from netprobe.cli.streams import tell
from netprobe.errors import FileErrors, Problem, RequestError
from netprobe.konnectivity.request import Publishing, TunnelOptions, make_tunnel
from netprobe.konnectivity.run import LOCAL, choose_hosts, run
from netprobe.load.inventory.discover import load_inventory
from netprobe.load.manifest.hosts import make_role_book
from netprobe.load.manifest.kinds import read_tunnels
from netprobe.load.manifest.kinds.hosted_cluster import TunnelSaid
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
    """Read and check the manifests, also one that is piped in where it is needed.

    Raises FileErrors with every problem.
    """
    problems: list[Problem] = []
    files = options.manifests
    if not files and _list_missing(options.server, options.publishing) and has_piped_manifest():
        files = (STDIN,)
    manifests = read_manifests(GivenManifests(files), problems)
    check_manifests(manifests, (), make_role_book(()), (), problems)
    if problems:
        raise FileErrors(problems)
    return manifests


def _find_server(options: DiagnoseOptions, manifests: Manifests) -> tuple[str, Publishing]:
    """Give server and publishing: as they were given, else as a manifest or the cluster says.

    Raises RequestError where nothing says it.
    """
    server, publishing = options.server, options.publishing
    if server and publishing:
        return server, publishing
    said = _list_tunnels(manifests) if manifests.objects else ask_clusters()
    said = list({(one.server, one.publishing, one.printing): one for one in said}.values())
    if len(said) == 1:
        (found,) = said
        server, publishing = server or found.server, publishing or found.publishing
        taken = [("--server", server), ("--publishing", publishing)]
        words = [word for option, text in taken if text for word in (option, text)]
        tell(f"netprobe: {found.place}: {word_command(words)}")
        if server and publishing:
            return server, publishing
    raise RequestError(_word_missing(_list_missing(server, publishing), said))


def _list_tunnels(manifests: Manifests) -> list[TunnelSaid]:
    """Give what manifests say: they are about one cluster, so one that names its host is enough."""
    said = read_tunnels(manifests.objects)
    return [one for one in said if one.server] or said


def _list_missing(server: str | None, publishing: str | None) -> list[str]:
    given = {"--server": server, "--publishing": publishing}
    return [option for option, text in given.items() if not text]


def _word_missing(missing: Sequence[str], said: Sequence[TunnelSaid]) -> str:
    """Say what is missing, and which commands print it."""
    what = " and ".join(missing)
    if len(said) > 1:
        listed = "".join(f"\n  {_word_tunnel(one)}" for one in said)
        return f"{what}: which of these {len(said)}? Give {_word_them(missing)}:{listed}"
    if missing == ["--publishing"]:
        return (
            "--publishing: route, nodeport or loadbalancer? Give it; the HostedCluster says it: "
            "oc -n NAMESPACE get hostedcluster NAME -o jsonpath='{.spec.services}'"
        )
    known = "".join(f"{one.title} names no host; " for one in said)
    ways = how_to_tell("".join(one.printing for one in said))
    return f"{what}: {known}give {_word_them(missing)}, or what says it:{ways}"


def _word_tunnel(one: TunnelSaid) -> str:
    publishing = f" ({one.publishing})" if one.publishing else ""
    return f"{one.server or 'no host'}{publishing}: {one.title}, {one.place}"


def _word_them(missing: Sequence[str]) -> str:
    return "it" if len(missing) == 1 else "both"


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

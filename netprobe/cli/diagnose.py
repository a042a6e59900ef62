"""The verb ``diagnose konnectivity``."""

from __future__ import annotations

import sys
from functools import partial

from netprobe.cli.options import PAGE_FORMATS, VerbOptions
from netprobe.cli.outputs import read_outputs
from netprobe.cli.runtime import make_runtimes
from netprobe.cli.streams import tell
from netprobe.errors import FileErrors, Problem, RequestError
from netprobe.konnectivity.request import TunnelOptions, make_tunnel
from netprobe.konnectivity.run import LOCAL, Job, choose_hosts, run
from netprobe.load.inventory.discover import load_inventory
from netprobe.load.manifest.hosts import make_role_book
from netprobe.load.manifest.manifests import (
    GivenManifests,
    Manifests,
    apply_proxies,
    check_manifests,
    read_manifests,
)
from netprobe.load.manifest.tunnel import tunnel_of
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import TunnelReport
from netprobe.model.printable import word_command
from netprobe.report.outputs import write_or_raise
from netprobe.report.page.progress import progress
from netprobe.report.verbs.konnectivity import write_konnectivity_json, write_konnectivity_text
from netprobe.vantage.launch import Launcher

# Options that the request takes as they are.
_NAMES = (
    "server",
    "publishing",
    "flavour",
    "hostname",
    "ca",
    "client_cert",
    "client_key",
    "repeat",
)


def konnectivity_verb(options: VerbOptions) -> int:
    """Diagnose and report; 0 where every tunnel is fine, 1 where one has a fault."""
    outputs = read_outputs(options, PAGE_FORMATS)
    manifests = _read_manifests(options)
    words = {**{name: options[name] for name in _NAMES}, **_find_server(options, manifests)}
    tunnel = make_tunnel(TunnelOptions(**words, hold_s=options["hold"] or 0.0))
    hosts = _choose_hosts(options, manifests)
    job = Job(tunnel, hosts, options["proxy"], tuple(map(str, options["inventories"])))
    launcher = Launcher(runtimes=make_runtimes(options))
    with progress(sys.stderr) as events:
        report = run(job, launcher, events)

    writers = {
        "text": partial(write_konnectivity_text, report),
        "json": partial(write_konnectivity_json, report),
    }
    write_or_raise(outputs, writers)
    return _exit_status(report)


def _read_manifests(options: VerbOptions) -> Manifests:
    """Read and check the manifests. Raises FileErrors with every problem."""
    problems: list[Problem] = []
    manifests = read_manifests(GivenManifests(options["manifests"]), problems)
    check_manifests(manifests, (), make_role_book(()), (), problems)
    if problems:
        raise FileErrors(problems)
    return manifests


def _find_server(options: VerbOptions, manifests: Manifests) -> dict[str, str]:
    """Give server and publishing: as they were given, else as a HostedCluster says.

    Raises RequestError where neither says it.
    """
    given = {name: options[name] for name in ("server", "publishing") if options[name]}
    said = list(filter(None, map(tunnel_of, manifests.of_kind("HostedCluster"))))
    if len(given) < 2 and len(said) == 1:
        found = {"server": said[0].server, "publishing": said[0].publishing} | given
        words = ("--server", found["server"], "--publishing", found["publishing"])
        tell(f"netprobe: {said[0].place}: {word_command(words)}")
        return found
    missing = [f"--{name}" for name in ("server", "publishing") if name not in given]
    if missing:
        hint = "a HostedCluster with --manifest"
        if manifests.objects:
            hint = f"one HostedCluster that names Konnectivity's host ({len(said)} do)"
        them = "it" if len(missing) == 1 else "both"
        raise RequestError(f"{' and '.join(missing)}: give {them}, or {hint}")
    return given


def _choose_hosts(options: VerbOptions, manifests: Manifests) -> tuple[Host, ...]:
    if options["inventories"]:
        inventory = load_inventory(options["inventories"])
        with_proxies, notes = apply_proxies(manifests, inventory, make_role_book(()))
        for note in notes:
            tell(f"netprobe: note: {note}")
        return choose_hosts(with_proxies, options["from_"])
    if options["from_"]:
        raise RequestError("--from names hosts of an inventory: give one with -i FILE")
    return (LOCAL,)


def _exit_status(report: TunnelReport) -> int:
    outcomes = {one.outcome for one in report.diagnoses}
    if "fault" in outcomes:
        return BLOCKED
    return PASS if outcomes == {"ok"} else UNKNOWN

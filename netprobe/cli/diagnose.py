"""The verb ``diagnose konnectivity``."""

from __future__ import annotations

import sys
from functools import partial

from netprobe.cli.options import PAGE_FORMATS, VerbOptions
from netprobe.cli.outputs import read_outputs
from netprobe.cli.runtime import make_runtimes
from netprobe.errors import RequestError
from netprobe.konnectivity.request import TunnelOptions, make_tunnel
from netprobe.konnectivity.run import LOCAL, Job, choose_hosts, run
from netprobe.load.inventory.discover import load_inventory
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import TunnelReport
from netprobe.report.konnectivity_report import write_konnectivity_json, write_konnectivity_text
from netprobe.report.outputs import write_or_raise
from netprobe.report.progress import progress
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
    tunnel = make_tunnel(
        TunnelOptions(**{name: options[name] for name in _NAMES}, hold_s=options["hold"] or 0.0)
    )
    job = Job(tunnel, _choose_hosts(options), options["proxy"])
    launcher = Launcher(runtimes=make_runtimes(options))
    with progress(sys.stderr) as events:
        report = run(job, launcher, events)

    writers = {
        "text": partial(write_konnectivity_text, report),
        "json": partial(write_konnectivity_json, report),
    }
    write_or_raise(outputs, writers)
    return _exit_status(report)


def _choose_hosts(options: VerbOptions) -> tuple[Host, ...]:
    if options["inventories"]:
        return choose_hosts(load_inventory(options["inventories"]), options["from_"])
    if options["from_"]:
        raise RequestError("--from names hosts of an inventory: give one with -i FILE")
    return (LOCAL,)


def _exit_status(report: TunnelReport) -> int:
    outcomes = {one.outcome for one in report.diagnoses}
    if "fault" in outcomes:
        return BLOCKED
    return PASS if outcomes == {"ok"} else UNKNOWN

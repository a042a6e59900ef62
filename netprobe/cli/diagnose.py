"""The verb ``diagnose konnectivity``."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from netprobe.cli.options import PAGE_FORMATS, VerbOptions
from netprobe.errors import FAILED, RequestError
from netprobe.konnectivity.request import TunnelOptions, make_tunnel
from netprobe.konnectivity.run import LOCAL, Job, choose_hosts, run
from netprobe.load.inventory.discover import load_inventory
from netprobe.model.exit import BLOCKED, PASS, UNKNOWN
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import TunnelReport
from netprobe.report.konnectivity_report import (
    write_konnectivity_json,
    write_konnectivity_text,
)
from netprobe.report.outputs import parse_outputs, write_outputs
from netprobe.report.progress import progress
from netprobe.vantage.launch import Launcher

WRITERS = {"text": write_konnectivity_text, "json": write_konnectivity_json}


def konnectivity_verb(options: VerbOptions) -> int:
    """Diagnose and report; 0 where every tunnel is fine, 1 where one has a fault."""
    outputs = parse_outputs(options["outputs"], PAGE_FORMATS, "text")
    tunnel = make_tunnel(
        TunnelOptions(
            server=options["server"],
            publishing=options["publishing"],
            flavour=options["flavour"],
            hostname=options["hostname"],
            ca=options["ca"],
            client_cert=options["client_cert"],
            client_key=options["client_key"],
            repeat=options["repeat"],
            hold_s=options["hold"] or 0.0,
        )
    )
    job = Job(tunnel, _choose_hosts(options), options["proxy"])
    with progress(sys.stderr) as events:
        report = run(job, Launcher(), events)

    def render(format_: str, stream: TextIO) -> None:
        WRITERS[format_](report, stream)

    problems = write_outputs(outputs, render)
    for problem in problems:
        click.echo(f"netprobe: {problem}", err=True)
    return FAILED if problems else _exit_status(report)


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

"""The commands of runs that hosts carry out by themselves: ``bundle`` and ``merge``."""

from __future__ import annotations

from typing import Any

import click

from netprobe.cli.batch_options import (
    merge_options,
    results_argument,
    when_options,
    where_options,
)
from netprobe.cli.covering import cover_options
from netprobe.cli.given import FileType
from netprobe.cli.options import (
    EPILOG,
    RUN_FORMATS,
    flag,
    output_option,
    redact_option,
    request_options,
    script_options,
)
from netprobe.cli.result_options import accepted_options, baseline_options


@click.command()
@results_argument
@request_options
@cover_options
@when_options
@where_options
@script_options
def bundle(**options: Any) -> int:
    """Write a run that hosts carry out by themselves, where nothing can talk to all of them.

    Each host writes one file; `netprobe merge` reports. Whoever has a bundle can answer probes of
    this run. One file for all hosts holds the keys of all: each host could write the results of
    the others, and the report says so. With --per-host no host can.

    \b
      netprobe bundle -m deckhouse-nodes --start 14:00Z --window 10m > run.pyz
      python3 run.pyz --out /media/usb                   # on every host, before 14:00
      netprobe merge run.pyz /media/usb/*.npr

    \b
      netprobe bundle -m deckhouse-nodes --start 14:00Z --per-host run
      python3 worker-1.pyz --out /media/usb              # on worker-1; keep plan.pyz
      netprobe merge run/plan.pyz /media/usb/*.npr
    """
    from netprobe.cli.asked import BundleOptions
    from netprobe.cli.bundle import bundle_verb

    return bundle_verb(BundleOptions(**options))


@click.command(epilog=EPILOG)
@click.argument("file", metavar="BUNDLE|DIR", type=FileType("the file to read"))
@results_argument
@output_option(RUN_FORMATS)
@redact_option
@merge_options
@accepted_options
@baseline_options
@flag("-v", "--verbose", "Say at the end where the time went.")
def merge(**options: Any) -> int:
    """Report a run of `netprobe bundle` from what its hosts wrote: RESULTS are their files.

    Flows of hosts without a file are not tested, nor are those of a host with a bad one.
    """
    from netprobe.cli.asked import MergeOptions
    from netprobe.cli.merge import merge_verb

    return merge_verb(MergeOptions(**options))

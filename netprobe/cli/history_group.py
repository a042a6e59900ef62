"""The group of verbs about a history; its code is imported when one of them is called."""

from __future__ import annotations

import click

from netprobe.cli.asked import HistoryAddOptions, HistoryOptions
from netprobe.cli.help import VerbGroup
from netprobe.cli.options import take_options


@click.group(cls=VerbGroup, invoke_without_command=True)
@take_options(HistoryOptions)
@click.pass_context
def history(context: click.Context, options: HistoryOptions) -> int:
    """Tell which outages runs saw over time: each with the times between which it began and ended.

    \b
      netprobe history add monday.jsonl tuesday.jsonl
      netprobe history --since 7d -o html=history.html
      netprobe history --when 2027-01-31T14:00Z
    """
    if context.invoked_subcommand is not None:
        return 0
    from netprobe.cli.history import history_verb

    return history_verb(options)


@history.command("add")
@take_options(HistoryAddOptions)
def history_add(options: HistoryAddOptions) -> int:
    """Take runs into the history: RUN is a record or a JSON report; each is one look."""
    from netprobe.cli.history import add_verb

    return add_verb(options)

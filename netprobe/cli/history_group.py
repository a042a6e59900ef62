"""The group of verbs about a history; its code is imported when one of them is called."""

from __future__ import annotations

import click
from click.core import ParameterSource

from netprobe.cli.asked import HistoryAddOptions, HistoryOptions
from netprobe.cli.help import VerbGroup
from netprobe.cli.options import take_options
from netprobe.errors import RequestError


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
        _refuse_before(context, context.invoked_subcommand)
        return 0
    from netprobe.cli.history import history_verb

    return history_verb(options)


def _refuse_before(context: click.Context, verb: str) -> None:
    """Raises RequestError for an option before the verb, which would not heed it."""
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name))
        if given is ParameterSource.COMMANDLINE:
            raise RequestError(f"{parameter.opts[-1]} stands before {verb!r}: give it after that")


@history.command("add")
@take_options(HistoryAddOptions)
def history_add(options: HistoryAddOptions) -> int:
    """Take runs into the history: RUN is a record or a JSON report; each is one look."""
    from netprobe.cli.history import add_verb

    return add_verb(options)

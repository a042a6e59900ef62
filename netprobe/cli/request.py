"""The verb ``request``: the firewall rules that a run lacks, or that a plan needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from ipaddress import ip_address

import click
from click.core import ParameterSource

from netprobe.cli.asked import RequestOptions
from netprobe.cli.given import read_last_day, read_outputs
from netprobe.cli.option_groups import PlanOptions
from netprobe.cli.options import REQUEST_FORMATS, options_of
from netprobe.cli.plan import make_plan
from netprobe.cli.report import fold_failures
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.model.exit import PASS
from netprobe.model.firewall import PERMANENT, RULE_PLACES, FirewallRequest
from netprobe.model.printable import clean
from netprobe.model.reasons import find_reason
from netprobe.model.result import Result
from netprobe.report.outputs import OutputTarget, write_or_raise
from netprobe.report.page.wording import number, plural
from netprobe.report.record.collector import Collector
from netprobe.report.record.record import read_run
from netprobe.request.build import request_of_plan, request_of_run
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from netprobe.request.syntaxes.table import COLUMNS

# `FORMAT=WHERE`; a selector of Calico compares with two signs.
_NAMED_INTO = re.compile(r"[A-Za-z][\w-]*=(?!=)")
_PLAN_OPTIONS = frozenset(options_of(PlanOptions))


def request_verb(options: RequestOptions) -> int:
    """Make the request and write it; 0 also where there is nothing to ask for."""
    outputs = read_outputs(options.outputs, REQUEST_FORMATS, options)
    undo = read_outputs(options.undo, REQUEST_FORMATS, options, "--undo") if options.undo else ()
    _check_syntaxes(outputs, undo)
    _check_paths(outputs, undo)
    wishes = _read_wishes(options, [output.format for output in (*outputs, *undo)])
    request = _make_request(options, wishes)
    write_or_raise(outputs, {name: one.write for name, one in SYNTAXES.items()}, request)
    undoing = {name: one.undo for name, one in SYNTAXES.items() if one.undo}
    write_or_raise(undo, undoing, request)
    if all(output.path for output in outputs):
        tell(f"netprobe: {_word_totals(request)}")
    return PASS


def _check_syntaxes(outputs: Sequence[OutputTarget], undo: Sequence[OutputTarget]) -> None:
    """Raise RequestError for a library that is missing, and for what cannot be undone."""
    for output in outputs:
        library = SYNTAXES[output.format].library
        if library is not None and find_spec(library) is None:
            raise RequestError(
                f"-o {output.format}: {library} is not installed here; install "
                f"netprobe-matrix[{output.format}], or take -o csv"
            )
    for output in undo:
        if SYNTAXES[output.format].undo is None:
            known = ", ".join(name for name, one in SYNTAXES.items() if one.undo)
            raise RequestError(f"--undo {output.format}: expected one of {known}")


def _check_paths(outputs: Sequence[OutputTarget], undo: Sequence[OutputTarget]) -> None:
    """Raise RequestError where rules and what takes them away would be one stream."""
    used = {_real_path(output) for output in outputs}
    for output in undo:
        if _real_path(output) in used:
            where = output.path or "standard output"
            raise RequestError(
                f"-o and --undo both write to {where}; name a file: --undo {output.format}=FILE"
            )


def _real_path(output: OutputTarget) -> str | None:
    return None if output.path is None else os.path.realpath(output.path)


def _read_wishes(options: RequestOptions, formats: Sequence[str]) -> RequestWishes:
    until = read_last_day(options.until, PERMANENT)
    return RequestWishes(
        by=options.by,
        include=frozenset(options.include),
        at=_read_place(options.at),
        stateless=options.stateless,
        one_per_row=options.one_per_row,
        until=until.isoformat() if until else PERMANENT,
        ticket=_read_ticket(options.ticket, formats),
        into=_read_into(options.into, formats),
    )


def _read_into(texts: Sequence[str], formats: Sequence[str]) -> dict[str, str]:
    """Give where the rules of each format go: what names no format is for all that are left.

    Raises RequestError for a place that none of these formats takes.
    """
    places = {name: one.into for name, one in SYNTAXES.items() if one.into is not None}
    found: dict[str, str] = {}
    for text in sorted(texts, key=lambda text: _NAMED_INTO.match(text) is None):
        names, where = [name for name in formats if name in places and name not in found], text
        if _NAMED_INTO.match(text):
            name, _, where = text.partition("=")
            if name not in places:
                known = ", ".join(places)
                raise RequestError(
                    f"--into {text}: no format {name} takes a place, expected one of {known}"
                )
            if name in found or name not in formats:
                why = "is given twice" if name in found else "is not among -o and --undo"
                raise RequestError(f"--into {text}: {name} {why}")
            names = [name]
        if not names:
            words = f"of {', '.join(dict.fromkeys(formats))} none is left that takes a place"
            raise RequestError(f"--into {text}: {words}, but {', '.join(places)} do")
        for name in dict.fromkeys(names):
            if re.fullmatch(places[name].pattern, where) is None:
                raise RequestError(f"--into {text}: {name} expects {places[name].words}")
            found[name] = where
    return found


def _read_place(text: str | None) -> str | None:
    """A mistyped place would give an empty request, which reads as if nothing were blocked."""
    if text is None or text in RULE_PLACES:
        return text
    try:
        return str(ip_address(text))
    except ValueError:
        known = ", ".join(RULE_PLACES)
        raise RequestError(f"--at {text}: expected {known} or a router's address") from None


def _read_ticket(texts: Sequence[str], formats: Sequence[str]) -> dict[str, str]:
    """Read the fields. Raises RequestError for a table in which two columns have one name."""
    is_table = not {"csv", "xlsx"}.isdisjoint(formats)
    taken = {name.casefold() for name in COLUMNS} if is_table else set()
    ticket: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        name = clean(key).strip().casefold()
        if not name or not equals:
            raise RequestError(f"--ticket {text}: expected KEY=VALUE")
        if name in taken:
            raise RequestError(f"--ticket {text}: there is a field {key} already, choose another")
        taken.add(name)
        ticket[key] = value
    return ticket


def _make_request(options: RequestOptions, wishes: RequestWishes) -> FirewallRequest:
    if options.from_plan:
        if options.file:
            raise RequestError("--from-plan takes no FILE: give --matrix and --inventory")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return request_of_plan(make_plan(options), now, wishes)
    _refuse_plan_options(options.file)
    if not options.file:
        raise RequestError("no FILE: give the record or JSON report of a run, or --from-plan")
    info, collector = read_run(options.file)
    with closing(collector):
        findings = fold_failures(info, collector)
        return request_of_run(info, findings, _find_doubtful(collector), options.file, wishes)


def _refuse_plan_options(file: str | None) -> None:
    """Raise RequestError for options that only a plan knows: they would choose nothing.

    What the environment says for all verbs is no mistake.
    """
    context = click.get_current_context()
    given = [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name in _PLAN_OPTIONS
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given and file:
        raise RequestError(
            f"{', '.join(given)}: only for --from-plan; {file} is asked for as a "
            "whole; leave this out, or give it to `netprobe run` and ask for that run"
        )


def _find_doubtful(collector: Collector) -> Iterator[Result]:
    """Give the results that no finding holds."""
    for result in collector.failures():
        if (
            result.verdict in ("inconclusive", "not-tested")
            and not find_reason(result.reason).always_found
        ):
            yield result


def _word_totals(request: FirewallRequest) -> str:
    flows = sum(rule.flows for rule in request.rules)
    words = (
        f"request {request.id}: {plural(len(request.rules), 'rule')} for {plural(flows, 'flow')}"
    )
    if not request.rules:
        words = f"no rule to ask for: {request.why_none}"
    rest, unprobed = len(request.unmended), len(request.unprobed)
    words += f"; {number(rest)} not to be mended by rules" if rest else ""
    return f"{words}; {number(unprobed)} not probed" if unprobed else words

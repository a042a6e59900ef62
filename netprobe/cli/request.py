"""The verb ``request``: the firewall rules that a run lacks, or that a plan needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address

from netprobe.cli.options import REQUEST_FORMATS, VerbOptions
from netprobe.cli.report import fold_failures
from netprobe.cli.run import make_plan
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.judge.advice import TELLING_REASONS
from netprobe.model.exit import PASS
from netprobe.model.firewall import PERMANENT, RULE_PLACES, FirewallRequest
from netprobe.model.result import Result
from netprobe.report.collector import Collector
from netprobe.report.outputs import OutputTarget, Writer, parse_outputs, write_or_raise
from netprobe.report.reading import read_run
from netprobe.report.wording import number, plural
from netprobe.request.build import request_of_run
from netprobe.request.from_plan import request_of_plan
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES


def request_verb(options: VerbOptions) -> int:
    """Make the request and write it; 0 also where there is nothing to ask for."""
    outputs = parse_outputs(options["outputs"], REQUEST_FORMATS)
    undo = parse_outputs(options["undo"], REQUEST_FORMATS, "--undo") if options["undo"] else ()
    _check_syntaxes(outputs, undo)
    request = _make_request(options, _read_wishes(options))
    write_or_raise(outputs, {name: partial(one.write, request) for name, one in SYNTAXES.items()})
    undoing: Mapping[str, Writer] = {
        name: partial(one.undo, request) for name, one in SYNTAXES.items() if one.undo
    }
    write_or_raise(undo, undoing)
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


def _read_wishes(options: VerbOptions) -> RequestWishes:
    into = {}
    for text in options["into"]:
        name, _, where = text.partition("=")
        into.update({name: where} if name in REQUEST_FORMATS else {"": text})
    return RequestWishes(
        by=options["by"],
        include=frozenset(options["include"]),
        at=_read_place(options["at"]),
        stateless=options["stateless"],
        one_per_row=options["one_per_row"],
        until=_read_until(options["until"]),
        ticket=dict(_split_ticket(text) for text in options["ticket"]),
        into=into,
    )


def _read_place(text: str | None) -> str | None:
    """A mistyped place would give an empty request, which reads as if nothing were blocked."""
    if text is None or text in RULE_PLACES:
        return text
    try:
        return str(ip_address(text))
    except ValueError:
        known = ", ".join(RULE_PLACES)
        raise RequestError(f"--at {text}: expected {known} or a router's address") from None


def _read_until(text: str) -> str:
    if text == PERMANENT:
        return text
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise RequestError(f"--until {text}: expected YYYY-MM-DD or {PERMANENT}") from None


def _split_ticket(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise RequestError(f"--ticket {text}: expected KEY=VALUE")
    return key, value


def _make_request(options: VerbOptions, wishes: RequestWishes) -> FirewallRequest:
    if options["from_plan"]:
        if options["file"]:
            raise RequestError("--from-plan takes no FILE: give --matrix and --inventory")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return request_of_plan(make_plan(options), now, wishes)
    if not options["file"]:
        raise RequestError("no FILE: give the record or JSON report of a run, or --from-plan")
    info, collector = read_run(options["file"])
    with closing(collector):
        findings = fold_failures(info, collector)
        return request_of_run(info, findings, _find_doubtful(collector), options["file"], wishes)


def _find_doubtful(collector: Collector) -> Iterator[Result]:
    """Give the results that no finding holds."""
    for result in collector.failures():
        if (
            result.verdict in ("inconclusive", "not-tested")
            and result.reason not in TELLING_REASONS
        ):
            yield result


def _word_totals(request: FirewallRequest) -> str:
    flows = sum(rule.flows for rule in request.rules)
    words = (
        f"request {request.id}: {plural(len(request.rules), 'rule')} for {plural(flows, 'flow')}"
    )
    if not request.rules:
        words = "no rule to ask for"
    rest = len(request.unmended)
    return f"{words}; {number(rest)} not to be mended by rules" if rest else words

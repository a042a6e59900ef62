"""A diagnosis of the Konnectivity tunnel as a page (causes first, then workers), also in Markdown,
and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TextIO

import netprobe
from netprobe.model.konnectivity import STAGES, CommonCause, Diagnosis, TunnelReport
from netprobe.model.struct_json import Json, to_json
from netprobe.report.page.markdown_page import write_markdown_page
from netprobe.report.page.page import Line, PagePart, Style, align, field, write_page
from netprobe.report.page.wording import plural
from netprobe.report.verbs.explain import stages_to_json, status_column, trail_lines

_STYLES: dict[str, Style] = {
    "ok": "good", "fault": "bad", "unsure": "doubt", "not-tested": "doubt",
}  # fmt: skip
_WORDS = {"ok": "OK", "fault": "FAULT", "unsure": "UNSURE", "not-tested": "NOT TESTED"}
# Columns of the table; the stages' whole names would not fit on a line.
STAGE_HEADS = {
    "tls-small": "tls", "tls-agent-size": "tls-big", "control-sni": "sni", "identity": "who",
    "fan-out": "fan",
}  # fmt: skip
# Kinds of faults that no change of the network mends.
_FOREIGN = {
    "credentials": "not the network: the agent's credentials",
    "certificate": "not the network: the server's certificate",
    "clock": "not the network: the worker's clock",
}
_MOST_NAMED = 8

KONNECTIVITY_SCHEMA = "netprobe.konnectivity/1"


def write_konnectivity_text(report: TunnelReport, stream: TextIO) -> None:
    """Write the page: wrapped and coloured on a terminal, plain anywhere else."""
    write_page(konnectivity_parts(report), stream)


def write_konnectivity_markdown(report: TunnelReport, stream: TextIO) -> None:
    """Write the page for tickets and chats."""
    write_markdown_page(konnectivity_parts(report), stream)


def konnectivity_parts(report: TunnelReport) -> Iterator[PagePart]:
    """Show the whole page."""
    yield _write_headline(report)
    if len(report.diagnoses) == 1:
        yield from _write_one_worker(report.diagnoses[0])
        return
    for number, cause in enumerate(report.causes, 1):
        yield from _write_cause(number, cause, report)
    yield Line()
    yield from _write_table(report.diagnoses)
    yield Line()
    yield from field("warning", _word_warnings(report))
    tested = (one for one in report.diagnoses if one.stages and one.outcome != "not-tested")
    yield from field("way", sorted({one.via for one in tested}))
    yield Line()
    yield Line(_word_totals(report))


def _write_headline(report: TunnelReport) -> Line:
    server = f"[{report.server}]" if ":" in report.server else report.server
    name = "" if report.hostname in (None, report.server) else f", server name {report.hostname}"
    many = len(report.diagnoses)
    who = report.diagnoses[0].worker if many == 1 else plural(many, "worker")
    where = f"{server}:{report.port} ({report.publishing}{name})"
    return Line(f"Konnectivity tunnel to {where}, from {who}: {report.elapsed_s:.1f} s", "strong")


def _write_one_worker(one: Diagnosis) -> Iterator[PagePart]:
    yield Line()
    yield Line(f"{_WORDS[one.outcome]} {one.code}: {one.title}", _STYLES[one.outcome], hang=3)
    yield from field("seen", [one.because])
    if one.outcome != "ok":
        yield from field("where", [one.where or "unknown"])
        yield from field("stage", [f"{one.stage or 'none'} ({_FOREIGN.get(one.kind, one.kind)})"])
    yield from field("warning", one.warnings)
    yield from field("to do", [one.remedy])
    yield from field("further", [one.explain])
    yield from field("agent log", [one.logs])
    yield from field("way", [one.via])
    yield Line()
    yield from trail_lines(one.stages, max(map(len, STAGES)))
    if one.fine:
        yield Line()
        yield from field("proven", one.fine)
    yield from field("not seen", one.open)


def _write_cause(number: int, cause: CommonCause, report: TunnelReport) -> Iterator[PagePart]:
    yield Line()
    many = f"{len(cause.workers)} of {plural(cause.total, 'worker')}"
    yield Line(f"{number}. {many}: {cause.title} ({cause.code})", _STYLES[cause.outcome], hang=3)
    first = next(one for one in report.diagnoses if one.worker == cause.workers[0])
    yield from field("workers", [_name_workers(cause.workers)])
    yield from field(
        "seen", [first.because if len(cause.workers) == 1 else f"{first.worker}: {first.because}"]
    )
    yield from field("where", [cause.where or ""])
    yield from field("to do", [cause.remedy])
    yield from field("further", [first.explain])
    yield from field("agent log", [first.logs])


def _word_warnings(report: TunnelReport) -> Iterator[str]:
    """Give each warning once with its workers, then what is noted of all."""
    whose: dict[str, list[str]] = {}
    for one in report.diagnoses:
        for text in one.warnings:
            whose.setdefault(text, []).append(one.worker)
    for text, workers in whose.items():
        yield f"{_name_workers(workers)}: {text}"
    yield from report.notes


def _name_workers(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _write_table(diagnoses: tuple[Diagnosis, ...]) -> Iterator[Line]:
    heads = ["worker", *(STAGE_HEADS.get(name, name) for name in STAGES), "verdict"]
    rows = [
        [one.worker, *(status_column(one.stages, name) for name in STAGES), one.code]
        for one in diagnoses
    ]
    head, *lines = align([heads, *rows])
    yield Line(head, "strong")
    for one, line in zip(diagnoses, lines, strict=True):
        yield Line(line, _STYLES[one.outcome] if one.outcome != "ok" else "plain")


def _word_totals(report: TunnelReport) -> str:
    counts = {word: sum(1 for one in report.diagnoses if one.outcome == word) for word in _WORDS}
    parts = [f"{counts['ok']} ok", f"{counts['fault']} with a fault"]
    parts += [f"{counts['unsure']} unsure"] if counts["unsure"] else []
    parts += [f"{counts['not-tested']} not tested"] if counts["not-tested"] else []
    return f"{plural(len(report.diagnoses), 'worker')}: {', '.join(parts)}"


def write_konnectivity_json(report: TunnelReport, stream: TextIO) -> None:
    """Write the report as one JSON document, keys in a fixed order."""
    document = {
        "schema": KONNECTIVITY_SCHEMA,
        "netprobe_version": netprobe.__version__,
        "started_at": report.started_at,
        "elapsed_s": report.elapsed_s,
        "server": {
            "host": report.server,
            "port": report.port,
            "publishing": report.publishing,
            "flavour": report.flavour,
            "hostname": report.hostname,
        },
        "notes": list(report.notes),
        "findings": [_cause_to_json(one) for one in report.causes],
        "workers": [_diagnosis_to_json(one) for one in report.diagnoses],
    }
    json.dump(document, stream, indent=1, ensure_ascii=False)
    stream.write("\n")


def _cause_to_json(cause: CommonCause) -> Json:
    data: Json = to_json(cause)
    data["of"] = data.pop("total")
    return data


def _diagnosis_to_json(one: Diagnosis) -> Json:
    return {
        "worker": one.worker,
        "code": one.code,
        "outcome": one.outcome,
        "kind": one.kind,
        "where": one.where,
        "first_failing_stage": one.stage if one.outcome != "ok" else None,
        "title": one.title,
        "because": one.because,
        "remedy": one.remedy,
        "agent_logs": one.logs,
        "warnings": list(one.warnings),
        "explain": one.explain,
        "via": one.via,
        "fine": list(one.fine),
        "not_proven": list(one.open),
        "evidence": dict(one.evidence),
        "stages": stages_to_json(one.stages),
    }


KONNECTIVITY_WRITERS: Final[Mapping[str, Callable[[TunnelReport, TextIO], None]]] = {
    "text": write_konnectivity_text,
    "json": write_konnectivity_json,
    "markdown": write_konnectivity_markdown,
}

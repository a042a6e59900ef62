"""The audit of listening ports: a page (violations first), JSON with its schema, and JUnit XML.

JUnit has a suite for each host and a case for each port.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

import netprobe
from netprobe.model.audit import (
    AuditedHost,
    AuditedPort,
    AuditFinding,
    AuditKind,
    AuditWeight,
    PortAudit,
)
from netprobe.model.struct_json import Json, schema_of_struct, to_json
from netprobe.report.page.host_keys import word_host_keys
from netprobe.report.page.junit_xml import CaseFate, JunitCase, JunitSuite, write_suites
from netprobe.report.page.page import (
    INDENT,
    Line,
    PagePart,
    Style,
    align,
    field,
    section,
    write_page,
)
from netprobe.report.page.wording import listed, plural
from netprobe.report.run.headline import word_value
from netprobe.report.run.schema import COUNT, make_object

AUDIT_SCHEMA: Final = "netprobe.audit-ports/1"
# With more hosts than these the page lists no ports.
MANY_HOSTS: Final = 8
KINDS: Final[dict[AuditKind, str]] = {
    "no-entry": "a process without an entry",
    "wrong-owner": "the port of another process",
    "retired": "a port that was given up is in use",
    "not-local": "meant to be local, and bound to other addresses",
    "outside-ranges": "outside of the documented ranges",
    "two-owners": "two owners",
    "undeclared": "a pod listens on what it does not declare",
    "unregistered": "a pod declares what nobody registered",
    "silent": "a pod declares what it does not listen on",
    "unseen-owner": "the owner could not be seen",
    "unlisted-pod": "a pod that the file of pods does not list",
    "local-in-range": "local, and in a documented range",
}
_HEADS: Final = ("port", "address", "process", "unit or pod", "row")
_STYLES: Final[dict[AuditWeight, Style]] = {
    "violation": "bad", "unseen": "doubt", "advice": "quiet",
}  # fmt: skip
_WEIGHTS: Final[dict[AuditWeight, str]] = {
    "violation": "VIOLATION", "unseen": "NOT SEEN", "advice": "advice",
}  # fmt: skip


def write_audit_text(audit: PortAudit, stream: TextIO) -> None:
    """Write the findings by weight and host, then the hosts, notes and totals."""
    write_page(_page_parts(audit), stream)


def _page_parts(audit: PortAudit) -> Iterator[PagePart]:
    yield _head_line(audit)
    matrices = (
        f"{one.name} ({', '.join(f'{k}={word_value(v)}' for k, v in one.settings.items())})"
        if one.settings
        else one.name
        for one in audit.matrices
    )
    yield Line(f"netprobe {netprobe.__version__}, {audit.started_at}, {'; '.join(matrices)}")
    alike = [some for weight in _WEIGHTS for some in _group_alike(audit.of_weight(weight))]
    for number, some in enumerate(alike, start=1):
        yield from _finding_parts(number, some)
    many = len(audit.hosts) > MANY_HOSTS
    if many:
        yield Line()
    keys = {host.name: host.host_key for host in audit.hosts if host.host_key is not None}
    for host in audit.hosts:
        if host.host_key is None:
            yield from _host_parts(host, brief=many)
    for trouble in word_host_keys(keys):
        yield Line()
        yield Line(f"not looked at: {trouble.what}. {trouble.to_do}", "doubt")
    if many:
        yield Line("   -o json lists the ports of every host", "quiet")
    for notes in section("notes", Line("NOTES", "strong"), map(Line, audit.notes)):
        yield Line()
        yield from notes.lines()
    yield Line()
    yield Line(_word_totals(audit), "strong")


def _head_line(audit: PortAudit) -> Line:
    violations, unseen = audit.of_weight("violation"), audit.of_weight("unseen")
    failed = [host for host in audit.hosts if host.state == "failed"]
    looked = [host for host in audit.hosts if host.state == "looked-at"]
    if violations:
        where = len({one.host for one in violations})
        words = f"VIOLATIONS: {plural(len(violations), 'violation')} on {plural(where, 'host')}"
        return Line(words, "bad")
    if not looked:
        return Line("NOT LOOKED AT: no host could be looked at", "doubt")
    if failed or unseen:
        hosts, doubts = plural(len(failed), "host"), plural(len(unseen), "finding")
        words = f"{hosts} not looked at, {doubts} in doubt"
        return Line(f"UNSURE: no violation seen; {words}", "doubt")
    return Line(f"OK: every listening port of {plural(len(looked), 'host')} is registered", "good")


def _group_alike(findings: Iterable[AuditFinding]) -> list[list[AuditFinding]]:
    """Give findings that differ in nothing but host, address and process id as one."""
    groups: dict[object, list[AuditFinding]] = {}
    for one in findings:
        names = tuple(holder.name for holder in one.holders)
        key = (one.kind, one.protocol, one.port, names, one.rows, one.remedy)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _finding_parts(number: int, alike: list[AuditFinding]) -> Iterator[PagePart]:
    yield Line()
    one = alike[0]
    hosts = [other.host for other in alike]
    head = f"{number}. {_WEIGHTS[one.weight]}: {one.protocol} {one.port} on {listed(hosts, 3)}"
    yield Line(f"{head}: {KINDS[one.kind]} ({one.kind})", _STYLES[one.weight], hang=3)
    seen = one.because if len(alike) == 1 else f"{one.host}: {one.because}"
    yield from field("seen", [seen])
    yield from field("hosts", [listed(hosts, 20)] if len(alike) > 3 else [])
    yield from field("to do", [one.remedy])


def _host_parts(host: AuditedHost, *, brief: bool) -> Iterator[PagePart]:
    if not brief:
        yield Line()
    roles = f" ({', '.join(host.roles)})" if host.roles else ""
    if host.state != "looked-at":
        style: Style = "doubt" if host.state == "failed" else "quiet"
        yield Line(f"{host.name}{roles}: not looked at: {host.words}", style)
        return
    yield Line(f"{host.name}{roles}: {plural(len(host.ports), 'listening port')}", "strong")
    if host.ports and not brief:
        rows = align([_HEADS, *map(_port_cells, host.ports)])
        yield from (Line(f"{INDENT}{row}") for row in rows)
    for note in host.notes:
        yield Line(f"{INDENT}{note}", "quiet")


def _port_cells(one: AuditedPort) -> tuple[str, ...]:
    return (
        f"{one.protocol} {one.port}",
        ", ".join(one.addresses),
        ", ".join(holder.name for holder in one.holders) or "?",
        ", ".join(dict.fromkeys(holder.home or "-" for holder in one.holders)) or "-",
        ", ".join(one.rows) or "-",
    )


def _word_totals(audit: PortAudit) -> str:
    counts = count_audit(audit)
    parts = [
        f"{counts['hosts']['looked_at']} of {plural(len(audit.hosts), 'host')} looked at",
        plural(counts["ports"], "listening port"),
        plural(counts["violations"], "violation"),
    ]
    parts += [f"{counts['unseen']} not seen"] if counts["unseen"] else []
    parts += [f"{counts['advice']} advised"] if counts["advice"] else []
    return f"{', '.join(parts)}; {audit.elapsed_s:.1f} s"


def count_audit(audit: PortAudit) -> Json:
    """Give the totals, as the JSON document has them."""
    states = [host.state for host in audit.hosts]
    kinds = [one.kind for one in audit.findings]
    return {
        "hosts": {
            "looked_at": states.count("looked-at"),
            "failed": states.count("failed"),
            "none": states.count("none"),
        },
        "ports": sum(len(host.ports) for host in audit.hosts),
        "violations": len(audit.of_weight("violation")),
        "unseen": len(audit.of_weight("unseen")),
        "advice": len(audit.of_weight("advice")),
        "kinds": {kind: kinds.count(kind) for kind in KINDS},
    }


def write_audit_json(audit: PortAudit, stream: TextIO) -> None:
    """Write the audit as one JSON document, keys in a fixed order."""
    head = {"schema": AUDIT_SCHEMA, "netprobe_version": netprobe.__version__}
    document = {**head, "summary": count_audit(audit), **to_json(audit)}
    json.dump(document, stream, indent=1, ensure_ascii=False)
    stream.write("\n")


def audit_schema_text() -> str:
    """Give the JSON Schema of the document, as ``netprobe schema audit`` prints it."""
    body = schema_of_struct(PortAudit)
    empty = count_audit(PortAudit("", 0.0, (), (), ()))
    known = {
        "schema": {"const": AUDIT_SCHEMA},
        "netprobe_version": {"type": "string"},
        "summary": _schema_of_counts(empty),
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:netprobe:schema:audit:1",
        "title": "netprobe audit ports",
        **body,
        "description": f"A {AUDIT_SCHEMA}. Keys may be added.",
        "properties": {**known, **body["properties"]},
        "required": [*known, *body["required"]],
    }
    return json.dumps(schema, indent=2) + "\n"


def _schema_of_counts(counts: Json) -> Json:
    parts = (_schema_of_counts(one) if isinstance(one, dict) else COUNT for one in counts.values())
    return make_object(dict(zip(counts, parts, strict=True)))


# The child element of a case, the worst first; advice fails nothing.
_FATES: Final[dict[AuditWeight, CaseFate]] = {
    "violation": "failure", "unseen": "error",
}  # fmt: skip


def write_audit_junit(audit: PortAudit, stream: TextIO) -> None:
    """Write a suite for each host; names are equal from run to run."""
    suites = [
        JunitSuite(host.name, list(_list_cases(host, audit)))
        for host in audit.hosts
        if host.state != "none"
    ]
    write_suites("netprobe audit", suites, audit.started_at, audit.elapsed_s, stream)


def _list_cases(host: AuditedHost, audit: PortAudit) -> Iterator[JunitCase]:
    """Give a case for the host itself and one for each of its ports."""
    name, words = "the host was looked at", host.words
    fate: CaseFate | None = "error" if words else None
    yield JunitCase(f"audit.{host.name}", name, fate, "not-looked-at", words, [words])
    by_port: dict[tuple[str, int], list[AuditFinding]] = {
        (one.protocol, one.port): [] for one in host.ports
    }
    for one in audit.findings:
        if one.host == host.name:
            by_port.setdefault((one.protocol, one.port), []).append(one)
    for (protocol, port), found in sorted(by_port.items()):
        yield _tell_case(host.name, f"{protocol} {port}", found)


def _tell_case(host: str, name: str, found: list[AuditFinding]) -> JunitCase:
    """Give the case of a port with the worst of what was found; without a fate all is well."""
    fates = {_FATES.get(one.weight) for one in found}
    fate = next((one for one in _FATES.values() if one in fates), None)
    told = [one for one in found if _FATES.get(one.weight) == fate]
    kinds = ", ".join(dict.fromkeys(one.kind for one in told))
    message = "; ".join(dict.fromkeys(KINDS[one.kind] for one in told))
    lines = [f"{one.because}. {one.remedy}" for one in found]
    return JunitCase(f"audit.{host}", name, fate, kinds, message, lines)


AUDIT_WRITERS: Final = {
    "text": write_audit_text,
    "json": write_audit_json,
    "junit": write_audit_junit,
}

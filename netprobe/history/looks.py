"""What one run found, as the history needs it; and how a look is kept as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from netprobe.errors import RequestError
from netprobe.model.outage import Cause, FlowPorts, RunLook, SeenFinding
from netprobe.model.ports import PortRange, normalise
from netprobe.model.result import PORTLESS, Finding, Result, ResultKey
from netprobe.model.run import RunInfo
from netprobe.report.record.changes import key_of

# A look of these verdicts knows nothing of a flow.
_BLIND = ("not-tested", "inconclusive")


def look_of_run(
    path: str, info: RunInfo, results: Iterable[Result], found: Iterable[Finding]
) -> RunLook:
    """Make the look that a run was. Raises RequestError for a run without a time."""
    try:
        begun = datetime.fromisoformat(info.started_at).timestamp()
    except ValueError:
        raise RequestError(f"{path}: the run does not say when it began") from None
    asked: dict[ResultKey, list[PortRange]] = {}
    blind: dict[tuple[str, str], dict[ResultKey, list[PortRange]]] = {}
    for one in results:
        ports = one.ports or PORTLESS
        asked.setdefault(key_of(one), []).extend(ports)
        if one.verdict in _BLIND:
            unseen = blind.setdefault((one.source, one.reason), {})
            unseen.setdefault(key_of(one), []).extend(ports)
    return RunLook(
        begun,
        begun + info.elapsed_s,
        _normalise_flows(asked),
        tuple(map(_see_finding, (one for one in found if one.verdict in ("blocked", "exposed")))),
        {source: _normalise_flows(flows) for source, flows in blind.items()},
    )


def _see_finding(finding: Finding) -> SeenFinding:
    first = finding.members[0]
    flows: dict[ResultKey, list[PortRange]] = {}
    for one in finding.members:
        flows.setdefault(key_of(one), []).extend(one.ports or PORTLESS)
    cause = Cause(first.verdict, first.reason, finding.where, finding.rejected_by)
    return SeenFinding(finding.title, cause, first.proof, _normalise_flows(flows))


def _normalise_flows(flows: Mapping[ResultKey, Iterable[PortRange]]) -> FlowPorts:
    return {key: normalise(ports) for key, ports in sorted(flows.items())}


def flows_to_json(flows: FlowPorts) -> list[Any]:
    """Give flows as plain lists."""
    return [[*key, *ports] for key, ports in flows.items()]


def flows_from_json(data: Iterable[list[Any]]) -> FlowPorts:
    """Read what ``flows_to_json`` gave."""
    return dict(map(_read_flow, data))


def _read_flow(words: list[Any]) -> tuple[ResultKey, tuple[PortRange, ...]]:
    matrix, requirement, source, destination, address, protocol, *ports = words
    key = (matrix, requirement, source, destination, address, protocol)
    return key, tuple((first, last) for first, last in ports)


def failures_to_json(look: RunLook) -> dict[str, Any]:
    """Give what did not pass, and what could not be seen, as plain values."""
    return {
        "findings": [
            [one.title, *_cause_to_json(one.cause), one.proof, flows_to_json(one.flows)]
            for one in look.findings
        ],
        "blind": [[*source, flows_to_json(flows)] for source, flows in look.blind.items()],
    }


def _cause_to_json(cause: Cause) -> Iterator[Any]:
    yield from (cause.verdict, cause.reason, list(cause.where), cause.rejected_by)


def look_from_json(begun: float, decided: float, asked: FlowPorts, data: dict[str, Any]) -> RunLook:
    """Make a look again of what is kept of it."""
    findings = tuple(
        SeenFinding(title, Cause(verdict, reason, tuple(where), by), proof, flows_from_json(flows))
        for title, verdict, reason, where, by, proof, flows in data["findings"]
    )
    blind = {(host, reason): flows_from_json(flows) for host, reason, flows in data["blind"]}
    return RunLook(begun, decided, asked, findings, blind)

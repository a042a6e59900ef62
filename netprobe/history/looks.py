"""What one run found, as the history needs it; and how a look is kept as text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from netprobe.errors import RequestError
from netprobe.model.outage import Cause, FlowPorts, RouteMark, RunLook, SeenFinding
from netprobe.model.ports import Ports, union_by_key
from netprobe.model.required import RequiredBlock, RequiredFlows
from netprobe.model.result import PORTLESS, Finding, Result, ResultKey
from netprobe.model.run import RunInfo
from netprobe.model.struct_json import Json
from netprobe.report.record.changes import key_of

# A look of these verdicts knows nothing of a flow.
_BLIND = ("not-tested", "inconclusive")
# When a look began and ended, and when the run began that it retried.
LookTimes = tuple[float, float, float | None]
# What ``report/record/earlier.py`` writes, since 0.1.0.
_TAKEN_OVER = re.compile(r"(RETRIED|RESUMED): .* \(begun (.*?)\) kept, not probed again")


def look_of_run(
    path: str, info: RunInfo, results: Iterable[Result], found: Iterable[Finding]
) -> RunLook:
    """Make the look that a run was. Raises RequestError for a run without a time."""
    return make_look(_date_look(path, info), results, found)


def make_look(
    times: LookTimes,
    results: Iterable[Result],
    found: Iterable[Finding],
    blind_host: Callable[[Result], str] = lambda one: one.source,
) -> RunLook:
    """Make a look of its results and findings; ``blind_host`` is whose fault it is that nothing was
    found out of a flow."""
    asked: list[tuple[ResultKey, Ports]] = []
    blind: dict[tuple[str, str], list[tuple[ResultKey, Ports]]] = {}
    for one in results:
        flow = (key_of(one), one.ports or PORTLESS)
        asked.append(flow)
        if one.verdict in _BLIND:
            blind.setdefault((blind_host(one), one.reason), []).append(flow)
    begun, decided, retried = times
    return RunLook(
        begun,
        decided,
        _sort_flows(asked),
        tuple(map(_see_finding, (one for one in found if one.verdict in ("blocked", "exposed")))),
        {source: _sort_flows(flows) for source, flows in sorted(blind.items())},
        retried,
    )


def _date_look(path: str, info: RunInfo) -> LookTimes:
    """Tell when a look began and ended, and which run it retried.

    A run that has no end ended before its file was written last. What a resumed run kept was seen
    since the other one began.
    """
    begun = _read_time(path, info.started_at)
    # Whole seconds are cut off, and not rounded.
    cut_s = 0.0 if "." in info.started_at else 1.0
    try:
        decided = begun + cut_s + info.elapsed_s if info.elapsed_s else os.path.getmtime(path)
        datetime.fromtimestamp(decided, UTC)
    except (ValueError, OverflowError, OSError):
        raise RequestError(f"{path}: the run does not say when it ended") from None
    decided = max(begun, decided)
    taken = _TAKEN_OVER.match(info.earlier or "")
    if taken is None:
        return begun, decided, None
    before = _read_time(path, taken[2])
    return (begun, decided, before) if taken[1] == "RETRIED" else (before, decided, None)


def _read_time(path: str, words: str) -> float:
    try:
        at = datetime.fromisoformat(words)
        return at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        raise RequestError(f"{path}: the run does not say when it began") from None


def _see_finding(finding: Finding) -> SeenFinding:
    first = finding.speaker
    flows = _sort_flows((key_of(one), one.ports or PORTLESS) for one in finding.members)
    cause = Cause(first.verdict, first.reason, finding.where, finding.rejected_by)
    return SeenFinding(finding.title, cause, first.proof, flows)


def _sort_flows(parts: Iterable[tuple[ResultKey, Ports]]) -> FlowPorts:
    return dict(sorted(union_by_key(parts).items()))


def flows_to_json(flows: FlowPorts) -> list[Any]:
    """Give flows as plain lists."""
    return [[*key, *ports] for key, ports in flows.items()]


def flows_from_json(data: Iterable[list[Any]]) -> FlowPorts:
    """Read what ``flows_to_json`` gave."""
    return dict(map(_read_flow, data))


def _read_flow(words: list[Any]) -> tuple[ResultKey, Ports]:
    matrix, requirement, source, destination, address, protocol, *ports = words
    key = (matrix, requirement, source, destination, address, protocol)
    return key, tuple((first, last) for first, last in ports)


def asked_to_json(flows: FlowPorts) -> Json:
    """Give all flows of a look: by row and source, so that reading them makes no object a flow."""
    ports: dict[Ports, int] = {}
    rows: dict[str, dict[str, dict[str, int]]] = {}
    for (*row, source, end, address, protocol), own in flows.items():
        ends = rows.setdefault("\t".join((*row, protocol)), {}).setdefault(source, {})
        ends[f"{end}\t{address}"] = ports.setdefault(own, len(ports))
    return {"ports": list(ports), "rows": rows}


class AskedFlows(Mapping[ResultKey, Ports]):
    """What ``asked_to_json`` gave, as it was."""

    def __init__(self, data: Json) -> None:
        self._rows = data["rows"]
        self._ports: list[Ports] = [
            tuple((first, last) for first, last in one) for one in data["ports"]
        ]

    def __getitem__(self, key: ResultKey) -> Ports:
        matrix, requirement, source, end, address, protocol = key
        row = self._rows[f"{matrix}\t{requirement}\t{protocol}"]
        place: int = row[source][f"{end}\t{address}"]
        return self._ports[place]

    def __iter__(self) -> Iterator[ResultKey]:
        for row, sources in self._rows.items():
            matrix, requirement, protocol = row.split("\t")
            for source, ends in sources.items():
                for end in ends:
                    name, address = end.split("\t")
                    yield matrix, requirement, source, name, address, protocol

    def __len__(self) -> int:
        return sum(len(ends) for sources in self._rows.values() for ends in sources.values())


def finding_to_json(finding: SeenFinding) -> list[Any]:
    """Give a finding as plain values."""
    cause = finding.cause
    words = (cause.verdict, cause.reason, list(cause.where), cause.rejected_by)
    return [finding.title, *words, finding.proof, flows_to_json(finding.flows)]


def finding_from_json(data: Iterable[Any]) -> SeenFinding:
    """Read what ``finding_to_json`` gave."""
    title, verdict, reason, where, by, proof, flows = data
    cause = Cause(verdict, reason, tuple(where), by)
    return SeenFinding(title, cause, proof, flows_from_json(flows))


def required_to_json(required: RequiredFlows) -> list[Any]:
    """Give what a plan requires as plain lists: the same text of the same flows."""
    return [
        [
            *(block.matrix, block.requirement, block.protocol, sorted(block.sources)),
            {name: sorted(texts) for name, texts in sorted(block.destinations.items())},
        ]
        for block in required.blocks
    ]


def required_from_json(data: Iterable[list[Any]]) -> RequiredFlows:
    """Read what ``required_to_json`` gave."""
    return RequiredFlows(tuple(_read_required(*block) for block in data))


def _read_required(
    matrix: str, row: str, protocol: str, sources: list[str], ends: dict[str, list[str]]
) -> RequiredBlock:
    addresses = {name: frozenset(texts) for name, texts in ends.items()}
    return RequiredBlock(matrix, row, protocol, frozenset(sources), addresses)


def mark_to_json(mark: RouteMark) -> list[Any]:
    """Give a mark as plain values."""
    return [getattr(mark, name) for name in RouteMark.__struct_fields__]


def mark_from_json(data: Iterable[Any]) -> RouteMark:
    """Read what ``mark_to_json`` gave."""
    kind, source, destinations, *rest = data
    return RouteMark(kind, source, tuple(destinations), *rest)

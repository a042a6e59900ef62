"""The JSON form of results, findings and runs: the keys of run and record.

Readers ignore keys that they do not know and give every key that may be missing its default, so
that an older netprobe reads a newer file of the same schema number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from netprobe.model.matrix import SettingValue
from netprobe.model.plan import PlannedMatrix, Skipped
from netprobe.model.result import Finding, HostReport, Result, Summary
from netprobe.model.run import RunInfo

RUN_SCHEMA = "netprobe.run/1"
RECORD_SCHEMA = "netprobe.record/1"

Json = dict[str, Any]  # Any: JSON holds whatever the file's writer put there
Order = tuple[int, int, int]


def result_to_json(result: Result) -> Json:
    """One element of ``results``, keys in the order of the contract; an MTU's have two more."""
    sizes = {
        "path_mtu_bytes": result.path_mtu_bytes,
        "needed_mtu_bytes": result.needed_mtu_bytes,
    }
    return {
        "matrix": result.matrix,
        "requirement": result.requirement,
        "purpose": result.purpose,
        "row": result.row,
        "optional": result.optional,
        "expect": result.expect,
        "waived": result.waived,
        "source": result.source,
        "destination": result.destination,
        "address": result.address,
        "protocol": result.protocol,
        "port": result.port,
        "end_port": result.end_port,
        "verdict": result.verdict,
        "state": result.state,
        "reason": result.reason,
        "proof": result.proof,
        "where": list(result.where),
        "rejected_by": result.rejected_by,
        "last_hop": result.last_hop,
        "because": result.because,
        "warnings": list(result.warnings),
        "rtt_ms": result.rtt_ms,
        "attempts": result.attempts,
        **{key: size for key, size in sizes.items() if size is not None},
    }


def result_from_json(data: Mapping[str, Any], order: Order) -> Result:
    """Read one element of ``results``. Raises KeyError or TypeError where it is none."""
    return Result(
        order=order,
        matrix=data["matrix"],
        requirement=data["requirement"],
        purpose=data.get("purpose", ""),
        row=data.get("row", ""),
        optional=bool(data.get("optional", False)),
        expect=data.get("expect", "allowed"),
        waived=data.get("waived"),
        source=data["source"],
        destination=data["destination"],
        address=data["address"],
        protocol=data["protocol"],
        port=data["port"],
        end_port=data.get("end_port", data["port"]),
        verdict=data["verdict"],
        state=data["state"],
        reason=data["reason"],
        proof=data.get("proof", "none"),
        where=tuple(data.get("where", ())),
        because=data.get("because", ""),
        rejected_by=data.get("rejected_by"),
        last_hop=data.get("last_hop"),
        warnings=tuple(data.get("warnings", ())),
        rtt_ms=data.get("rtt_ms"),
        attempts=data.get("attempts", 0),
        path_mtu_bytes=data.get("path_mtu_bytes"),
        needed_mtu_bytes=data.get("needed_mtu_bytes"),
    )


def reference_to_json(result: Result) -> Json:
    """How a finding names one of its members: enough to find it in ``results``."""
    return {
        "requirement": result.requirement,
        "source": result.source,
        "destination": result.destination,
        "address": result.address,
        "protocol": result.protocol,
        "port": result.port,
        "end_port": result.end_port,
    }


def finding_to_json(finding: Finding) -> Json:
    """One element of ``findings``; ``count`` is in flows, as everywhere."""
    return {
        "kind": finding.kind,
        "verdict": finding.verdict,
        "title": finding.title,
        "advice": finding.advice,
        "where": list(finding.where),
        "rejected_by": finding.rejected_by,
        "last_hop": finding.last_hop,
        "count": sum(member.port_count for member in finding.members),
        "members": [reference_to_json(member) for member in finding.members],
    }


def summary_to_json(summary: Summary) -> Json:
    """The ``summary`` object: flows per verdict, JSON keys with an underscore."""
    counts = {verdict.replace("-", "_"): number for verdict, number in summary.counts.items()}
    return {
        **counts,
        "skipped": summary.skipped,
        "refusals": summary.refusals,
        "waived": summary.waived,
        "optional": summary.optional,
    }


def info_to_json(info: RunInfo) -> Json:
    """What is known of a run beside its results; the record's last line holds the same."""
    return {
        "started_at": info.started_at,
        "elapsed_s": round(info.elapsed_s, 3),
        "complete": info.complete,
        "interrupted": info.interrupted,
        "planned_flows": info.planned_flows,
        "selection": info.selection,
        "sample": info.sample,
        "matrices": [planned_matrix_to_json(matrix) for matrix in info.matrices],
        "hosts": [host_to_json(host) for host in info.hosts],
        "notes": list(info.notes),
        "skipped": [skipped_to_json(skipped) for skipped in info.skipped],
    }


def info_from_json(data: Mapping[str, Any]) -> RunInfo:
    """Read a run's own keys, from ``netprobe.run/1`` or from a record's first or last line."""
    return RunInfo(
        started_at=data.get("started_at", ""),
        elapsed_s=float(data.get("elapsed_s", 0.0)),
        complete=bool(data.get("complete", False)),
        interrupted=bool(data.get("interrupted", False)),
        planned_flows=int(data.get("planned_flows", 0)),
        sample=data.get("sample"),
        selection=data.get("selection"),
        matrices=tuple(planned_matrix_from_json(item) for item in data.get("matrices", ())),
        hosts=tuple(host_from_json(item) for item in data.get("hosts", ())),
        notes=tuple(data.get("notes", ())),
        skipped=tuple(skipped_from_json(item) for item in data.get("skipped", ())),
    )


def planned_matrix_to_json(matrix: PlannedMatrix) -> Json:
    """A matrix with its settings; lists of values stay lists."""
    return {
        "name": matrix.name,
        "settings": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in matrix.settings.items()
        },
    }


def planned_matrix_from_json(data: Mapping[str, Any]) -> PlannedMatrix:
    """Read one element of ``matrices``."""
    settings = {
        key: cast(SettingValue, tuple(value) if isinstance(value, list) else value)
        for key, value in data.get("settings", {}).items()
    }
    return PlannedMatrix(data["name"], settings)


def skipped_to_json(skipped: Skipped) -> Json:
    """One element of ``skipped``; the host keys are there only where the reason is about hosts."""
    data = {
        "matrix": skipped.matrix,
        "requirement": skipped.requirement,
        "reason": skipped.reason,
    }
    hosts = {"source": skipped.source, "destination": skipped.destination}
    return data | {key: name for key, name in hosts.items() if name is not None}


def skipped_from_json(data: Mapping[str, Any]) -> Skipped:
    """Read one element of ``skipped``."""
    return Skipped(
        data["matrix"],
        data["requirement"],
        data.get("reason", ""),
        data.get("source"),
        data.get("destination"),
    )


def host_to_json(host: HostReport) -> Json:
    """One element of ``hosts``."""
    return {
        "name": host.name,
        "addresses": list(host.addresses),
        "state": host.state,
        "words": host.words,
        "python": host.python,
        "user": host.user,
        "privileged": host.privileged,
        "cost": list(host.cost),
        "facts": dict(host.facts),
    }


def host_from_json(data: Mapping[str, Any]) -> HostReport:
    """Read one element of ``hosts``."""
    return HostReport(
        name=data["name"],
        state=data["state"],
        words=data.get("words", ""),
        python=data.get("python"),
        user=data.get("user"),
        privileged=bool(data.get("privileged", False)),
        cost=tuple(data.get("cost", ())),
        facts=dict(data.get("facts", {})),
        addresses=tuple(data.get("addresses", ())),
    )

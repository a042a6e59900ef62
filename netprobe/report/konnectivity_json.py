"""``netprobe.konnectivity/1``: a diagnosis of the tunnel for programs."""

from __future__ import annotations

import json
from typing import Any, TextIO

import netprobe
from netprobe.model.konnectivity import Cause, Diagnosis, Stage, TunnelReport

KONNECTIVITY_SCHEMA = "netprobe.konnectivity/1"


def write_konnectivity_json(report: TunnelReport, stream: TextIO) -> None:
    """Write the report as one JSON document."""
    json.dump(to_json(report), stream, indent=1, ensure_ascii=False)
    stream.write("\n")


def to_json(report: TunnelReport) -> dict[str, Any]:
    """The whole report, keys in a fixed order."""
    return {
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
        "findings": [_cause(one) for one in report.causes],
        "workers": [_diagnosis(one) for one in report.diagnoses],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "code": cause.code,
        "outcome": cause.outcome,
        "title": cause.title,
        "remedy": cause.remedy,
        "workers": list(cause.workers),
        "of": cause.total,
    }


def _diagnosis(one: Diagnosis) -> dict[str, Any]:
    return {
        "worker": one.worker,
        "code": one.code,
        "outcome": one.outcome,
        "kind": one.kind,
        "first_failing_stage": one.stage if one.outcome != "ok" else None,
        "title": one.title,
        "because": one.because,
        "remedy": one.remedy,
        "agent_logs": one.logs,
        "via": one.via,
        "fine": list(one.fine),
        "not_proven": list(one.open),
        "evidence": dict(one.evidence),
        "stages": [_stage(stage) for stage in one.stages],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "name": stage.name,
        "status": stage.status,
        "said": stage.said,
        "elapsed_ms": stage.elapsed_ms,
        "facts": dict(stage.facts),
    }

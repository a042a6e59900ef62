"""One flow under the microscope: every step with its evidence, and the verdict; read by reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from netprobe.model.result import HostReport, Result

# Every explanation has all of them, in this order.
STEPS = (
    "agents",
    "name",
    "route",
    "listener",
    "probe",
    "reset",
    "hops",
    "arrival",
    "way-back",
    "control",
    "path-mtu",
)

# ``ok``: nothing against the flow · ``bad``: here the flow fails · ``doubt``: something is odd ·
# ``not-needed``: nothing to ask here · ``not-possible``: nobody could look, the words say why
StepStatus = Literal["ok", "bad", "doubt", "not-needed", "not-possible"]

Facts = Mapping[str, Any]  # Any: JSON values, as the agents gave them


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``words`` are sentences for people, ``facts`` the same for programs."""

    name: str
    status: StepStatus
    words: tuple[str, ...]
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowStory:
    """One address of the destination: its steps and its result, which is the judge's own.

    ``where`` and ``advice`` are sentences; ``remarks`` what the steps show beside the verdict.
    """

    steps: tuple[Step, ...]
    result: Result
    advice: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every address of one flow, one after the other. ``port`` is None where there are none."""

    started_at: str
    elapsed_s: float
    source: str
    destination: str
    protocol: str
    port: int | None
    stories: tuple[FlowStory, ...]
    hosts: tuple[HostReport, ...] = ()
    notes: tuple[str, ...] = ()

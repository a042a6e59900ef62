"""One run as reports see it: when, with what, on which hosts, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netprobe.model.plan import PlannedMatrix, Skipped
from netprobe.model.result import HostReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Everything about a run that is not a result.

    ``started_at`` is UTC, ISO 8601 with ``Z``. ``complete``: every planned flow has its result, and
    nobody stopped the run. ``planned_flows`` counts ports, not pairs. ``notes`` are for the reader.
    ``phases``: the seconds of each phase (``starts``, ``probes`` ...), together the run's time.
    ``selection`` names the filters and how many flows of the plan they left, else None.
    ``earlier`` is one sentence on what was taken over from an earlier run, else None.
    ``sample`` is one sentence with the coverage where only a sample was probed, else None.
    """

    started_at: str = ""
    elapsed_s: float = 0.0
    complete: bool = False
    phases: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    planned_flows: int = 0
    selection: str | None = None
    earlier: str | None = None
    sample: str | None = None
    matrices: tuple[PlannedMatrix, ...] = ()
    hosts: tuple[HostReport, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()

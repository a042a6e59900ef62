"""One explained flow: every step with its evidence, and the verdict."""

from __future__ import annotations

from msgspec import Struct

from netprobe.model.result import HostReport, Result
from netprobe.model.story import Step


class FlowStory(Struct, frozen=True):
    """One address of the destination: its steps and its result, which is the judge's own.

    ``where`` and ``advice`` are sentences; ``remarks`` what the steps show beside the verdict.
    """

    steps: tuple[Step, ...]
    result: Result
    advice: str = ""
    remarks: tuple[str, ...] = ()


class Explanation(Struct, frozen=True):
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

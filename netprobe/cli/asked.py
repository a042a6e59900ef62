"""What each verb is asked: its options as values, in the groups that verbs share.

A field has the name of click's parameter. Files are ``GivenFile`` (``cli/given.py``), so that no
output writes over one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Texts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is required between which hosts, and the part of it that filters choose."""

    matrices: Texts
    inventories: Texts
    manifests: Texts
    networks: Texts
    sets: Texts
    roles: Texts
    limit: Texts
    from_: Texts
    to: Texts
    only: Texts
    protocol: Texts


@dataclass(frozen=True, kw_only=True)
class CoverOptions:
    """Which hosts stand for others."""

    cover: str | None
    seed: int
    zone_groups: Texts


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """How flows are probed. ``timeout``: seconds of one look."""

    timeout: float | None
    retries: int | None
    no_listen: bool
    no_recorder: bool
    live: bool


@dataclass(frozen=True, kw_only=True)
class ScriptOptions(PlanOptions, CoverOptions, LookOptions):
    """A part of a plan, and how it is probed: by a live run, or by scripts. ``rate``: a second."""

    rate: int | None
    sample: int | None
    max_results: int


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """How agents get onto hosts."""

    ask_become_pass: bool
    agent_python: Texts = ()


@dataclass(frozen=True, kw_only=True)
class AcceptedOptions:
    """Failures that somebody accepted."""

    accepted: Texts
    max_acceptance: str


@dataclass(frozen=True, kw_only=True)
class TellingOptions(AcceptedOptions):
    """How a run is judged, what it is held against, and where it is told."""

    outputs: Texts
    redact: bool
    record: str | None
    strict: bool
    baseline: str | None
    fail_on: str
    verbose: bool


@dataclass(frozen=True, kw_only=True)
class RunOptions(ScriptOptions, LaunchOptions, TellingOptions):
    """``netprobe run``."""

    engine: str
    forks: int
    jobs: int | None
    resume: str | None
    retry: str | None
    evidence: str | None


@dataclass(frozen=True, kw_only=True)
class CostOptions(PlanOptions, CoverOptions):
    """``netprobe plan``."""

    count: bool
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class CheckOptions(PlanOptions, LaunchOptions, AcceptedOptions):
    """``netprobe check``."""

    files: Texts
    hosts: bool
    registry: bool
    forks: int
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class BundleOptions(ScriptOptions):
    """``netprobe bundle``."""

    results: Texts
    start: str | None
    window: str
    margin: str
    output: str | None
    folder: str | None
    per_host: str | None
    next_: str | None
    with_runtime: bool
    agent_python: Texts


@dataclass(frozen=True, kw_only=True)
class MergeOptions(TellingOptions):
    """``netprobe merge``."""

    file: str
    results: Texts


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(LookOptions, LaunchOptions):
    """``netprobe explain``."""

    source: str
    destination: str
    wire: str
    inventories: Texts
    matrices: Texts
    sets: Texts
    roles: Texts
    strict: bool
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class AuditOptions(LaunchOptions):
    """``netprobe audit ports``."""

    matrices: Texts
    inventories: Texts
    sets: Texts
    roles: Texts
    pods: str | None
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions:
    """``netprobe diagnose konnectivity``. ``hold``: seconds."""

    server: str | None
    publishing: Literal["route", "nodeport", "loadbalancer"] | None
    flavour: Literal["hypershift", "k0s"] | None
    hostname: str | None
    proxy: str
    ca: str | None
    client_cert: str | None
    client_key: str | None
    repeat: int
    hold: float | None
    manifests: Texts
    inventories: Texts
    from_: Texts
    agent_python: Texts
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class RequestOptions(PlanOptions):
    """``netprobe request``."""

    file: str | None
    from_plan: bool
    by: Literal["device", "finding", "requirement"]
    at: str | None
    include: Texts
    into: Texts
    stateless: bool
    one_per_row: bool
    until: str
    ticket: Texts
    undo: Texts
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """``netprobe matrix show``."""

    name: str
    sets: Texts
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class ReportOptions(AcceptedOptions):
    """``netprobe report``."""

    file: str
    outputs: Texts
    redact: bool


@dataclass(frozen=True, kw_only=True)
class DiffOptions:
    """``netprobe diff``."""

    old: str
    new: str
    outputs: Texts


@dataclass(frozen=True, kw_only=True)
class AcceptOptions:
    """``netprobe accept``."""

    run_file: str
    findings: tuple[int, ...]
    reason: str
    owner: str
    ticket: str
    until: str
    max_acceptance: str
    same_place: bool
    append: bool

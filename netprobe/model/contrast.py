"""The contrast: which nodes of a cluster report, which of them logs reach, and what each one's
dialling of the Konnectivity server gave."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# ``unknown``: asked, and the answer tells nothing of the node.
LogsState = Literal["work", "fail", "unknown", "not-asked"]
DialState = Literal["opens", "fails", "unknown"]


class NodeContrast(Struct, frozen=True):
    """One node. ``missing``: why its results are not there, empty where they are. ``dial_code``:
    the verdict on a dialling that failed, as ``diagnose konnectivity`` names it; ``dial_by``: who
    rejected it."""

    node: str
    missing: str
    dial: DialState
    dial_code: str = ""
    dial_words: str = ""
    dial_by: str = ""
    logs: LogsState = "not-asked"
    logs_words: str = ""


class ContrastFinding(Struct, frozen=True):
    """What follows: ``is_fault`` None: nothing can be said. ``nodes``: whom it is about."""

    is_fault: bool | None
    title: str
    because: str
    remedy: str = ""
    nodes: tuple[str, ...] = ()


class ContrastReport(Struct, frozen=True):
    """A whole look. ``servers``: the addresses that were dialled. ``asked``: how many nodes' logs
    were."""

    server: str
    port: int
    servers: tuple[str, ...]
    asked: int
    finding: ContrastFinding
    nodes: tuple[NodeContrast, ...]

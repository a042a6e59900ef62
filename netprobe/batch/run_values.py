"""The plain values of a run in a file: each of its type, and in the range that options give it."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from netprobe.agent.wire.numbers import MOST
from netprobe.batch.script import FIRST_OWN_ID, KEY_BYTES
from netprobe.model.struct_json import WrongValue, from_json
from netprobe.probe.settings import ProbeSettings

_DAY_S = 86400.0
_MANY = 10_000_000
# The least and the most of each number.
_RANGES = {
    "round": (1, MOST["round"]), "next_id": (1, FIRST_OWN_ID), "starts_at": (0, MOST["starts_at"]),
    "window_s": (0, _DAY_S), "margin_s": (0, _DAY_S), "timeout_s": (0.1, 600), "looks": (1, 21),
    "rate": (1, _MANY), "forks": (1, 100_000), "ready_s": (0, _DAY_S), "budgets": (0, 65535),
    "cover": (0, _MANY),
}  # fmt: skip


class StoredSettings(Struct, frozen=True):
    """How a run is probed, as a file keeps it: see ProbeSettings."""

    timeout_s: float | None
    looks: int | None
    rate: int | None
    forks: int
    listen: bool
    record: bool
    ready_s: float


class RunValues(Struct, frozen=True):
    """What a file says of a run beside its plan: see BatchRequest. ``order``: the hosts."""

    run: str
    is_shared: bool
    barrier: Literal["engine", "clock", "none"]
    starts_at: float | None
    window_s: float
    margin_s: float
    budgets: tuple[int, int, int, int]
    live: bool
    sample: str | None
    cover: tuple[int, int] | None
    round: int
    next_id: int
    order: tuple[str, ...]
    settings: StoredSettings


def read_run_values(values: Any) -> RunValues:
    """Read them. Raises ValueError, which names the value that is wrong."""
    found = from_json(RunValues, values)
    for part in (found, found.settings):
        for name in part.__struct_fields__:
            if name in _RANGES:
                _check_range(name, getattr(part, name))
    if not re.fullmatch(r"[0-9a-f]{16}", found.run):
        raise ValueError("run: expected 16 hexadecimal digits")
    if found.barrier == "clock" and found.starts_at is None:
        raise ValueError("starts_at: a run by the clock needs a start")
    if len(set(found.order)) < len(found.order):
        raise ValueError("order: a host is there twice")
    return found


def make_settings(stored: StoredSettings) -> ProbeSettings:
    """Give the settings of a merge: no agent is asked to keep packets."""
    return replace(ProbeSettings(), **asdict(stored))


def check_key(name: str, key: bytes) -> bytes:
    """Give a key. Raises ValueError for one of another length."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"{name}: expected {KEY_BYTES} bytes")
    return key


def _check_range(name: str, value: Any) -> None:
    least, most = _RANGES[name]
    for one in value if isinstance(value, tuple) else (value,):
        if one is not None and not least <= one <= most:
            raise WrongValue(f"{name}: {one!r:.40}, expected a number from {least} to {most}")

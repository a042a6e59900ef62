"""What ``keepalive`` of a requirement may be: whole times in seconds, minutes or hours."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from netprobe.load.yaml.wording import what_it_is
from netprobe.model.matrix import Keepalive

_TIME = re.compile(r"([1-9]\d{0,4})([smh])", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600}
LONGEST_S = 24 * 3600
_KINDS = ("data", "tcp")
_PATTERN = {"type": "string", "pattern": "^[1-9][0-9]{0,4}[smh]$"}


def read_keepalive(raw: object) -> Keepalive:
    """``30s``, which is data, or ``{data: 1h, tcp: 15s}``."""
    if not isinstance(raw, dict):
        return Keepalive(_read_time(raw))
    if not raw or not set(raw) <= set(_KINDS):
        raise ValueError(f"{what_it_is(raw)}, expected times of data, tcp or both")
    return Keepalive(*(_read_time(raw[kind]) if kind in raw else None for kind in _KINDS))


def _read_time(raw: object) -> int:
    """``30s``, ``5m`` or ``1h``, in seconds."""
    found = _TIME.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError(f"{what_it_is(raw)}, expected a time such as 30s, 5m or 1h")
    seconds = int(found[1]) * _UNITS_S[found[2]]
    if seconds > LONGEST_S:
        raise ValueError(f"{raw}, expected a time up to a day")
    return seconds


KeepaliveField = Annotated[
    Any,
    PlainValidator(read_keepalive),
    WithJsonSchema(
        {
            "anyOf": [
                _PATTERN,
                {
                    "type": "object",
                    "properties": dict.fromkeys(_KINDS, _PATTERN),
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        }
    ),
]

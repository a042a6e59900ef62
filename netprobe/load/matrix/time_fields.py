"""What ``keepalive`` of a requirement may be: a whole time in seconds, minutes or hours."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from netprobe.load.yaml.wording import what_it_is

_TIME = re.compile(r"([1-9]\d{0,4})([smh])", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600}
LONGEST_S = 24 * 3600


def read_keepalive(raw: object) -> int:
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
    WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,4}[smh]$"}),
]

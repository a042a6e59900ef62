"""What ``quality`` of a requirement may be: limits of round trips, jitter and loss."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from netprobe.load.yaml.validation import FileModel
from netprobe.load.yaml.wording import what_it_is
from netprobe.model.quality import QualityLimits

_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(us|ms|s)", re.ASCII)
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
LONGEST_US = 3_000_000
_SHARE = re.compile(r"(\d{1,2}(?:\.\d{1,4})?) ?%", re.ASCII)


def read_time(raw: object) -> int:
    """``66ms``, ``1.5ms``, ``500us`` or ``1s``, in microseconds."""
    found = _TIME.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError(f"{what_it_is(raw)}, expected a time such as 66ms, 500us or 1s")
    time_us = round(float(found[1]) * _UNITS_US[found[2]])
    if not 0 < time_us < LONGEST_US:
        raise ValueError(f"{raw}, expected a time above 0 and below 3s: a sample is lost then")
    return time_us


def read_loss(raw: object) -> float:
    """``0.1%``, as a share."""
    found = _SHARE.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError(f"{what_it_is(raw)}, expected a share such as 0.1%")
    percent = float(found[1])
    if not percent:
        raise ValueError(
            f"{raw}: no number of samples shows that nothing is ever lost; give the smallest loss "
            "that matters, such as 0.1%"
        )
    return percent / 100


def _make_schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


TimeField = Annotated[
    Any, PlainValidator(read_time), _make_schema(r"^[0-9]{1,6}(\.[0-9]{1,3})? ?(us|ms|s)$")
]
LossField = Annotated[
    Any, PlainValidator(read_loss), _make_schema(r"^[0-9]{1,2}(\.[0-9]{1,4})? ?%$")
]


class QualityFile(FileModel):
    """How good the way must be, measured with ``--quality``."""

    rtt_p99: TimeField | None = Field(
        default=None,
        description="The longest that 99 of 100 round trips may take: `66ms`, `500us`, `1s`.",
    )
    jitter: TimeField | None = Field(
        default=None,
        description="The largest mean difference between one round trip and the next: `10ms`.",
    )
    loss: LossField | None = Field(
        default=None, description="The largest share that may be lost: `0.1%`; never `0%`."
    )
    required: bool = Field(
        default=False,
        description="`true`: a way that is worse is `blocked`, `slow`; without it a warning says "
        "so.",
    )

    @model_validator(mode="after")
    def check_limits(self) -> QualityFile:
        """Refuse limits that limit nothing."""
        if self.rtt_p99 is None and self.jitter is None and self.loss is None:
            raise ValueError("no limit, expected rtt_p99, jitter or loss")
        return self


def build_quality(file: QualityFile | None) -> QualityLimits | None:
    """Build the limits of a row."""
    if file is None:
        return None
    return QualityLimits(file.rtt_p99, file.jitter, file.loss, file.required)

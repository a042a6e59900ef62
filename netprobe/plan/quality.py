"""Which ways a plan measures for rows with ``quality:``, by how many samples, and what that costs.

They are flows of their own with the id ROW/quality, as what is rehearsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.plan import QUALITY, Block, Plan, Skipped
from netprobe.model.quality import (
    FLOWS_AT_ONCE,
    INTERVAL_MS,
    MOST_SAMPLES,
    QualityLimits,
)
from netprobe.plan.cost import estimate_quality_s
from netprobe.plan.planned import list_requirements

# What ``--quality`` without a number is read as.
USUAL: Final = "usual"
USUAL_SAMPLES = 200
# Fewer cannot bound a 99th percentile from above: all of 298 are below it 5.003 times of 100.
P99_SAMPLES = 300
LEAST_SAMPLES = 10
_NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def read_samples(text: str | None) -> int | None:
    """Read the value of ``--quality``: how many samples, 0 for as many as are usual; None: without
    it. Raises RequestError."""
    if text is None or text == USUAL:
        return None if text is None else 0
    if not _NUMBER.fullmatch(text) or not LEAST_SAMPLES <= int(text) <= MOST_SAMPLES:
        raise RequestError(
            f"--quality={text}: expected a number of samples from {LEAST_SAMPLES} to "
            f"{MOST_SAMPLES:,}, such as --quality=1000"
        )
    return int(text)


def with_quality(plan: Plan, samples: int | None) -> Plan:
    """Give the plan with what is measured of its ways; without ``samples`` the plan itself."""
    if samples is None:
        return plan
    measured: list[Block] = []
    skipped: list[Skipped] = []
    for block in plan.blocks:
        for one in _measure_block(block, samples):
            if isinstance(one, Block):
                measured.append(replace(one, index=len(plan.blocks) + len(measured)))
            else:
                skipped.append(one)
    if not measured:
        nothing = "--quality: no row of this plan says how good its way must be (quality:)"
        return replace(plan, skipped=(*plan.skipped, *skipped), notes=(*plan.notes, nothing))
    return replace(
        plan,
        blocks=(*plan.blocks, *measured),
        skipped=(*plan.skipped, *skipped),
        requirements=(*plan.requirements, *list_requirements(measured)),
    )


def choose_samples(limits: QualityLimits, asked: int) -> int:
    """Choose how many samples a flow gets where nobody says it."""
    return asked or (USUAL_SAMPLES if limits.rtt_p99_us is None else P99_SAMPLES)


def _measure_block(block: Block, asked: int) -> Iterator[Block | Skipped]:
    row = block.requirement
    if row.quality is None or row.expect == "denied" or block.rehearsal is not None:
        return
    name = f"{row.id}/{QUALITY}"
    if block.protocol not in ("tcp", "udp", "icmp"):
        why = "only ways of TCP, UDP and ICMP are measured"
        yield Skipped(block.matrix, name, why)
        return
    measured = replace(
        block,
        requirement=replace(
            row,
            id=name,
            probe=QUALITY,
            any_of=None,
            purpose=f"how good the way is ({row.id}): {row.purpose}",
        ),
        # Of a range one port stands for all: they share the way.
        ports=tuple((first, first) for first, _ in block.ports),
        local=False,
        any_of=None,
        also=tuple(replace(one, requirement=f"{one.requirement}/{QUALITY}") for one in block.also),
        samples=choose_samples(row.quality, asked),
        row_probe=row.probe if isinstance(row.probe, str) else None,
    )
    if measured.pair_count():
        yield measured


def note_quality(plan: Plan) -> Plan:
    """Give the plan with a note of what is measured, by how many packets, and for how long."""
    blocks = [block for block in plan.blocks if block.rehearsal == QUALITY]
    if not blocks:
        return plan
    flows = sum(block.flow_count() for block in blocks)
    samples = sum(block.flow_count() * (block.samples or 0) for block in blocks)
    note = (
        f"--quality: {flows:,} {'flow' if flows == 1 else 'flows'} of rows with `quality:`, "
        f"{samples:,} samples in all, {1000 // INTERVAL_MS} a second for each flow and "
        f"{FLOWS_AT_ONCE} flows of a source at a time: about {estimate_quality_s(blocks):.0f} s. A "
        "sample is a TCP connection or a datagram to a listener of netprobe on the row's port, or "
        "an echo request where there is none"
    )
    return replace(plan, notes=(*plan.notes, note))

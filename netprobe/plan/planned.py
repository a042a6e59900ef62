"""The requirements that a plan has flows of: what is to be opened between roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netprobe.model.matrix import Waiver
from netprobe.model.plan import PATH_MTU, Block, PlannedRequirement
from netprobe.plan.question import word_question


def keep_requirements(
    requirements: Iterable[PlannedRequirement], blocks: Sequence[Block]
) -> tuple[PlannedRequirement, ...]:
    """Keep those that these blocks of the plan have flows of, by any of their names.

    The path MTU is that of the overlays among the blocks.
    """
    named = {(*name, block.protocol) for block in blocks for name in block.names_of_rows}
    mtus = {(one.matrix, one.id): one for one in list_requirements(blocks) if one.id == PATH_MTU}
    return tuple(
        mtus.get((one.matrix, one.id), one)
        for one in requirements
        if (one.matrix, one.id, one.protocol) in named
    )


def list_requirements(blocks: Iterable[Block]) -> tuple[PlannedRequirement, ...]:
    """List each requirement of these blocks once a protocol, in plan order.

    The path MTU of several overlays is one requirement: its roles are those of all.
    """
    found: dict[tuple[str, str, str], list[Block]] = {}
    for block in blocks:
        found.setdefault((block.matrix, block.requirement.id, block.protocol), []).append(block)
    return tuple(_make_requirement(some) for some in found.values())


def _make_requirement(blocks: Sequence[Block]) -> PlannedRequirement:
    first = blocks[0]
    named = first.requirement
    existing = {block.existing for block in blocks}
    return PlannedRequirement(
        matrix=first.matrix,
        id=named.id,
        from_=tuple(dict.fromkeys(role for one in blocks for role in one.requirement.sources)),
        to=tuple(dict.fromkeys(role for one in blocks for role in one.requirement.destinations)),
        protocol=first.protocol,
        ports=first.ports,
        purpose=named.purpose,
        row=named.row,
        optional=all(block.requirement.optional for block in blocks),
        expect=named.expect,
        existing=existing.pop() if len(existing) == 1 else None,
        waive=None if first.waiver is None else _word_waiver(first.waiver),
        any_of=named.any_of,
        question=word_question(blocks),
    )


def _word_waiver(waiver: Waiver) -> str:
    return waiver.reason if waiver.until is None else f"{waiver.reason}, until {waiver.until}"

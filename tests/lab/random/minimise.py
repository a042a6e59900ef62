"""The smallest estate that still scores wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.lab.random.estate import Estate, Flow
from tests.lab.random.running import run_estate
from tests.lab.random.scoring import WRONG, Scored


def minimise(estate: Estate) -> Iterator[str]:
    """Leave out faults, then requirements, one at a time, as long as one flow stays wrong."""
    wrong = _wrong(estate)
    if not wrong:
        yield f"seed {estate.seed}: nothing is wrong"
        return
    flow, score = wrong[0].flow, wrong[0].score
    yield f"{flow}: {score}"
    last = wrong[0]
    for smaller_of in (_fewer_faults, _fewer_requirements):
        left_out = 0
        while left_out < len(list(smaller_of(estate))):
            smaller = list(smaller_of(estate))[left_out]
            again = _still(smaller, flow, score)
            if again is None:
                left_out += 1
            else:
                estate, last = smaller, again
    yield from estate.words()
    yield last.line()


def _fewer_faults(estate: Estate) -> Iterator[Estate]:
    for fault in estate.faults:
        kept = tuple(one for one in estate.faults if one is not fault)
        yield replace(estate, faults=kept)


def _fewer_requirements(estate: Estate) -> Iterator[Estate]:
    for dropped in estate.requirements:
        kept = tuple(one for one in estate.requirements if one is not dropped)
        if kept:
            yield replace(estate, requirements=kept)


def _wrong(estate: Estate) -> list[Scored]:
    return [one for one in run_estate(estate).scored if one.score in WRONG]


def _still(estate: Estate, flow: Flow, score: str) -> Scored | None:
    if flow not in estate.flows():
        return None
    found = (one for one in _wrong(estate) if (one.flow, one.score) == (flow, score))
    return next(found, None)

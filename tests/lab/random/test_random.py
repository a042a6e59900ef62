"""Random estates: netprobe says nothing that real clients and tcpdump contradict."""

from __future__ import annotations

import pytest

from tests.lab.random.draw import draw
from tests.lab.random.measuring import measure
from tests.lab.random.running import run_estate
from tests.lab.random.scoring import WRONG, Scored, table

SEEDS = (1, 2, 3, 7, 8, 9, 10, 14, 17, 18)
FULL_SEEDS = range(1001, 1201)
JOBS = 4
# tcpdump gives up root, whoever it is told to be.
captures = pytest.mark.needs("other users", "tcpdump")
# Of the flows with recorders at both ends.
ENOUGH_EXACT = 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_one_estate(seed: int) -> None:
    """What a seed draws does not depend on when or where it is drawn."""
    assert draw(seed) == draw(seed)


@captures
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_wrong(seed: int) -> None:
    """No false pass, no false block, no wrong place, no wrong name."""
    estate = draw(seed)
    outcome = run_estate(estate)

    wrong = [one.line() for one in outcome.scored if one.score in WRONG]
    assert not wrong, "\n".join((*estate.words(), *wrong))


@captures
@pytest.mark.full
@pytest.mark.alone
@pytest.mark.slow
def test_many_estates() -> None:
    """Over 200 estates nothing is wrong, and nearly every place is exact."""
    measured = measure([draw(seed) for seed in FULL_SEEDS], JOBS)

    said = "\n".join(measured.lines)
    assert not measured.failed, said
    assert not [one for one in measured.scored if one.score in WRONG], said
    assert share_exact(measured.scored) >= ENOUGH_EXACT, said
    print("\n".join(table(measured.scored, measured.changed)))


def share_exact(scored: list[Scored]) -> float:
    """Of the flows with recorders at both ends, the share whose place is exact."""
    both = [one for one in scored if one.watch == "both"]
    return sum(one.score == "exact" for one in both) / max(1, len(both))

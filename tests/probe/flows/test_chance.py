"""How often silence is asked before it is believed."""

from __future__ import annotations

import pytest

from netprobe.probe.flows.chance import (
    LEAST_LOSS,
    MOST_ERRORS,
    MOST_LOOKS,
    MOST_LOSS,
    Chance,
)


def lossy(flows: int, loss: float) -> Chance:
    """A run of so many flows that has shown this loss, on 1,000 looks."""
    chance = Chance(flows)
    lost = round(1000 * loss)
    chance.note_answered(1000 - lost)
    chance.note_lost(lost)
    return chance


@pytest.mark.parametrize(
    ("flows", "loss", "looks"),
    [
        (1, 0.0, 5),
        (1, 0.05, 5),
        (10, 0.05, 5),
        (1000, 0.05, 7),
        (100_000, 0.05, 9),
        (1, 0.1, 6),
        # 20 % each way.
        (1, 0.36, 13),
        (1000, 0.36, 20),
        (100_000, 0.36, 24),
    ],
)
def test_the_looks_follow_from_flows_and_loss(flows: int, loss: float, looks: int) -> None:
    """Loss alone must explain the silence of one flow of the run in less than 1 of 100,000 runs."""
    chance = lossy(flows, loss)

    assert chance.count_looks() == looks
    assert flows * chance.loss**looks < MOST_ERRORS


@pytest.mark.parametrize("flows", [0, 1, 50, 800_000])
@pytest.mark.parametrize("loss", [0.0, 0.2, 0.36, 0.6, 0.99, 1.0])
def test_looks_have_an_end(flows: int, loss: float) -> None:
    """However bad the network is, a run ends; and a look more never makes it worse."""
    looks = lossy(flows, loss).count_looks()

    assert 5 <= looks <= MOST_LOOKS
    assert looks <= lossy(flows * 10, loss).count_looks()


@pytest.mark.parametrize(
    ("answered", "lost", "loss"),
    [
        (0, 0, LEAST_LOSS),
        # A small run that has lost something is careful, too.
        (8, 4, 1 / 3),
        (9, 1, 0.1),
        (99, 1, LEAST_LOSS),
        # A run that lost nothing may lose something yet.
        (10_000, 0, LEAST_LOSS),
        (64, 36, 0.36),
        (1, 999, MOST_LOSS),
    ],
)
def test_loss_is_learned_and_has_bounds(answered: int, lost: int, loss: float) -> None:
    """Of the looks at flows that did answer, so many were not answered."""
    chance = Chance(1)
    chance.note_answered(answered)
    chance.note_lost(lost)

    assert chance.loss == pytest.approx(loss)


def test_a_small_sample_is_no_measure() -> None:
    """One of eight lost may be far more of all; eight of which none was lost may be lucky."""
    small, large, lucky, unknown = Chance(8), Chance(8), Chance(8), Chance(8)
    small.note_answered(7)
    small.note_lost(1)
    large.note_answered(7000)
    large.note_lost(1000)
    lucky.note_answered(8)

    assert small.loss == large.loss
    assert small.count_looks() > large.count_looks() > unknown.count_looks()
    assert lucky.count_looks() > unknown.count_looks()


def test_the_run_adds_up() -> None:
    """Every destination tells of its answers."""
    chance = Chance(1)
    for _ in range(40):
        chance.note_answered(2)
    assert chance.loss == LEAST_LOSS
    for _ in range(10):
        chance.note_answered(1)
        chance.note_lost(6)

    assert chance.loss == pytest.approx(60 / 150)

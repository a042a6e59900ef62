"""Random estates: netprobe says nothing that real clients and tcpdump contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.random.__main__ import draw_all, read_seeds
from tests.lab.random.draw import draw
from tests.lab.random.estate import Custom
from tests.lab.random.faults import DO
from tests.lab.random.measuring import measure
from tests.lab.random.running import run_estate
from tests.lab.random.scoring import ENDS, WATCHES, WRONG, Scored, table
from tests.lab.random.truth import Truth

SEEDS = (1, 2, 3, 8, 9)
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


def test_every_kind_of_fault_is_drawn() -> None:
    """Each kind in the table of faults is in some estate; half of what is asked has no agent."""
    estates = [draw(seed) for seed in range(1001, 1301)]
    drawn = {type(fault) for estate in estates for fault in estate.faults}
    agents = [estate[one.destination].agent for estate in estates for one in estate.requirements]

    assert drawn == set(DO) - {Custom}
    assert 0.4 < agents.count("none") / len(agents) < 0.6


def test_a_share_of_the_estates_has_no_right() -> None:
    """Forty in a hundred, evenly spread; nothing else of them is another."""
    estates = draw_all(list(read_seeds("1001-1004,2001")), 40)
    usual = [draw(seed) for seed in (1001, 1002, 1003, 1004, 2001)]

    bare = [not any(host.agent == "root" for host in estate.hosts) for estate in estates]
    assert bare == [False, False, True, False, True]
    assert [replace(estate, hosts=()) for estate in estates] == [
        replace(estate, hosts=()) for estate in usual
    ]


def test_the_table_tells_destinations_with_an_agent_from_others() -> None:
    """Each flow counts by its ends, and the shares of a row are of its own flows."""
    estate = draw(1001)
    flow = next(estate.flows())
    some = [
        Scored(1, flow, WATCHES[0], agent, Truth(True), None, score)
        for agent, score in (
            (True, "exact"), (True, "undecided"), (False, "exact"), (False, "false pass"),
            (False, "exact"), (False, "wrong place"),
        )
    ]  # fmt: skip

    rows = {line[:24].strip(): line[24:].split() for line in table(some, 0)[1:-1]}

    assert rows == {
        WATCHES[0]: ["6", "1", "0", "1", "0", "16.7", "%", "50.0", "%"],
        ENDS[0]: ["2", "0", "0", "0", "0", "50.0", "%", "50.0", "%"],
        ENDS[1]: ["4", "1", "0", "1", "0", "0.0", "%", "50.0", "%"],
        "all": ["6", "1", "0", "1", "0", "16.7", "%", "50.0", "%"],
    }


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
    both = [one for one in scored if one.watch == WATCHES[0]]
    return sum(one.score == "exact" for one in both) / max(1, len(both))

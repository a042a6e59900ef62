"""Which destinations of an engine are asked side by side."""

from __future__ import annotations

import pytest

from netprobe.agent.probers.orders import SIDE_BY_SIDE, TurnScheduler


class Order:
    """An order with so many turns' work."""

    def __init__(self, name: int, turns: int) -> None:
        self.name = name
        self.turns = turns
        self.queued = False


def ask_all(orders: list[Order], *, held: int | None = None) -> list[int]:
    """Give each turn to the first order that may have it; ``held`` may have none of its turns as
    long as others wait. Whose turns these were."""
    scheduler = TurnScheduler(None, window=1)  # type: ignore[arg-type]
    for order in orders:
        scheduler.add(order)  # type: ignore[arg-type]
    turns = []
    while scheduler.queue:
        alone = len(scheduler.queue) == 1
        order = next(each for each in scheduler.rotate_orders() if alone or each.name != held)
        turns.append(order.name)
        order.turns -= 1
        if not order.turns:
            scheduler.remove(order)
    return turns


@pytest.mark.parametrize("count", [1, 2, SIDE_BY_SIDE, 3 * SIDE_BY_SIDE])
def test_the_first_destinations_take_turns(count: int) -> None:
    """What follows can begin with them while others are still asked."""
    turns = ask_all([Order(number, 2) for number in range(count)])

    assert sorted(turns) == sorted([*range(count)] * 2)
    together = min(count, SIDE_BY_SIDE)
    assert turns[: 2 * together] == [*range(together)] * 2


def test_large_destinations_hold_up_nobody() -> None:
    """As long as they are fewer than those that are asked side by side."""
    large = [Order(number, 1000) for number in range(SIDE_BY_SIDE - 1)]
    small = [Order(1000 + number, 1) for number in range(50)]

    turns = ask_all([*large, *small])

    assert max(turns.index(order.name) for order in small) < 60 * SIDE_BY_SIDE


def test_who_may_not_have_its_turn_is_passed_over() -> None:
    """Its neighbour is still looked for, or the source is short of something for it."""
    turns = ask_all([Order(number, 3) for number in range(2 * SIDE_BY_SIDE)], held=0)

    assert turns[-3:] == [0, 0, 0]
    assert sorted(turns) == sorted([*range(2 * SIDE_BY_SIDE)] * 3)

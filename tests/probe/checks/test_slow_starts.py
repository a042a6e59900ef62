"""A first SYN that is dropped each time is a slow start, and told from loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.agent.wire.questions import UNKNOWN_MS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Outcome
from netprobe.model.notes import LookNote
from netprobe.model.ports import Ports
from netprobe.model.story import TrailEntry
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.checks.slow_starts import CONNECTS, MOST_QUICK, SlowStarts
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, kind, reply

QUICK = kind(op="answer", answer="nonce", by=1)
REPEATED = QUICK._replace(packets=2)
NOTHING = kind(failure="no-answer", packets=2)
OPENED = Outcome("answer", None, answer="nonce")
SILENT = Outcome("connect", "no-answer", packets=2)

# What becomes of a port's n-th connect, from 0.
Fate = Callable[[int, int], OutcomeKind]


def seen(*looks: OutcomeKind, outcome: Outcome | None = OPENED) -> Observation:
    """Flows to our listeners, with their looks; the last one ended so."""
    trail = tuple(
        TrailEntry("probe", note=LookNote("tcp", "nonce", 1, one, 1000, 1, None))
        for one in looks or (REPEATED,)
    )
    task = make_task("tcp", ((443, 445),))
    return make_observation(outcome, task, listener="ours", mode="nonce", trail=trail)


class World:
    """A source whose connects meet their fate."""

    def __init__(self, fate: Fate, settings: ProbeSettings | None = None) -> None:
        self._fate = fate
        self._asked: Counter[int] = Counter()
        self.source = FakeAgent(SOURCE, {ProbeOrder: self._probe})
        self.scene = make_scene(self.source, FakeAgent(TARGET), settings=settings)

    def _probe(self, order: ProbeOrder) -> ProbeReply:
        def tell(port: int) -> OutcomeKind:
            self._asked[port] += 1
            return self._fate(port, self._asked[port] - 1)

        return reply(order, tell)

    async def find_slow(self) -> Ports:
        """The ports that the check calls slow; none gets lost."""
        found = await look(SlowStarts(), self.scene, seen())
        assert port_sets.union(one.ports for one in found) == ((443, 445),)
        return port_sets.union(one.ports for one in found if one.slow_start)


async def test_connections_that_need_a_second_syn_each_time_start_slowly() -> None:
    """Each port by itself, and each look is long enough for a second SYN."""
    world = World(lambda port, _: REPEATED if port == 444 else QUICK)

    assert await world.find_slow() == ((444, 444),)
    orders = world.source.orders(ProbeOrder)
    assert len(orders) == CONNECTS
    assert all(order.looks == 1 and (order.first_ms or 0) >= UNKNOWN_MS for order in orders)


@pytest.mark.parametrize(
    "fate",
    [
        # Loss takes some of the second SYNs, too.
        lambda _, time: NOTHING if time % 3 == 0 else REPEATED,
        # A port that the firewall knows from before.
        lambda _, time: QUICK if time < MOST_QUICK else REPEATED,
    ],
)
async def test_a_slow_start_is_known_beside_loss(fate: Fate) -> None:
    """Hardly any first SYN gets through, and most of the second ones do."""
    assert await World(fate).find_slow() == ((443, 445),)


@pytest.mark.parametrize(
    "fate",
    [
        # Loss leaves some of the first SYNs.
        lambda _, time: QUICK if time % 4 == 0 else REPEATED,
        lambda _, time: REPEATED if time % 8 == 0 else NOTHING,
        lambda _, time: NOTHING,
        lambda _, time: QUICK,
        lambda _, time: kind(failure="refused"),
    ],
)
async def test_loss_is_no_slow_start(fate: Fate) -> None:
    """Then first SYNs get through as second ones do, or too little does to tell."""
    assert await World(fate).find_slow() == ()


async def test_who_wants_one_look_gets_no_more() -> None:
    """--retries 0."""
    world = World(lambda *_: REPEATED, ProbeSettings(looks=1))

    assert await world.find_slow() == ()
    assert world.source.orders(ProbeOrder) == []


@pytest.mark.parametrize(
    ("some", "concerned"),
    [
        (seen(REPEATED), True),
        (seen(NOTHING, REPEATED), True),
        # A later look, by its first SYN.
        (seen(NOTHING, QUICK), False),
        (seen(QUICK), False),
        (seen(NOTHING, outcome=SILENT), False),
        (seen(REPEATED, outcome=None), False),
    ],
)
def test_what_is_asked_again(some: Observation, concerned: bool) -> None:
    """What a repeated SYN opened."""
    assert SlowStarts().concerns(some) is concerned


def test_what_opened_late_is_no_result_before_it_was_looked_at() -> None:
    """It may need a warning."""
    assert seen(QUICK).proven
    assert not seen(REPEATED).proven

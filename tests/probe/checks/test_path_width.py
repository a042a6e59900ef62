"""Paths on which small TCP segments get through, and full-sized ones do not."""

from __future__ import annotations

from collections import Counter

import pytest

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.errors import AgentError
from netprobe.model.evidence import Outcome, PathMtu
from netprobe.probe.checks.path_mtu import PathWidth
from netprobe.probe.flows.chance import LEAST_LOOKS
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, kind, reply, routed

NONCE = Outcome("answer", None, answer="nonce")
REFUSED = Outcome("connect", "refused")


def agent_on_path(mtu: int, word: str, down: bool = False) -> FakeAgent:
    """A source whose segments come through up to ``mtu``; ``word`` is what larger ones end with."""

    def answer(order: ProbeOrder) -> object:
        fits = not down and min(order.size or 0, 1500) <= mtu
        return reply(order, kind(op="answer", answer="nonce" if fits else word))

    return FakeAgent(SOURCE, {ProbeOrder: answer, RouteOrder: routed(dev_mtu=1500)})


def flow(outcome: Outcome = NONCE, port: int = 6443) -> Observation:
    """A flow that our listener answered."""
    task = make_task("tcp", ((port, port),))
    return make_observation(outcome, task, listener="ours", mode="nonce", template=1)


@pytest.mark.parametrize(("word", "lost_back"), [("narrow", False), ("narrow-back", True)])
async def test_all_tcp_flows_of_a_narrow_pair_are_told_its_width(
    word: str, lost_back: bool
) -> None:
    """It is measured once."""
    source = agent_on_path(1396, word)
    scene = make_scene(source, FakeAgent(TARGET))

    found = await look(PathWidth(), scene, flow(), flow(REFUSED, 6444))
    await look(PathWidth(), scene, flow(port=7000))

    wanted = PathMtu(1396, 1500, "nonce", "full TCP segments to port 6443", lost_back=lost_back)
    assert [one.mtu for one in found] == [wanted, wanted]
    sizes = Counter(order.size for order in source.orders(ProbeOrder))
    assert sizes[1500] == 2 + LEAST_LOOKS


async def test_a_path_below_the_least_of_ipv6_is_found_too() -> None:
    """A nonce fits where 1,280 bytes do not, and a real client's request may not."""
    scene = make_scene(agent_on_path(600, "narrow"), FakeAgent(TARGET))

    (found,) = await look(PathWidth(), scene, flow())

    assert found.mtu is not None
    assert (found.mtu.path, found.mtu.needed) == (600, 1500)


async def test_a_width_that_cannot_be_measured_to_its_end_is_told() -> None:
    """The source is gone after its full segment got lost: nobody knows the rest."""
    source = agent_on_path(1396, "narrow")
    answer = source.scripts[ProbeOrder]

    def lose(order: ProbeOrder) -> object:
        if order.size != 1500:
            source.lost = True
            raise AgentError("agent-lost", "gone")
        return answer(order)

    source.scripts[ProbeOrder] = lose

    (found,) = await look(PathWidth(), make_scene(source, FakeAgent(TARGET)), flow())

    assert found.mtu == PathMtu(None, 1500, "nonce")


class LossyPath:
    """A source that loses so many of its probes, small and large; large ones more often or always.

    ``large``: how many of 10 orders of more than 1,400 bytes arrive; ``small``: of the others.
    """

    def __init__(self, small: int, large: int) -> None:
        self._share = {False: small, True: large}
        self._asked: Counter[bool] = Counter()

    def answer(self, order: ProbeOrder) -> object:
        """Lose so many of every ten, spread over them."""
        is_large = (order.size or 0) > 1400
        self._asked[is_large] += 1
        arrives = 3 * self._asked[is_large] % 10 < self._share[is_large]
        return reply(order, kind(op="answer", answer="nonce" if arrives else "narrow"))


@pytest.mark.parametrize(
    ("small", "large", "narrow"),
    [(10, 0, True), (6, 0, True), (10, 5, False), (6, 3, False), (3, 3, False), (1, 0, False)],
)
async def test_loss_alone_makes_no_path_narrow(small: int, large: int, narrow: bool) -> None:
    """Only where small segments show that loss cannot be all that keeps the large ones away."""
    path = LossyPath(small, large)
    source = FakeAgent(SOURCE, {ProbeOrder: path.answer, RouteOrder: routed(dev_mtu=1500)})

    (found,) = await look(PathWidth(), make_scene(source, FakeAgent(TARGET)), flow())

    assert (found.mtu is not None) == narrow


async def test_a_wide_path_takes_one_order() -> None:
    """Nothing is noted on flows that are as they seemed."""
    source = agent_on_path(1500, "narrow")

    found = await look(PathWidth(), make_scene(source, FakeAgent(TARGET)), flow())

    assert found == [flow()]
    assert len(source.orders(ProbeOrder)) == 1


@pytest.mark.parametrize("seen", [flow(REFUSED), flow(Outcome("connect", "no-answer"))])
async def test_without_an_answer_of_our_listener_nothing_is_measured(seen: Observation) -> None:
    """Nobody there would send segments back."""
    source = agent_on_path(1396, "narrow")

    await look(PathWidth(), make_scene(source, FakeAgent(TARGET)), seen)

    assert source.orders(ProbeOrder) == []


async def test_where_small_segments_fail_too_the_path_is_not_blamed() -> None:
    """Something else is wrong by now."""
    source = agent_on_path(1396, "silent", down=True)

    (found,) = await look(PathWidth(), make_scene(source, FakeAgent(TARGET)), flow())

    assert found.mtu is None

"""A pause at the other end: a look is repeated, and what is always missed is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.errors import AgentError
from netprobe.model.evidence import Listener, Outcome, PathMtu
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.flows.chance import Chance
from netprobe.probe.flows.listeners import UNKNOWN, Listeners, Spot
from netprobe.probe.flows.mtu_ladder import SMALLEST_TCP, MtuLadder, MtuProbe
from netprobe.probe.flows.pauses import PatientProber
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.settings import ProbeSettings, QuickSettings, Timing
from netprobe.protocols import protocol_for
from tests.probe.builders import SOURCE, TARGET, make_task
from tests.probe.fakes import FakeAgent, FakeFleet, kind, reply

NONE = kind(failure="no-answer")
STILL = kind(failure="stood-still")
NONCE = kind(op="answer", answer="nonce", by=1)
UNHURRIED = Timing(4300, 4300, 1)


class PausingAgent(FakeAgent):
    """Stood still for so long in each look, in turn."""

    def __init__(self, *pauses: float) -> None:
        super().__init__(TARGET)
        self.pauses = iter(pauses)

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        lost_s = next(self.pauses, 0.0)
        return lost_s if lost_s >= least_s else 0.0


async def probe(
    kinds: Sequence[OutcomeKind | Callable[[int], OutcomeKind]],
    *pauses: float,
    state: str = "ours",
    timing: Timing | None = None,
    protocol: str = "udp",
    slowest_ms: float | None = None,
    ports: Ports = ((443, 443),),
    looks: int | None = None,
    settings: type[ProbeSettings] = ProbeSettings,
) -> tuple[list[Observation], list[ProbeOrder]]:
    """What becomes of ports whose looks end so, and the orders for them."""
    left = iter(kinds)
    source = FakeAgent(SOURCE, {ProbeOrder: lambda order: reply(order, next(left))})
    fleet = FakeFleet([source, PausingAgent(*pauses)])
    answered = Answered()
    if slowest_ms is not None:
        heard = Outcome("answer", None, answer="nonce", rtt_ms=slowest_ms)
        answered.note_answer(SOURCE.name, make_task(protocol).address, heard)
    prober = PatientProber(fleet, settings(looks=looks), answered)
    task = make_task(protocol, ports)
    listeners = Listeners(UNKNOWN)
    spot = Spot(protocol, task.address, protocol_for(None), task.ports)
    listeners.add(spot, task.ports, Listener(state))  # type: ignore[arg-type]
    (part,) = prober.cut([task], listeners)
    return await prober.part(part, timing), source.orders(ProbeOrder)


async def test_a_look_that_met_a_pause_is_repeated_and_counts() -> None:
    """Silence of the repeat is silence, an answer is an answer; both orders are its own."""
    for second in (NONE, NONCE):
        (found,), (first, again) = await probe([NONE, second], 0.4, 0.0)
        assert found.outcome is not None
        assert (found.outcome.failure, found.outcome.answer) == (second.failure, second.answer)
        assert (again.first_ms, again.look_ms, again.looks) == UNHURRIED
        assert found.order == again.id
        assert found.orders[0][0] == first.id


@pytest.mark.parametrize("second", [NONE, NONCE])
async def test_a_repeat_that_met_a_pause_is_repeated(second: OutcomeKind) -> None:
    """A machine that is busy for ten seconds makes nothing of a run unknown. An answer that came
    counts, pause or not."""
    (found,), asked = await probe([NONE, NONE, second], 0.4, 4.1, 0.0)
    assert found.outcome is not None
    assert (found.outcome.failure, found.outcome.answer) == (second.failure, second.answer)
    assert len(asked) == 3
    (found,), _ = await probe([NONE, NONCE], 0.4, 4.1)
    assert found.outcome is not None
    assert found.outcome.answer == "nonce"


async def test_where_each_repeat_met_a_pause_nothing_is_known() -> None:
    """Nor is an answer that never came silence."""
    (found,), asked = await probe([NONE] * 4, 0.4, 4.1, 4.1, 4.1)
    assert found.outcome is not None
    assert (found.outcome.failure, found.outcome.answer) == ("stood-still", None)
    assert len(asked) == 4


@pytest.mark.parametrize("second", [STILL, NONE, NONCE])
async def test_what_a_source_that_stood_still_missed_is_repeated(second: OutcomeKind) -> None:
    """It has asked twice itself, and says that it could not hear."""
    (found,), asked = await probe([STILL, *[second] * 3], state="closed", protocol="tcp")
    assert found.outcome is not None
    assert (found.outcome.failure, found.outcome.answer) == (second.failure, second.answer)
    assert len(asked) == (4 if second is STILL else 2)


@pytest.mark.parametrize(("slowest_ms", "look_ms"), [(None, 4300), (900.0, 7600), (5000.0, 8000)])
async def test_a_repeat_spares_an_answer_as_much_time_however_slow_answers_are(
    slowest_ms: float | None, look_ms: int
) -> None:
    """A busy machine answers late: its slow round trips make no pause of the repeat a doubt."""
    (found,), (_, again) = await probe([NONE, NONE], 3.9, 3.9, slowest_ms=slowest_ms)
    assert again.look_ms == look_ms
    assert found.outcome is not None
    assert found.outcome.failure == "no-answer"


@pytest.mark.parametrize(
    ("first", "pause", "state", "timing"),
    [
        (NONE, 0.0, "ours", None),
        (NONCE, 9.0, "ours", None),
        (NONE, 9.0, "closed", None),
        (NONE, 3.6, "ours", UNHURRIED),
    ],
    ids=["no-pause", "answered", "answer-of-the-kernel", "enough-is-left"],
)
async def test_what_no_pause_could_hide_stands(
    first: OutcomeKind, pause: float, state: str, timing: Timing | None
) -> None:
    """One look is all that these need."""
    (found,), orders = await probe([first], pause, state=state, timing=timing)
    assert len(orders) == 1
    assert found.outcome is not None
    assert found.outcome.failure == first.failure


async def test_a_listener_is_asked_again_beside_a_silent_kernel() -> None:
    """Of one order some ports opened, and others did not: each counts pauses as it must."""
    opened = kind(op="answer", answer="silent")
    silence = kind(op="connect", failure="no-answer")
    found, asked = await probe(
        [lambda port: silence if port == 5 else opened, NONCE],
        0.9,
        0.9,
        protocol="tcp",
        ports=((5, 6),),
    )
    assert [order.blocks[0].ports for order in asked] == [[(5, 6)], [(6, 6)]]
    answers = {one.ports: one.outcome and one.outcome.answer for one in found}
    assert answers == {((5, 5),): None, ((6, 6),): "nonce"}


async def test_a_kernel_answers_while_a_busy_process_waits() -> None:
    """A pause of less than a second makes no look longer."""
    silence = kind(op="connect", failure="no-answer")
    (found,), asked = await probe([silence], 0.9, protocol="tcp")
    assert found.outcome is not None
    assert found.outcome.failure == "no-answer"
    assert len(asked) == 1


@pytest.mark.parametrize("answers", [False, True])
async def test_a_kernel_that_may_have_stood_still_is_asked_again(answers: bool) -> None:
    """Its whole machine may have. But it answers a SYN also while the agent alone stands still, so
    that a second silence counts."""
    silence = kind(op="connect", failure="no-answer")
    second = NONCE if answers else silence
    (found,), asked = await probe([silence, second], 3.9, 3.9, protocol="tcp")
    assert found.outcome is not None
    assert (found.outcome.failure, found.outcome.answer) == (second.failure, second.answer)
    assert len(asked) == 2


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize(
    ("looks", "look_ms", "pause", "asked"),
    [(1, 3400, 1.1, 2), (1, 3400, 0.9, 1), (1, 250, 0.5, 2), (None, 3400, 1.1, 1)],
)
async def test_the_only_look_is_repeated_where_a_machine_may_have_missed_its_packets(
    protocol: str, looks: int | None, look_ms: int, pause: float, asked: int
) -> None:
    """--retries 0: no other look makes up for it. What the repeat says stands."""
    silence = kind(op="connect", failure="no-answer") if protocol == "tcp" else NONE
    found, orders = await probe(
        [silence] * 2, pause, pause, protocol=protocol, timing=Timing(look_ms, look_ms, 1),
        looks=looks, slowest_ms=1.0,
    )  # fmt: skip

    assert [one.outcome and one.outcome.failure for one in found] == ["no-answer"]
    assert len(orders) == asked


async def test_a_quick_look_is_not_repeated_for_a_short_pause() -> None:
    """A watch looks again by itself, and soon."""
    silence = kind(op="connect", failure="no-answer")
    _, orders = await probe([silence], 0.9, protocol="tcp", looks=1, settings=QuickSettings)

    assert len(orders) == 1


@pytest.mark.parametrize("is_paused_again", [False, True])
async def test_a_size_that_met_a_pause_is_sent_again(is_paused_again: bool) -> None:
    """One that arrives then is no black hole. Where that look, which is longer, met a pause, too,
    nobody knows what the path carries, nor that it is wide."""
    looks: list[ProbeOrder] = []

    def answer(order: ProbeOrder) -> ProbeReply:
        looks.append(order)
        return reply(order, NONCE if len(looks) > 2 else kind(op="answer", answer="narrow-back"))

    source = FakeAgent(SOURCE, {ProbeOrder: answer})
    pauses = [9.0, 9.0 if is_paused_again else 0.0]
    if is_paused_again:
        source.scripts[ProbeOrder] = lambda order: reply(order, NONE)
    fleet = FakeFleet([source, PausingAgent(*pauses)])
    way = MtuProbe("nonce", "tcp", 80, "nonce", 1)
    ladder = MtuLadder(make_task("tcp"), way, fleet, Chance(1), None)
    if is_paused_again:
        with pytest.raises(AgentError, match="stood still"):
            await ladder.measure(1500)
        assert ladder.doubt() == PathMtu(None, 1500, "nonce")
        return
    measured = await ladder.measure(1500)
    assert measured is not None
    assert (measured.path, measured.needed, measured.lost_back) == (1500, 1500, False)


async def test_a_pause_makes_no_path_narrower_than_it_is() -> None:
    """A step of the search that met one is taken again."""
    steps: list[int | None] = []

    def answer(order: ProbeOrder) -> ProbeReply:
        steps.append(order.size)
        is_searching = order.size not in (SMALLEST_TCP, 1500)
        first_step = is_searching and len(steps) < 20
        return reply(order, NONE if first_step or (order.size or 0) > 1400 else NONCE)

    # The needed size gets lost without a pause; the first step meets one.
    fleet = FakeFleet([FakeAgent(SOURCE, {ProbeOrder: answer}), PausingAgent(0.0, 9.0)])
    way = MtuProbe("nonce", "tcp", 80, "nonce", 1)

    measured = await MtuLadder(make_task("tcp"), way, fleet, Chance(1), None).measure(1500)

    assert measured is not None
    assert (measured.path, measured.needed) == (1400, 1500)

"""An agent that is alive and does not answer is lost, each order after its own time."""

from __future__ import annotations

import asyncio
import math
import sys
from typing import Any

import pytest

from netprobe.agent.wire.answers import Alive, Done, ProbeOutcomes
from netprobe.agent.wire.frames import HELLO_PREFIX, encode_frame
from netprobe.agent.wire.host_messages import Routed, RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ListenOrder, ProbeOrder, RateOrder, SeenOrder
from netprobe.agent.wire.parts import Pace, Standstill
from netprobe.errors import AgentError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import LOST, SLOW, AgentLink, Beats
from netprobe.vantage.patience import FACTOR, SELF_TEST_S, Moment, OrderPatience, effort_of
from netprobe.vantage.pauses import LinkPauses
from netprobe.vantage.stream import Target, open_stream
from tests.patience import PATIENCE_S, until
from tests.vantage.scripted import GOOD_HELLO
from tests.vantage.support import HOST, KEY, block, command, is_running, probe

# Beats for ever; ``deaf``: it does not even read its orders; ``frozen``: it beats no more.
BEATER = """
import sys, threading, time
out, source = sys.stdout.buffer, sys.stdin.buffer
out.write(b"NETPROBE-READY\\n")
out.flush()
source.read(int(source.readline()))
out.write(bytes.fromhex(sys.argv[1]))
out.flush()
def read():
    while source.read(1):
        pass
if sys.argv[3] == "mute":
    threading.Thread(target=read, daemon=True).start()
while sys.argv[3] == "frozen":
    time.sleep(60)
while True:
    out.write(bytes.fromhex(sys.argv[2]))
    out.flush()
    time.sleep(0.05)
"""
# No silence of a test lasts so long.
LONG_S = 1000.0


async def start_beater(launcher: Launcher, kind: str) -> AgentLink:
    hello = HELLO_PREFIX + GOOD_HELLO + b"\n"
    words = (hello.hex(), encode_frame(Alive([], 0)).hex(), kind)
    host = command(sys.executable, "-I", "-S", "-c", BEATER, *words)
    return await start_agent(host, HOST, key=KEY, launcher=launcher)


async def ask_probe(link: AgentLink) -> None:
    order = probe(1, "tcp", "127.0.0.1", [(5, 9)])._replace(look_ms=10, looks=1)
    async for _ in link.stream(order, ProbeOutcomes):
        pass


async def ask_route(link: AgentLink) -> None:
    await link.request(RouteOrder(0, "127.0.0.1", None), Routed)


async def ask_stream(link: AgentLink) -> None:
    async with open_stream(link, Target("127.0.0.1", 5, timeout_s=0.01)):
        pass


async def ask_much(link: AgentLink) -> None:
    """More than a pipe holds: who waits until it is read waits for ever."""
    await link.request(RouteOrder(0, "x" * 1_000_000, None), Routed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "ask", "what"),
    [
        ("mute", ask_probe, "its tcp probes of 127.0.0.1"),
        ("mute", ask_route, "the order Route"),
        ("mute", ask_stream, "a connection to 127.0.0.1"),
        ("deaf", ask_much, "the order Route"),
    ],
)
async def test_an_agent_that_beats_and_does_not_answer_is_lost(
    kind: str, ask: Any, what: str
) -> None:
    """A beat is a sign of life of the link; the words say what the agent owes."""
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=1.0, silence_s=LONG_S, grace_s=0.1)
        link = await start_beater(launcher, kind)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(AgentError) as caught:
                await ask(link)
            assert caught.value.reason == "agent-lost"
            assert f"was lost: it is alive but has not finished {what} for " in str(caught.value)
            await link.close()
        assert not is_running(link.pid)


@pytest.mark.slow
async def test_who_beats_no_more_is_not_called_alive() -> None:
    """A frozen host owes its order before its silence counts; nobody knows that it lives."""
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=0.1, silence_s=LONG_S, grace_s=0.5, stalled_s=0.5)
        link = await start_beater(launcher, "frozen")
        with pytest.raises(AgentError) as caught:
            await ask_route(link)
        assert "alive" not in str(caught.value)
        await link.close()


@pytest.mark.slow
async def test_an_agent_that_owes_nothing_may_beat_for_ever() -> None:
    """Between orders there is nothing to finish."""
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=0.1, silence_s=LONG_S, grace_s=0.1)
        link = await start_beater(launcher, "mute")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(link.lost), 1.0)
        await link.close()


@pytest.mark.slow
async def test_a_coordinator_that_stood_still_blames_no_agent() -> None:
    """However long nothing was owed before: the time in which nobody could hear counts nowhere."""
    passed_s = 0.0
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=0.05, silence_s=LONG_S, grace_s=10.0)
        link = await start_beater(launcher, "mute")
        began_s = link._time()
        link._time = lambda: began_s + passed_s
        link._answered = Moment(began_s - 50.0, 0.0)
        with link.expect(RouteOrder(1, "127.0.0.1", None)):
            await asyncio.sleep(0)  # until the link waits for its next beat
            passed_s = 100.0
            await until(lambda: link._stood_still_s)
            assert link._find_fault() is None
        await link.close()


@pytest.mark.slow
async def test_a_consumer_that_lags_makes_no_agent_slow() -> None:
    """While nobody reads what the agent has sent, its time does not pass."""
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=0.02, silence_s=LONG_S, grace_s=10.0)
        link = await start_beater(launcher, "mute")
        queue = link.subscribe(1)
        while not queue.full():
            queue.put_nowait(Done(1, cancelled=False))
        since, began_s = link._read_moment(), link._time()
        await until(lambda: link._time() > began_s + 1.0)
        assert link._count_run(since) < 0.5
        await link.close()


@pytest.mark.slow
async def test_progress_extends_a_deadline_to_four_estimates() -> None:
    """An agent that goes on is not lost before that, and is then, although it has just answered."""
    async with Launcher() as launcher:
        launcher.beats = Beats(silence_s=LONG_S, grace_s=10.0)
        link = await start_beater(launcher, "mute")
        now_s = link._time()
        link._time = lambda: now_s
        with link.expect(RouteOrder(1, "127.0.0.1", None)):
            for _ in range(5):  # it drips an outcome every 8 s
                assert link._find_fault() is None
                now_s += 8.0
                link._pauses = LinkPauses(now_s)
                link._answered = link._read_moment()
            now_s += 0.5
            fault = link._find_fault()
        assert fault is not None
        assert fault == (
            "it is slow: it goes on and has not finished the order Route in 40 s",
            SLOW,
        )
        await link.close()


@pytest.mark.slow
@pytest.mark.parametrize(("waited_s", "is_lost"), [(60.0, False), (5.0, True)])
async def test_time_in_which_the_agent_could_not_run_comes_on_top(
    waited_s: float, is_lost: bool
) -> None:
    """As it says itself; and of that so much at most as the bound allows."""
    async with Launcher() as launcher:
        launcher.beats = Beats(silence_s=LONG_S, grace_s=10.0, stalled_s=70.0)
        link = await start_beater(launcher, "mute")
        now_s = link._time()
        link._time = lambda: now_s
        with link.expect(RouteOrder(1, "127.0.0.1", None)):
            link._pauses = LinkPauses(now_s)
            now_s += 65.0
            link._pauses.note_beat(now_s)
            link._take_alive(Alive([], int(waited_s * 1000)))
            fault = link._find_fault()
            assert (fault is not None and fault[1] == LOST) is is_lost
            now_s += 100.0
            link._pauses.note_beat(now_s)
            link._take_alive(Alive([], 1_000_000))
            assert link._find_fault() is not None
        await link.close()


@pytest.mark.slow
async def test_a_stopped_agent_is_not_late_before_it_could_answer() -> None:
    """While the answer to a beat is overdue, the order's own time stands still."""
    async with Launcher() as launcher:
        launcher.beats = Beats(silence_s=LONG_S, grace_s=10.0)
        link = await start_beater(launcher, "mute")
        now_s = link._time()
        link._time = lambda: now_s
        with link.expect(RouteOrder(1, "127.0.0.1", None)):
            link._pauses = LinkPauses(now_s)
            link._pauses.note_beat(now_s)
            now_s += 25.0
            assert link._find_fault() is None
            link._take_alive(Alive([], 0))
            assert link._find_fault() is None
            assert link._pauses.lost_s(now_s - 25.0, now_s, 25.0) == 25.0
            now_s += 11.0
            assert link._find_fault() is not None
        await link.close()


def test_pauses_that_an_agent_tells_are_put_where_they_can_have_been() -> None:
    """It may have answered at any time since the beat, and lost no more than it says."""
    pauses = LinkPauses(100.0)
    pauses.note_beat(200.0)
    pauses.take_alive(Alive([Standstill(8000, 7000), Standstill(2000, 7000)], 0), 200.5)
    assert pauses.lost_s(0.0, 300.0, 300.0) == 7.0 + 7.0
    assert pauses.lost_s(190.0, 195.0, 5.0) == 5.0
    assert pauses.lost_s(190.0, 195.0, 5.0, 8.0) == 0.0, "shorter ones do not count"
    assert pauses.lost_s(199.0, 300.0, 101.0) == 0.0
    assert pauses.known_until == 200.0
    pauses.take_alive(Alive([Standstill(0, 100_000)], 0), 250.0)
    assert pauses.lost_s(199.0, 300.0, 101.0) == 0.0, "it answers no beat"


def test_pauses_of_different_looks_do_not_add_up() -> None:
    """Of an order that lasts long, only what one look lost can have hidden an answer."""
    pauses = LinkPauses(0.0)
    for due in (1.0, 5.0, 9.0):
        pauses.note_turn(due, due + 2.0)

    assert pauses.lost_s(0.0, 12.0, 4.0) == 2.0
    assert pauses.lost_s(0.0, 12.0, 6.0) == 4.0
    assert pauses.lost_s(2.5, 12.0, 1.0) == 1.0
    assert pauses.lost_s(3.0, 4.5, 1.0) == 0.0


def test_all_pauses_since_then_add_up_once() -> None:
    """What an agent told, and what its late beat shows, may be one pause."""
    pauses = LinkPauses(0.0)
    for due in (1.0, 5.0, 9.0):
        pauses.note_turn(due, due + 2.0)
    pauses.note_beat(12.0)
    pauses.take_alive(Alive([Standstill(500, 1500)], 0), 14.0)

    assert pauses.lost_s(0.0, 15.0, math.inf) == 2.0 + 2.0 + 5.0
    assert pauses.lost_s(2.0, 10.0, math.inf) == 1.0 + 2.0 + 1.0
    assert pauses.lost_s(0.0, 15.0, math.inf, 1.8) == 2.0 + 2.0 + 2.0 + 2.0


def test_two_pauses_at_most_can_hide_an_answer() -> None:
    """Between them the agent ran: however many a busy machine makes, an answer waits for two."""
    pauses = LinkPauses(0.0)
    for due in range(10):
        pauses.note_turn(due, due + 1.0 + due / 100)

    assert pauses.lost_s(0.0, 12.0, 12.0) == pytest.approx(1.09 + 1.08)
    assert pauses.lost_s(0.0, 12.0, 1.5) == 1.5


def limits(*orders: Any, files: int = 1 << 20, per_s: float | None = None) -> list[float]:
    """The deadlines of these orders, without the fixed allowance, in seconds of work."""
    patience = OrderPatience(files, 0.0, per_s)
    found = patience.deadlines_s([effort_of(order) for order in orders])
    return [limit_s / FACTOR for limit_s in found]


def order(count: int = 1, dst: str = "10.0.0.2", **more: Any) -> ProbeOrder:
    """A probe order of so many ports, with two looks of 4 s."""
    made = probe(1, "udp", dst, [(1, count)])
    return made._replace(look_ms=4000, looks=2, **more)


def test_the_deadline_follows_from_looks_ports_and_rate() -> None:
    """Looks wait side by side; ports start one after the other, at least at the rate."""
    assert limits(order()) == [pytest.approx(8.002)]
    assert limits(order(5000)) == [pytest.approx(8 + 10)]
    assert limits(order(first_ms=9000)) == [pytest.approx(18.002)]
    assert limits(order(50), per_s=1.0) == [pytest.approx(8 + 100)]
    # 16 sockets, each taken for 8 s.
    assert limits(order(50), files=32) == [pytest.approx(8 + 100 / 2)]
    echo = EchoOrder(1, ["10.0.0.2"] * 50, None, None, 4000, 2, None, [])
    assert limits(echo, per_s=1.0) == [108]


def test_orders_share_the_agent_and_a_destinations_pace() -> None:
    """An order that needs no packets is not held by the others; paced ones only by their own."""
    pace = Pace(6, 1000)
    route = RouteOrder(0, "10.0.0.2", None)
    found = limits(
        order(10, pace=pace), order(20, pace=pace), order(5, "10.0.0.3", pace=pace), route,
        per_s=1000.0,
    )  # fmt: skip
    assert found == [pytest.approx(one) for one in (68.07, 68.07, 18.07, 0.0)]
    listening = ListenOrder(1, [block("tcp", "10.0.0.2", [(1, 4000)])])
    assert limits(listening) == [pytest.approx(4.0)]
    assert limits(SeenOrder(0, 1, [], rest=True)) == [pytest.approx(SELF_TEST_S)]


@pytest.mark.slow
async def test_the_rate_of_the_run_counts() -> None:
    """An agent that may send one packet a second is slow on purpose."""
    async with Launcher() as launcher:
        launcher.beats = Beats(interval_s=0.1, silence_s=LONG_S, grace_s=0.1)
        link = await start_beater(launcher, "mute")
        link.send(RateOrder(1.0))
        asking = asyncio.create_task(ask_probe(link))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asking), 1.5)
        await link.close()
        with pytest.raises(AgentError):
            await asking

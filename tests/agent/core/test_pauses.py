"""Pauses: what they are, for which looks they count, and what becomes of these."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from netprobe.agent.core.loop import Loop
from netprobe.agent.core.pauses import MOST_LONGER_S, PAUSE_S, Pauses
from netprobe.agent.probers.datagram.udp import UdpEngine
from netprobe.agent.probers.tcp.engine import TcpEngine
from netprobe.agent.wire.orders import ProbeOrder
from tests.agent.rig import Agent, TcpResponder, UdpResponder, one, only, order

STOPPED_S = 30.0


class StoppableLoop(Loop):
    """A loop whose time passes only while it has nothing to do, and where a test lets it stop."""

    time_s = 1000.0

    def __init__(self) -> None:
        super().__init__()
        self._real = self._epoll
        self._epoll = self  # type: ignore[assignment]  # it only needs what is here

    def now(self) -> float:
        return self.time_s

    def poll(self, wait_s: float, most: int) -> list[tuple[int, int]]:
        """Give what is ready; where nothing is, the wait is over at once."""
        ready = self._real.poll(0, most)
        if not ready:
            self.time_s += wait_s
        return ready

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def stand_still(self) -> None:
        """Let time go on without the loop."""
        self.time_s += STOPPED_S


@pytest.fixture
def agent() -> Agent:
    """An agent that can be stopped."""
    made = Agent()
    made.loop = StoppableLoop()
    return made


def test_a_loop_that_runs_late_was_in_a_pause() -> None:
    """What it meant to sleep is none, nor is being woken early, nor a short delay."""
    pauses = Pauses(100.0)
    pauses.note(100.0 + PAUSE_S)
    pauses.rest(60.0)
    pauses.note(101.0)
    pauses.rest(60.0)
    pauses.note(161.0 + PAUSE_S)
    assert pauses.since(0.0) == []

    pauses.rest(1.0)
    pauses.note(170.0)
    pauses.note(175.0)
    assert pauses.since(0.0) == [(162.0 + PAUSE_S, 170.0), (170.0, 175.0)]
    assert pauses.since(172.0) == [(170.0, 175.0)]


def test_a_span_is_counted_without_its_pauses() -> None:
    """Each pause by as much of it as lies in the span."""
    pauses = Pauses(10.0)
    pauses.note(15.0)
    pauses.rest(5.0)
    pauses.note(22.0)

    assert pauses.time_left(0.0, 30.0) == 30 - 5 - 2
    assert pauses.time_left(12.0, 21.0) == 9 - 3 - 1
    assert pauses.time_left(15.0, 20.0) == 5


def test_two_pauses_at_most_count() -> None:
    """On a busy machine each turn may be late; what arrives in one is read in the next."""
    pauses = Pauses(0.0)
    for _ in range(20):
        pauses.rest(0.0)
        pauses.note(pauses.since(0.0)[-1][1] + 0.5 if pauses.since(0.0) else 0.5)

    assert pauses.time_left(0.0, 10.0) == 9.0
    assert pauses.is_over(0.0, 4.0, 5.0)
    assert not pauses.is_spoilt(0.0, 4.0, 5.0)


def test_a_look_goes_on_until_it_has_had_its_time() -> None:
    """One with a short pause in it is as good as any; of a long one too little is left."""
    pauses = Pauses(0.0)
    pauses.note(0.5)
    pauses.rest(9.0)
    assert not pauses.is_over(0.0, 1.0, 1.4)
    assert pauses.is_over(0.0, 1.0, 1.5)
    assert not pauses.is_spoilt(0.0, 1.0, 1.5)

    pauses.note(9.5)
    late = 10.5 + MOST_LONGER_S
    assert pauses.is_over(9.4, 1.0, late)
    assert pauses.is_spoilt(9.4, 1.0, late)


@pytest.fixture(params=["udp", "tcp", "opened"])
def asked(request: pytest.FixtureRequest, agent: Agent) -> Iterator[tuple[object, ProbeOrder]]:
    """An engine, and an order of one look to which nobody answers."""
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())
        udp = UdpResponder(agent, "127.0.0.1", "mute")
        tcp = TcpResponder(agent, "127.0.0.1", "mute")
        port = {"udp": udp.port, "opened": tcp.port, "tcp": full.getsockname()[1]}[request.param]
        engine = UdpEngine(agent) if request.param == "udp" else TcpEngine(agent)
        mode = "connect" if request.param == "tcp" else "nonce"
        yield engine, order(1, request.param[:3].replace("ope", "tcp"), "127.0.0.1", only(port),
                            mode=mode, template=1, first_ms=200, look_ms=200)  # fmt: skip
        engine.close()
        udp.close()
        tcp.close()


@pytest.mark.parametrize(("stops", "is_known"), [(0, True), (1, True), (2, False)])
def test_a_look_with_a_pause_is_repeated_once(
    agent: Agent, asked: tuple[TcpEngine, ProbeOrder], stops: int, is_known: bool
) -> None:
    """Where the repeat has none, silence is silence; else nobody knows."""
    engine, message = asked
    assert isinstance(agent.loop, StoppableLoop)
    for number in range(stops):
        # The second one comes when the look is repeated, at once after the first.
        agent.loop.call_later(0.1 + number * (STOPPED_S + 0.1), agent.loop.stand_still)
    began = agent.loop.now()
    found = one(agent, engine, message)
    assert found.looks == 1
    silent = {found.kind.failure or found.kind.answer}
    assert silent <= ({"no-answer", "silent"} if is_known else {"stood-still"})
    looked_s = round(agent.loop.now() - began - stops * STOPPED_S, 6)
    assert looked_s >= round(0.2 + 0.1 * (stops == 1), 6)


def test_a_pause_before_a_look_is_none_of_it(
    agent: Agent, asked: tuple[TcpEngine, ProbeOrder]
) -> None:
    """It counts only where it could have hidden the answer."""
    engine, message = asked
    assert isinstance(agent.loop, StoppableLoop)
    agent.loop.stand_still()
    began = agent.loop.now()
    found = one(agent, engine, message)
    assert found.kind.failure != "stood-still"
    assert agent.loop.now() - began >= 0.2


def test_an_answer_that_came_in_a_pause_counts(agent: Agent) -> None:
    """Sockets are read before anything is believed of silence."""
    responder = UdpResponder(agent, "127.0.0.1", "answer")
    engine = UdpEngine(agent)
    assert isinstance(agent.loop, StoppableLoop)
    agent.loop.call_later(0.0, agent.loop.stand_still)
    message = order(1, "udp", "127.0.0.1", only(responder.port), mode="nonce", template=1)
    found = one(agent, engine, message)
    engine.close()
    responder.close()
    assert found.kind.answer in ("nonce", "foreign")

"""Which resets a host makes itself, by the packets that its loopback device has counted.

Real firewalls are in ``tests/lab/test_own_resets.py``.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Sequence

import pytest

from netprobe.agent.core.agent import AgentCore
from netprobe.agent.core.loop import Loop
from netprobe.agent.core.pace import Bucket
from netprobe.agent.host import own_resets
from netprobe.agent.host.counters import count_loopback_packets
from netprobe.agent.host.own_resets import (
    MOST_LOOKS,
    TOGETHER,
    Look,
    OwnResetsSearch,
    connect_to,
)
from netprobe.agent.net.sockets import ProbeTarget, target_of
from netprobe.agent.wire.host_messages import OwnResets, OwnResetsOrder
from tests.patience import PATIENCE_S

OWN = range(7000, 7004)


class World:
    """Ports that this host resets itself, beside ports that a neighbour resets; other programs use
    loopback in this share of all moments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: Sequence[int], busy: float) -> None:
        self._own = own
        self._busy = busy
        self._chance = random.Random(7)
        self._counted = 0
        self.asked: list[list[int]] = []
        self.silent: set[int] = set()
        monkeypatch.setattr(own_resets, "connect_to", self.connect)
        monkeypatch.setattr(own_resets, "count_loopback_packets", self.count)

    def count(self) -> int:
        """The counter; others may have used the device since the last look at it."""
        self._counted += self._chance.random() < self._busy
        return self._counted

    def connect(self, target: ProbeTarget, ports: Sequence[int]) -> Look:
        self.asked.append(list(ports))
        others = self._chance.random() < self._busy
        mine = sum(port in self._own for port in ports)
        return Look({*ports} - self.silent, mine + others, 0.0)


def search(*ports: range, per_s: float | None = None) -> list[range]:
    """What an agent says of these ports."""
    sent: list[OwnResets] = []

    class Core(AgentCore):
        def send(self, message: tuple[object, ...]) -> None:
            assert isinstance(message, OwnResets)
            sent.append(message)
            self.loop.stop()

    agent = Core(Loop())
    agent.rate = Bucket(per_s)
    asked = [(some[0], some[-1]) for some in ports]
    OwnResetsSearch(agent, OwnResetsOrder(7, "10.0.0.2", None, asked)).take_step()
    if not sent:
        agent.loop.call_later(PATIENCE_S, agent.loop.stop)
        agent.loop.run()
    (answer,) = sent
    assert answer.id == 7
    return [range(first, last + 1) for first, last in answer.ports]


def test_a_still_loopback_shows_all_ports_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked twice of what came from outside."""
    world = World(monkeypatch, [], busy=0)

    assert search(range(100, 200)) == []
    assert sorted(port for some in world.asked for port in some) == [*range(100, 200)]
    assert max(map(len, world.asked)) == TOGETHER


@pytest.mark.parametrize("busy", [0, 0.3, 0.6])
def test_own_resets_are_told_port_by_port(monkeypatch: pytest.MonkeyPatch, busy: float) -> None:
    """Also where others use loopback half of the time: no port stands for another."""
    World(monkeypatch, OWN, busy)

    assert search(range(6990, 7020)) == [OWN]


def test_a_loopback_that_is_never_still_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then what a neighbour resets looks like the own; it ends, and nothing is claimed."""
    world = World(monkeypatch, [], busy=1)

    assert search(range(7000, 7003)) == []
    assert len(world.asked) == 1 + MOST_LOOKS + 2


def test_ports_that_answer_no_more_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a reset tells anything."""
    World(monkeypatch, OWN, busy=0).silent = {7001}

    assert search(OWN) == [range(7000, 7001), range(7002, 7004)]


def test_the_rate_of_the_run_holds_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connect is a probe."""
    world = World(monkeypatch, [], busy=0)

    assert search(range(100, 130), per_s=1000) == []
    assert max(map(len, world.asked)) < 30
    assert sum(map(len, world.asked)) == 30


@pytest.mark.parametrize("failing", ["connect_to", "count_loopback_packets"])
def test_without_descriptors_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The answer comes nevertheless."""

    def fail(*_: object) -> Callable[[], None]:
        raise OSError(24, "Too many open files")

    World(monkeypatch, OWN, busy=0)
    monkeypatch.setattr(own_resets, failing, fail)

    assert search(OWN) == []


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_real_resets_of_this_host(address: str) -> None:
    """What is on loopback is counted there; a port that accepts is no reset."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as open_, socket.socket(family) as closed:
        open_.bind((address, 0))
        closed.bind((address, 0))
        open_.listen()
        ports = [open_.getsockname()[1], closed.getsockname()[1]]
        look = connect_to(target_of(address, None), ports)

    assert look.reset == {ports[1]}
    assert look.counted >= 2
    assert count_loopback_packets() > 0

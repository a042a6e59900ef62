"""Back ends that fail on purpose: what is measured, and when it is over. Time is jumped over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from netprobe.errors import AgentError
from netprobe.model.balanced import Removal
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.probe.rehearsals.dials import BalancerDial, Dialling, DiallingSource
from netprobe.probe.rehearsals.failing import FailingBackEnds, RemovalWatch, count_enough
from netprobe.protocols.services.tls import Hello

ENDS_S = 95.0
NEVER = 1e9


class ToyBalancer:
    """Hands on by chance; what fails is out ``fall_s`` later, and what is well is in ``rise_s``
    later. ``sticks``: each source has one back end."""

    def __init__(self, names: Sequence[str], fall_s: float, rise_s: float, sticks: bool) -> None:
        self.names, self.fall_s, self.rise_s, self.sticks = names, fall_s, rise_s, sticks
        self.failed_at: dict[str, float] = {}
        self.healed_at: dict[str, float] = {}
        self.went: dict[int, str] = {}
        self.ended: list[str] = []
        self._chance = random.Random(0)

    def is_in(self, name: str) -> bool:
        now = asyncio.get_running_loop().time()
        if name not in self.failed_at:
            return True
        out_at, healed_at = self.failed_at[name] + self.fall_s, self.healed_at.get(name, NEVER)
        if now < out_at or healed_at < out_at:
            return True
        return now >= healed_at + self.rise_s

    def choose(self, source: str) -> str:
        usable = [name for name in self.names if self.is_in(name)]
        if not usable:
            return ""
        if self.sticks:
            return usable[int(source) % len(usable)]
        return self._chance.choice(usable)


class ToyBackEnd:
    """Fails and is well again. ``is_closing``: then it answers nothing."""

    def __init__(self, name: str, balancer: ToyBalancer, is_closing: bool) -> None:
        self.name, self.balancer, self.is_closing = name, balancer, is_closing
        self.is_shut = False

    async def fail(self) -> None:
        self.balancer.ended.append(self.name)
        self.balancer.failed_at[self.name] = asyncio.get_running_loop().time()
        self.balancer.healed_at.pop(self.name, None)
        self.is_shut = self.is_closing

    async def heal(self) -> None:
        self.balancer.healed_at[self.name] = asyncio.get_running_loop().time()
        self.is_shut = False


class ToyDialling(Dialling):
    """Dials the toy; a dial takes 0.05 s."""

    def __init__(self, balancer: ToyBalancer, hosts: dict[str, ToyBackEnd], count: int) -> None:
        nothing: Any = None
        sources = [DiallingSource(str(one), nothing, nothing) for one in range(count)]
        names = tuple(balancer.names)
        super().__init__(
            sources,
            Hello(None, ()),
            names,
            str,
            lambda dial: balancer.went.get(dial.number),
        )
        self.pool = dict.fromkeys(names, 0.0)
        # What was lost before a server was up says nothing of a source.
        for at, source in enumerate(sources):
            source.dials.append(BalancerDial(-1 - at, asyncio.get_running_loop().time()))
        self._balancer, self._hosts, self._made = balancer, hosts, 0

    async def dial(self, source: DiallingSource) -> BalancerDial:
        self._made += 1
        dial = BalancerDial(self._made, asyncio.get_running_loop().time())
        name = self._balancer.choose(source.name)
        await asyncio.sleep(0.05)
        if name and not self._hosts[name].is_shut:
            self._balancer.went[dial.number] = name
        return dial


def fail_all(
    count: int, fall_s: float, rise_s: float, *, closing: bool = False, sticks: bool = False
) -> tuple[list[Removal], list[str], float]:
    """What was measured, who failed, and how long it took."""

    async def run() -> tuple[list[Removal], list[str], float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        balancer = ToyBalancer([f"cp{at}" for at in range(count)], fall_s, rise_s, sticks)
        hosts = {name: ToyBackEnd(name, balancer, closing) for name in balancer.names}
        dialling = ToyDialling(balancer, hosts, count)
        played: Any = hosts
        failing = FailingBackEnds(dialling, played, began + ENDS_S, loop.time, not sticks)
        await failing.run()
        return failing.removals, balancer.ended, loop.time() - began

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(run())


def test_each_is_out_and_comes_again() -> None:
    """One after the other, and the times are the balancer's own; also of ports that close."""
    for closing in (False, True):
        removals, ended, _ = fail_all(3, 4.0, 2.0, closing=closing)
        assert [one.back_end for one in removals] == ended == ["cp0", "cp1", "cp2"]
        for one in removals:
            assert one.is_out
            assert 3_000 <= one.kept_ms <= 4_000
            assert one.back_ms is not None
            assert 2_000 <= one.back_ms <= 3_000


def test_one_that_is_never_out() -> None:
    """It is watched for 45 s, and gets connections to the end; there is time for a second."""
    removals, ended, _ = fail_all(3, NEVER, 2.0)
    assert ended[:2] == ["cp0", "cp1"]
    assert {one.is_out for one in removals} == {False}
    assert removals[0].kept_ms >= 45_000
    assert removals[1].kept_ms > 40_000


def test_one_that_is_out_just_before() -> None:
    """What got its last connection before 45 s is slow, although that is known only later."""
    removals, _, _ = fail_all(3, 44.8, 2.0)
    assert removals[0].is_out
    assert 43_000 <= removals[0].kept_ms < 45_000


def test_it_ends_in_time() -> None:
    """However many back ends there are, and however slow: no more than 100 s; and none fails that
    cannot be out by the end, as those before it show."""
    for fall_s, rise_s in ((30.0, 30.0), (4.0, 20.0), (4.0, 2.0), (NEVER, NEVER)):
        removals, ended, took_s = fail_all(10, fall_s, rise_s)
        assert removals
        assert took_s <= 100
        assert len(ended) <= 10
    assert len(fail_all(10, 30.0, 20.0)[1]) == 2
    assert len(fail_all(10, 4.0, 2.0)[1]) > 8


def test_one_that_never_comes_again() -> None:
    """That is known after 45 s."""
    removals, _, _ = fail_all(3, 4.0, NEVER)
    assert removals[0].is_out
    assert (removals[0].back_ms, removals[0].back_watched_s) == (None, 45)


def test_clients_that_stick() -> None:
    """They move when a back end is out; that they do not come again says nothing."""
    removals, _, _ = fail_all(3, 4.0, 2.0, sticks=True)
    assert all(one.is_out for one in removals)
    assert {(one.back_ms, one.back_watched_s) for one in removals} == {(None, 0)}


def test_a_closed_port_without_another_back_end_shows_nothing() -> None:
    """All connections are lost then, whether the balancer took it out or not."""
    assert fail_all(1, 4.0, 2.0, closing=True)[:2] == ([], [])
    removals, ended, _ = fail_all(1, 4.0, 2.0)
    assert ended == ["cp0"]
    assert not removals[0].is_out
    assert removals[0].kept_ms < 30_000
    # The first one never comes again, so that the second one is alone.
    removals, ended, _ = fail_all(2, 4.0, NEVER, closing=True)
    assert ended == ["cp0"]
    assert removals[0].is_out


def test_a_small_share_needs_more_dials() -> None:
    """A back end of little weight is not out because connections went elsewhere as before."""
    nothing: Any = None
    source = DiallingSource("client", nothing, nothing)
    source.reached_since = {"a": 50, "b": 50, "c": 1}
    assert count_enough("c", [source], 36) == 12 * 101
    assert count_enough("a", [source], 36) == 36


async def test_httpx_is_there_before_the_first_dial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which a dial began counts: no import may come between it and the connection."""
    done: list[str] = []

    class NotedDialling(Dialling):
        async def dial(self, source: DiallingSource) -> BalancerDial:
            done.append("dialled")
            raise AgentError("agent-lost", source.name)

    async def load() -> None:
        done.append("loaded")

    monkeypatch.setattr("netprobe.probe.rehearsals.dials.load_http", load)
    nothing: Any = None
    sources = [DiallingSource("client", nothing, nothing)]
    await NotedDialling(sources, Hello(None, ()), ("a",), str, lambda _: None).run()

    assert done == ["loaded", "dialled"]


def test_what_is_lost_went_nowhere() -> None:
    """A balancer that answers nobody has taken nothing out."""
    nothing: Any = None
    source = DiallingSource("client", nothing, nothing)
    dialling = Dialling([source], Hello(None, ()), ("a", "b"), str, lambda _: None)
    watch = RemovalWatch("a", dialling, False, 0.0, 3)
    for at in range(10):
        watch.note(source, BalancerDial(at, float(at)))
    assert not watch.is_out
    for at in range(3):
        watch.note(source, BalancerDial(at, 20.0 + at, heard=True))
    assert watch.is_out

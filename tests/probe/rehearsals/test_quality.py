"""Samples that met a pause of the other end are taken once more; what is left of it is told."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.quality_messages import SampleOrder, SamplesTaken
from netprobe.model.quality import SampledBy, WaySamples
from netprobe.probe.rehearsals.quality import QualityRehearsal, SampledWay
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, RowArrivals, Stage
from netprobe.protocols import protocol_for
from tests.probe.builders import SOURCE, TARGET, make_scene, make_want
from tests.probe.fakes import FakeAgent

GOOD, SLOW = [1_000] * 20, [900_000] * 20
# For how many seconds it stood still during a measurement, and in pauses of a second or more.
Stood = tuple[float, float]
STEADY: Stood = (0.0, 0.0)


class PausedAgent(FakeAgent):
    """Stood still during the measurements of a source, in turn."""

    def __init__(self, source: FakeAgent, *pauses: Stood) -> None:
        super().__init__(TARGET)
        self._source, self._pauses = source, pauses

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        assert look_s == math.inf
        number = len(self._source.orders(SampleOrder))
        return self._pauses[number - 1][1 if least_s else 0]


class Rehearsed:
    """What a source finds that measures so, and how often it did."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, by: SampledBy, *taken: tuple[list[int], Stood]
    ) -> None:
        left = iter(taken)

        def sample(order: SampleOrder) -> SamplesTaken:
            rtts_us, _ = next(left)
            return SamplesTaken(order.id, rtts_us, order.samples - len(rtts_us), None)

        @contextlib.asynccontextmanager
        async def open_listener(_stage: Stage) -> AsyncIterator[SampledWay]:
            yield SampledWay(by, protocol_for(None))

        monkeypatch.setattr("netprobe.probe.rehearsals.quality.open_listener", open_listener)
        self.source = FakeAgent(SOURCE, {SampleOrder: sample})
        self.target = PausedAgent(self.source, *(stood for _, stood in taken))

    async def play(self) -> Played:
        fleet = make_scene(self.source, self.target).fleet
        flow = make_want("tcp").flow
        flow = replace(flow, block=replace(flow.block, samples=20))
        stage = Stage(flow, flow.address.text, 443, None, fleet, RowArrivals())
        (played,) = await QualityRehearsal().play_together([stage])
        return played

    @property
    def count(self) -> int:
        return len(self.source.orders(SampleOrder))


async def test_a_measurement_without_a_pause_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it shows."""
    seen = Rehearsed(monkeypatch, "udp", (SLOW, STEADY))
    assert await seen.play() == WaySamples("udp", tuple(SLOW), 0)
    assert seen.count == 1


async def test_one_with_a_pause_is_repeated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repeat counts; where it met a pause, too, it tells how many samples that spoilt."""
    seen = Rehearsed(monkeypatch, "udp", (SLOW, (0.5, 0.0)), (GOOD, STEADY))
    assert await seen.play() == WaySamples("udp", tuple(GOOD), 0)
    seen = Rehearsed(monkeypatch, "udp", (SLOW, (0.5, 0.0)), (SLOW, (1.3, 1.0)))
    assert await seen.play() == WaySamples("udp", tuple(SLOW), 0, late=65, missed=50)
    assert seen.count == 2


@pytest.mark.parametrize("by", ["tcp", "icmp"])
async def test_a_kernel_answers_while_an_agent_waits(
    monkeypatch: pytest.MonkeyPatch, by: SampledBy
) -> None:
    """Only what holds a machine up for a second spoils its answers."""
    seen = Rehearsed(monkeypatch, by, (SLOW, (3.0, 0.0)))
    assert await seen.play() == WaySamples(by, tuple(SLOW), 0)
    seen = Rehearsed(monkeypatch, by, (SLOW, (3.0, 2.0)), (SLOW, (3.0, 1.0)))
    assert await seen.play() == WaySamples(by, tuple(SLOW), 0, late=50, missed=50)


async def test_where_nothing_could_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stood still all the time answers nothing: nobody knows how good the way is."""
    seen = Rehearsed(monkeypatch, "udp", ([], (9.0, 9.0)), ([], (9.0, 9.0)))
    played = await seen.play()
    assert isinstance(played, NotPlayedError)
    assert (played.reason, str(played)) == ("machine-busy", "b stood still while it was measured")
    seen = Rehearsed(monkeypatch, "udp", ([], STEADY))
    played = await seen.play()
    assert isinstance(played, NotPlayedError)
    assert played.reason == "no-samples"


async def test_a_source_that_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it could not measure is neither loss nor slow."""
    seen = Rehearsed(monkeypatch, "udp", (GOOD, STEADY))
    seen.source.scripts[SampleOrder] = lambda order: SamplesTaken(order.id, SLOW, 0, "stood-still")
    played = await seen.play()
    assert isinstance(played, NotPlayedError)
    assert (played.reason, str(played)) == ("machine-busy", "a stood still while it was measured")


async def test_a_right_that_is_lacking_is_said_whoever_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why the source could not ask is known; the other end's pauses explain nothing then."""
    seen = Rehearsed(monkeypatch, "icmp", ([], (9.0, 9.0)), ([], (9.0, 9.0)))
    seen.source.scripts[SampleOrder] = lambda order: SamplesTaken(order.id, [], 20, "no-permission")
    played = await seen.play()
    assert isinstance(played, NotPlayedError)
    assert played.reason == "no-permission"

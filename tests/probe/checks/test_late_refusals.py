"""Which silence is asked again after a pause, and what becomes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from netprobe.model.evidence import Icmp, Outcome, Witness
from netprobe.probe.checks import late_refusals
from netprobe.probe.checks.late_refusals import LateRefusals
from netprobe.probe.flows.prober import Sighting
from tests.probe.checks.test_captures import silent

PROHIBITED = Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.9.1", "router"))
SILENT = silent("tcp", None, "unknown")


class Source:
    """An agent that is quiet at once, and how many flows it may still ask late."""

    def __init__(self, left: int) -> None:
        self.late_left = left
        self.unhurried = asyncio.Lock()

    async def quiet(self) -> None:
        """Nothing is out."""


class Later:
    """A fleet and a prober whose second look gives this."""

    def __init__(self, outcome: Outcome, left: int = 6) -> None:
        self._outcome = outcome
        self._source = Source(left)
        self.asked = 0

    def agent(self, _host: Any) -> Source:
        return self._source

    async def again(self, sighting: Sighting) -> list[Sighting]:
        self.asked += 1
        return [replace(sighting, outcome=self._outcome)]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_refusals, "PAUSE_S", 0)


def with_outcome(outcome: Outcome) -> Sighting:
    return replace(SILENT, outcome=outcome)


async def check(later: Later, *sightings: Sighting) -> list[Outcome | None]:
    refusals = LateRefusals(later, later)  # type: ignore[arg-type]  # what it uses of both
    return [one.outcome for one in await refusals.check(list(sightings))]


async def test_a_refusal_that_came_late_is_one() -> None:
    """The looks of both are counted."""
    later = Later(PROHIBITED)

    refused, late = await check(later, with_outcome(PROHIBITED), SILENT)

    assert refused == PROHIBITED
    assert late == replace(PROHIBITED, attempts=2)


async def test_what_stays_silent_stays_as_it_was() -> None:
    """A firewall may drop one port and reject another."""
    assert await check(Later(SILENT.outcome or PROHIBITED), with_outcome(PROHIBITED), SILENT) == [
        PROHIBITED,
        SILENT.outcome,
    ]


@pytest.mark.parametrize(
    "other",
    [
        SILENT.outcome,
        Outcome("connect", None, answer="nonce"),
        # A closed UDP port, a dead host, the own firewall: nobody on the way refuses the address.
        Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination")),
        Outcome("connect", "host-unreachable", Icmp(3, 1, "10.0.9.1", "router"), elapsed_ms=3100),
        Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.0.1", "source")),
    ],
)
async def test_without_a_refusal_nothing_is_asked(other: Outcome) -> None:
    """Most silence is a drop, and waiting for it would only take time."""
    later = Later(PROHIBITED)

    await check(later, with_outcome(other), SILENT)

    assert later.asked == 0


async def test_ranges_arrivals_and_too_many_are_left_alone() -> None:
    """A range would empty the bucket again; what arrived was not refused on the way."""
    later = Later(PROHIBITED, left=0)
    many = replace(SILENT, ports=((53, 60),))
    arrived = replace(SILENT, witness=Witness(socket=True))

    await check(later, with_outcome(PROHIBITED), many, arrived, SILENT)

    assert later.asked == 0

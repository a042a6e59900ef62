"""Silence behind an edge that shows itself: it answers other names, or gives up while we wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from netprobe.konnectivity.findings import Log, diagnosis
from netprobe.konnectivity.further import fraction
from netprobe.konnectivity.hellos import LATE_S, look_at_hellos
from netprobe.konnectivity.identity import CONTROL_NAME
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import DEFAULT_REPEAT, Tunnel
from netprobe.model.konnectivity import Diagnosis, Event
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_talk import Attempt
from tests.konnectivity.test_unheard import SilentPipe

NAME = "k.lab.test"
ALERT = bytes((21, 3, 3, 0, 2, 2, 112))  # unrecognized_name


class EdgePipe(SilentPipe):
    """A connection to an edge, which may answer a hello at once, or close after a time."""

    def __init__(self, answer: Callable[[bytes], Event | None], closes_s: float | None) -> None:
        super().__init__()
        self._answer, self._closes_s = answer, closes_s
        self._event: Event | None = None

    async def send(self, data: bytes) -> None:
        """Choose the answer by the name in the hello."""
        self._event = self._answer(data)

    async def receive(self, limit_s: float) -> Event:
        """Give the answer, or the close when its time has come, or wait in vain."""
        if self._event is not None:
            return self._event
        left_s = None if self._closes_s is None else self._closes_s - self._silent_ms / 1000
        if left_s is None or left_s > limit_s:
            return await super().receive(limit_s)
        await asyncio.sleep(left_s)
        assert self._closes_s is not None
        return Event("fin", b"", self._closes_s * 1000, self._closes_s * 1000)


class Edge:
    """An agent whose connections all lead to this edge."""

    skew_s = 0.0

    def __init__(
        self,
        answer: Callable[[bytes], Event | None] = lambda _: None,
        closes_s: float | None = None,
    ) -> None:
        self._answer, self._closes_s = answer, closes_s

    @asynccontextmanager
    async def open_stream(self, _target: Any) -> AsyncIterator[EdgePipe]:
        """Open one more."""
        yield EdgePipe(self._answer, self._closes_s)


def other_name_gets(event: Event) -> Callable[[bytes], Event | None]:
    """Answer a hello with another name than the tunnel's."""
    return lambda hello: event if CONTROL_NAME.encode() in hello else None


def look(edge: Edge, hold_s: float = 0.0) -> Diagnosis:
    """Give the verdict about the ClientHello."""

    async def conclude() -> Diagnosis:
        tunnel = Tunnel(NAME, 443, "route", sni=NAME, hold_s=hold_s)
        log = Log()
        found = await look_at_hellos(Reach(cast(Any, edge), tunnel, "127.0.0.1", 443), log)
        assert not isinstance(found, tuple)
        return diagnosis("w", "direct", log, found)

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(conclude())


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Event("data", ALERT, 1.0, 1.0), "is answered"),
        (Event("fin", b"", 1.0, 1.0), "gets an end at once"),
        (Event("reset", b"", 1.0, 1.0), "gets a reset at once"),
    ],
)
def test_an_edge_that_answers_other_names_has_a_back_end_that_hangs(
    event: Event, says: str
) -> None:
    """What answers is the edge, and what does not is behind it."""
    found = look(Edge(other_name_gets(event)))
    assert found.code == "EDGE_BACKEND_TIMEOUT", found.because
    assert f"another server name {says} at the same address: the name decides" in found.because
    assert found.title == (
        f"127.0.0.1:443 answers for other names, and never for {NAME}: its back end does not answer"
    )
    # No certificate came, so a path that loses large packets looks alike.
    assert found.where == "path or load balancer"
    assert not any("--hold" in text for text in found.open)


def test_an_edge_that_gives_up_while_we_wait_is_seen_by_one_try() -> None:
    """The further tries begin later, so the close of the first is all that comes in time."""
    found = look(Edge(closes_s=8.4))
    assert found.code == "EDGE_BACKEND_TIMEOUT", found.because
    assert "gives up after 8 s" in found.title


def test_silence_for_every_name_shows_no_edge() -> None:
    """Server and balancer look alike then, and both are named."""
    found = look(Edge())
    assert (found.code, found.where) == ("SERVER_SILENT", "load balancer or server")
    assert "another server name fares no better" in found.because
    assert (
        f"whether a balancer in front gives up on its back end: --hold {LATE_S} waits for it"
        in (found.open)
    )


def test_who_gave_a_hold_is_not_asked_for_one() -> None:
    """A longer one than was given might see more, and the report says how long this one was."""
    found = look(Edge(), hold_s=20.0)
    assert found.code == "SERVER_SILENT"
    assert "whether a balancer in front gives up on its back end after more than 20 s" in found.open
    assert not any("--hold" in text for text in found.open)


@pytest.mark.parametrize(("repeat", "asks"), [(DEFAULT_REPEAT, True), (30, False)])
def test_who_gave_repeat_is_not_asked_for_it(repeat: int, asks: bool) -> None:
    """One failure of many may be chance: more tries tell, whoever asks for them."""

    async def conclude() -> Diagnosis:
        tunnel = Tunnel(NAME, 443, "route", sni=NAME, repeat=repeat)
        reach, log = Reach(cast(Any, Edge()), tunnel, "127.0.0.1", 443), Log()
        good, bad = (Attempt(Hello(NAME), SeenHandshake(), first) for first in ("bytes", "fin"))
        return diagnosis("w", "direct", log, fraction(reach, log, (good, good, bad), ()))

    found = asyncio.run(conclude())
    assert found.code == "UNSTEADY"
    assert found.remedy.startswith("run again with ")
    assert ("--repeat 30" in found.remedy) == asks

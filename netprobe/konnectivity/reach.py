"""Tries: one connection each from a worker to the server, through its proxy where it has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.konnectivity.request import DEFAULT_REPEAT, Tunnel
from netprobe.konnectivity.symptoms import HelloSymptom, hello_symptom
from netprobe.model.konnectivity import OpenedPipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.protocols.base import format_place
from netprobe.protocols.services.connect import connect
from netprobe.protocols.services.proxy_url import ProxyUrl
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_talk import Attempt, Patience, TlsTalk
from netprobe.vantage.stream import CONNECT_S, Target

# Every path has it: 576 bytes is the least that IPv4 hosts must take, 1,280 that of IPv6.
LEAST_MSS = 536
# Further tries begin while the first is still silent: all together cost the time of one. Two would
# agree too often where a balancer has one dead back end of two.
SECOND_AFTER_S = 1.5
FURTHER_TRIES = 4
SEGMENTED_AFTER_S = 5.0
SEGMENTED = Patience(4.0, 4.0, 4.0)
# What has said nothing so long after the first packet is silent. A balancer may give up on a dead
# back end after 15 s to 30 s: who wants to see that holds (``--hold``).
SETTLED_S = 9.0
# The least that is waited for an answer whose question came late.
LEAST_WAIT_S = 4.0
# Tries that are made where two do not agree; enough that one dead back end of four shows twice.
UNSTEADY_TRIES = 10
INSISTING_TRIES = 3
# Two tries of one balancer are given up after the same time but for this.
SAME_TIME_MS = 500.0

# Failures that small segments may change. A reset or a close does not depend on packet sizes.
SILENT = ("lost", "gap", "mute")

T = TypeVar("T")
Then = Callable[[TlsTalk], Awaitable[None]]


class Reach(Struct, frozen=True):
    """One way from one worker: ``address`` and ``port`` are what TCP dials, a proxy's included.

    ``begun_s``: by the loop's clock; all
    waits for silence end together. ``doubted``: a connection showed a sign of lost packets.
    """

    agent: AgentMethods
    tunnel: Tunnel
    address: str
    port: int
    proxy: ProxyUrl | None = None
    source: str | None = None
    begun_s: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    doubted: asyncio.Event = field(default_factory=asyncio.Event)

    def patience(self) -> Patience:
        """Tell how long a try that begins now may wait for an answer."""
        gone_s = asyncio.get_running_loop().time() - self.begun_s
        left_s = max(LEAST_WAIT_S, max(SETTLED_S, self.tunnel.hold_s) - gone_s)
        return Patience(silent_s=left_s)

    def watch(self, tcp: Mapping[str, int]) -> None:
        """Take the kernel's numbers of a connection: what was sent again may have been lost."""
        if tcp.get("total_retrans"):
            self.doubted.set()

    @property
    def hello(self) -> Hello:
        """A small hello, of about 517 bytes: one segment."""
        return Hello(self.tunnel.sni)

    @property
    def again(self) -> str:
        """The advice to try more often; ``--repeat`` is asked for where it was not given."""
        given = self.tunnel.repeat != DEFAULT_REPEAT
        return "run again with more tries" if given else "run again with --repeat 30"

    @property
    def to(self) -> str:
        """Where it leads, for sentences."""
        end = format_place(self.address, self.port)
        if self.proxy is None:
            return end
        return f"{format_place(self.tunnel.host, self.tunnel.port)} through {end}"

    @property
    def header_bytes(self) -> int:
        """IP and TCP header without options: a segment's packet is so much larger than the MSS."""
        return 60 if ":" in self.address else 40

    def where(self) -> dict[str, Any]:
        """Give the words that every evidence has."""
        tunnel = self.tunnel
        return {
            "address": self.address,
            "port": self.port,
            "to": self.to,
            "host": tunnel.host,
            "sni": tunnel.sni or tunnel.host,
            "server": format_place(tunnel.host, tunnel.port),
        }

    def target(self, mss: int | None = None, timeout_s: float = CONNECT_S) -> Target:
        """Tell what the agent is to dial."""
        return Target(self.address, self.port, self.source, mss, timeout_s)


class Tries(Struct, frozen=True):
    """Tries of one hello. ``symptom`` None: they do not agree. ``segmented`` are those with small
    segments, made only where silence needs them."""

    tries: tuple[Attempt, ...]
    symptom: HelloSymptom | None
    segmented: tuple[Attempt, ...] = ()
    segmented_symptom: HelloSymptom = "none"

    @property
    def first(self) -> Attempt:
        """A try that stands for all: the first that looks as the verdict says."""
        return next(
            (one for one in self.tries if hello_symptom(one) == self.symptom), self.tries[0]
        )


class Tasks:
    """Begins tasks; none is left at the end, however that comes."""

    def __init__(self) -> None:
        self._begun: list[asyncio.Task[Any]] = []

    def begin(self, one: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task."""
        task = asyncio.create_task(one)
        self._begun.append(task)
        return task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._begun:
            one.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)


@asynccontextmanager
async def open_tunnel(
    reach: Reach, mss: int | None = None, timeout_s: float = CONNECT_S
) -> AsyncIterator[tuple[OpenedPipe, str | None]]:
    """Open a connection to the server, through the proxy if there is one; or why there is none."""
    async with reach.agent.open_stream(reach.target(mss, timeout_s)) as stream:
        failure = stream.opened.failure
        reach.watch(stream.opened.tcp)
        if failure == "no-answer":
            # It opened before: the stage of TCP saw that.
            reach.doubted.set()
        if failure is None and reach.proxy is not None:
            answer = await connect(stream, reach.tunnel.host, reach.tunnel.port, reach.proxy)
            if answer.status is None or not 200 <= answer.status < 300:
                failure = f"proxy-{answer.status or answer.ended}"
        yield stream, failure


async def attempt(
    reach: Reach,
    hello: Hello,
    patience: Patience,
    mss: int | None = None,
    then: Then | None = None,
    *,
    words: bool = True,
) -> Attempt:
    """One connection and one ClientHello; ``then`` goes on where the handshake is done.

    ``words``: wait for what the server says after the handshake.
    """
    async with open_tunnel(reach, mss) as (stream, failure):
        if failure is not None:
            return Attempt(hello, SeenHandshake(), first="failed", failure=failure)
        talk = TlsTalk(stream, hello)
        await talk.shake(replace(patience, watch=reach.watch), words)
        reach.watch(talk.attempt.tcp)
        if then is not None and talk.usable:
            await then(talk)
        return talk.attempt


async def look(reach: Reach, hello: Hello) -> Tries:
    """Try a hello: once where it is answered, else five times, and see whether they agree.

    Silence is asked a second question meanwhile: whether small segments get an answer.
    """
    enough = asyncio.Event()
    patience = replace(reach.patience(), enough=enough.is_set)
    early: tuple[Attempt, ...] = ()
    async with Tasks() as tasks:
        tries = tasks.begin(_try_until_agreed(reach, hello, patience))
        await asyncio.wait({tries}, timeout=SEGMENTED_AFTER_S)
        if not tries.done():
            early = await repeat(reach, hello, 2, SEGMENTED, LEAST_MSS)
            if agree(early) == "answered":
                enough.set()
        found = await tries
    symptom = agree(found)
    asked = symptom in SILENT or (hello.padding > 0 and symptom not in ("answered", "unopened"))
    if symptom is None or not asked:
        return Tries(found, symptom)
    segmented = early or await repeat(reach, hello, 2, SEGMENTED, LEAST_MSS)
    return Tries(found, symptom, segmented, agree(segmented) or "unopened")


async def repeat(
    reach: Reach, hello: Hello, count: int, patience: Patience, mss: int | None = None
) -> tuple[Attempt, ...]:
    """So many tries at once."""
    tries = (attempt(reach, hello, patience, mss) for _ in range(count))
    return tuple(await asyncio.gather(*tries))


async def try_often(
    reach: Reach, hello: Hello, count: int, is_good: Callable[[Attempt], bool]
) -> tuple[Attempt, ...]:
    """So many tries at once; where one fails or is late, at once so many more that a fraction can
    be told."""
    patience = reach.patience()
    async with Tasks() as tasks:
        tries = [tasks.begin(attempt(reach, hello, patience)) for _ in range(count)]
        await asyncio.wait(tries, timeout=SECOND_AFTER_S)
        if not all(one.done() and is_good(one.result()) for one in tries):
            later = patience.less(SECOND_AFTER_S)
            tries += [tasks.begin(attempt(reach, hello, later)) for _ in range(UNSTEADY_TRIES)]
        return tuple(await asyncio.gather(*tries))


async def insist(
    reach: Reach, hello: Hello, then: Then | None = None, *, words: bool = True
) -> Attempt:
    """Ask what has been answered before: one of several back ends may be silent. Gives the first
    try that is answered, or the last."""
    for _ in range(INSISTING_TRIES):
        tried = await attempt(reach, hello, SEGMENTED, None, then, words=words)
        if hello_symptom(tried) == "answered":
            break
    return tried


async def _try_until_agreed(reach: Reach, hello: Hello, patience: Patience) -> tuple[Attempt, ...]:
    """Try once, or five times where that is not answered, or 15 times where those do not agree."""
    async with Tasks() as tasks:
        tries = [tasks.begin(attempt(reach, hello, patience))]
        await asyncio.wait(tries, timeout=SECOND_AFTER_S)
        if _is_answered(tries[0]):
            return (tries[0].result(),)
        later = patience.less(SECOND_AFTER_S)
        tries += [tasks.begin(attempt(reach, hello, later)) for _ in range(FURTHER_TRIES)]
        await asyncio.wait(tries, timeout=SECOND_AFTER_S)
        if any(map(_is_answered, tries)):
            later = later.less(SECOND_AFTER_S)
            tries += [tasks.begin(attempt(reach, hello, later)) for _ in range(UNSTEADY_TRIES)]
        return tuple(await asyncio.gather(*tries))


def _is_answered(one: asyncio.Task[Attempt]) -> bool:
    return one.done() and hello_symptom(one.result()) == "answered"


def agree(tries: Sequence[Attempt]) -> HelloSymptom | None:
    """Give the symptom of all tries, or of most if none was answered; None if they do not agree.

    Silence agrees with a late close that came after a longer time than the silence was watched.
    """
    symptoms = [hello_symptom(one) for one in tries]
    if set(symptoms) == {"late", "mute"} and _is_cut_short(tries):
        return "late"
    most = max(symptoms, key=symptoms.count)
    if symptoms.count(most) == len(symptoms):
        return most
    return most if "answered" not in symptoms and symptoms.count(most) * 2 > len(symptoms) else None


def _is_cut_short(tries: Sequence[Attempt]) -> bool:
    """Whether no silent try was watched longer than the late ones took to be closed."""
    times = {
        symptom: [one.first_ms for one in tries if hello_symptom(one) == symptom]
        for symptom in ("late", "mute")
    }
    return max(times["mute"]) < min(times["late"]) + SAME_TIME_MS

"""Tries: one connection each from a worker to the server, through its proxy where it has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from netprobe.konnectivity.request import Tunnel
from netprobe.konnectivity.symptoms import HelloSymptom, hello_symptom
from netprobe.model.stream import OpenedPipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.protocols.connect import connect
from netprobe.protocols.proxy_url import ProxyUrl
from netprobe.protocols.tls import Hello, SeenHandshake
from netprobe.protocols.tls_talk import Attempt, Patience, TlsTalk
from netprobe.vantage.stream import Target

# Every path has it: 576 bytes is the least that IPv4 hosts must take, 1,280 that of IPv6.
LEAST_MSS = 536
# Further tries begin while the first is still silent: all together cost the time of one. Two would
# agree too often where a balancer has one dead back end of two.
SECOND_AFTER_S = 1.5
FURTHER_TRIES = 4
SEGMENTED_AFTER_S = 5.0
SEGMENTED = Patience(4.0, 4.0, 4.0)

# Failures that small segments may change. A reset or a close does not depend on packet sizes.
SILENT = ("lost", "gap", "mute")

Then = Callable[[TlsTalk], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reach:
    """One way from one worker: ``address`` and ``port`` are what TCP dials, a proxy's included."""

    agent: AgentMethods
    tunnel: Tunnel
    address: str
    port: int
    proxy: ProxyUrl | None = None
    source: str | None = None

    @property
    def to(self) -> str:
        """Where it leads, for sentences."""
        end = place(self.address, self.port)
        if self.proxy is None:
            return end
        return f"{place(self.tunnel.host, self.tunnel.port)} through {end}"

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
            "server": place(tunnel.host, tunnel.port),
        }

    def target(self, mss: int | None = None) -> Target:
        """Tell what the agent is to dial."""
        return Target(self.address, self.port, self.source, mss)


@dataclass(frozen=True, slots=True)
class Tries:
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


def place(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def source_for(sources: tuple[str, ...], address: str) -> str | None:
    """Give the source address of the same family, if the host has one."""
    return next((each for each in sources if (":" in each) == (":" in address)), None)


@asynccontextmanager
async def open_tunnel(
    reach: Reach, mss: int | None = None
) -> AsyncIterator[tuple[OpenedPipe, str | None]]:
    """Open a connection to the server, through the proxy if there is one; or why there is none."""
    async with reach.agent.open_stream(reach.target(mss)) as stream:
        failure = stream.opened.failure
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
        await talk.shake(patience, words)
        if then is not None and talk.usable:
            await then(talk)
        return talk.attempt


async def look(reach: Reach, hello: Hello) -> Tries:
    """Try a hello: once where it is answered, else five times, and see whether they agree.

    Silence is asked a second question meanwhile: whether small segments get an answer.
    """
    enough = asyncio.Event()
    patience = replace(Patience(), enough=enough.is_set)
    tries = asyncio.create_task(_try_until_agreed(reach, hello, patience))
    early: tuple[Attempt, ...] = ()
    try:
        await asyncio.wait({tries}, timeout=SEGMENTED_AFTER_S)
        if not tries.done():
            early = await repeat(reach, hello, 2, SEGMENTED, LEAST_MSS)
            if agree(early) == "answered":
                enough.set()
        found = await tries
    finally:
        tries.cancel()
    symptom = agree(found)
    asked = symptom in SILENT or (hello.padding > 0 and symptom not in ("answered", "unopened"))
    if symptom is None or not asked:
        return Tries(found, symptom)
    segmented = early or await repeat(reach, hello, 2, SEGMENTED, LEAST_MSS)
    return Tries(found, symptom, segmented, agree(segmented) or "unopened")


async def repeat(
    reach: Reach,
    hello: Hello,
    count: int,
    patience: Patience | None = None,
    mss: int | None = None,
) -> tuple[Attempt, ...]:
    """So many tries at once."""
    tries = (attempt(reach, hello, patience or Patience(), mss) for _ in range(count))
    return tuple(await asyncio.gather(*tries))


async def _try_until_agreed(reach: Reach, hello: Hello, patience: Patience) -> tuple[Attempt, ...]:
    first = asyncio.create_task(attempt(reach, hello, patience))
    try:
        await asyncio.wait({first}, timeout=SECOND_AFTER_S)
        if first.done() and hello_symptom(first.result()) == "answered":
            return (first.result(),)
        more = await repeat(reach, hello, FURTHER_TRIES, patience)
        return (await first, *more)
    finally:
        first.cancel()


def agree(tries: Sequence[Attempt]) -> HelloSymptom | None:
    """Give the symptom of all tries, or of most if none was answered; None if they do not agree."""
    symptoms = [hello_symptom(one) for one in tries]
    most = max(symptoms, key=symptoms.count)
    if symptoms.count(most) == len(symptoms):
        return most
    return most if "answered" not in symptoms and symptoms.count(most) * 2 > len(symptoms) else None

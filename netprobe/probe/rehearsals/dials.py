"""Sources dial a balancer until it is known which back ends stand behind it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.rehearsals.rehearsal import Stage
from netprobe.protocols.services.http_exchange import (
    HttpRequest,
    ReadLimits,
    exchange_http,
    load_http,
)
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_certificates import read_certificate
from netprobe.protocols.services.tls_talk import NO_GREETING_S, Patience, TlsPipe, TlsTalk
from netprobe.vantage.stream import Target

OPEN_S = 2.0
PATIENCE = Patience(2.5, 2.5, 2.5)
LIMITS = ReadLimits(3.0, 5.0)
# A balancer that saw all back ends down waits rise x interval before it sends anything.
LEAST_S, MOST_S = 30.0, 45.0
# Chance reaches each of N back ends in so many times N dials.
DIALS_EACH = 12
# Between dials: at first, and when a source has made as many as chance needs.
PAUSE_S, LONG_PAUSE_S = 0.05, 0.5


@dataclass(slots=True)
class BalancerDial:
    """One dial: when it began, the certificate that was shown (DER), and what else came.

    ``opened``: the connection opened. ``words``: what was seen instead of a back end's answer.
    """

    number: int
    at: float
    opened: bool = False
    certificate: bytes = b""
    heard: bool = False
    words: str = ""


async def dial_once(
    agent: AgentMethods, target: Target, hello: Hello, path: str, dial: BalancerDial
) -> None:
    """Connect, shake hands, and ask for a path, if there is one. Raises AgentError."""
    async with agent.open_stream(target) as stream:
        failure = stream.opened.failure
        if failure is not None:
            dial.words = failure
            return
        dial.opened = True
        talk = TlsTalk(stream, hello, NO_GREETING_S)
        attempt = await talk.shake(PATIENCE, words=False)
        _note_handshake(dial, attempt.seen)
        if not talk.usable:
            dial.words = dial.words or attempt.end or attempt.first
            return
        if not path:
            return
        request = HttpRequest(hello.server_name or target.address, path, tls=True)
        answer = await exchange_http(TlsPipe(talk), request, LIMITS)
        dial.words = f"HTTP {answer.status}" if answer.status is not None else answer.ended or ""


def _note_handshake(dial: BalancerDial, seen: SeenHandshake) -> None:
    if seen.foreign is not None:
        dial.heard, dial.words = True, f"an answer without TLS ({seen.foreign.splitlines()[0]})"
    if seen.chain:
        dial.heard, dial.certificate = True, seen.chain[0]


def name_certificate(der: bytes) -> str:
    """Name whose certificate it is."""
    read = read_certificate(der)
    return (read.common_name or read.subject or "without a name") if read is not None else "?"


@dataclass(slots=True)
class DiallingSource:
    """One source, its dials and the back ends that they reached."""

    name: str
    agent: AgentMethods
    target: Target
    dials: list[BalancerDial] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    # How many of them were made since it is known of each back end that somebody reaches it, how
    # many of these nothing answered, and which back ends the others reached.
    since_known: int = 0
    lost_since: int = 0
    reached_since: dict[str, int] = field(default_factory=dict)
    error: Exception | None = None


def make_sources(stages: Iterable[Stage]) -> list[DiallingSource]:
    """Give the sources of what is played at one address of a balancer, each once."""
    sources = {
        one.flow.source.name: DiallingSource(
            one.flow.source.name,
            one.fleet.agent(one.flow.source),
            Target(one.address, one.port, one.source_address, timeout_s=OPEN_S),
        )
        for one in stages
    }
    return [*sources.values()]


class Dialling:
    """All sources that dial one balancer. ``make_path``: what a dial asks for, by its number;
    ``find``: which back end it reached. ``least_s``: so long a back end may not be there yet."""

    def __init__(
        self, sources: Iterable[DiallingSource], hello: Hello, back_ends: tuple[str, ...],
        make_path: Callable[[int], str], find: Callable[[BalancerDial], str | None],
        least_s: float = LEAST_S,
    ) -> None:  # fmt: skip
        self.sources = list(sources)
        # When the first dial began that reached a back end, from any source.
        self.pool: dict[str, float] = {}
        self.waited_s = 0.0
        self.find = find
        self.enough = DIALS_EACH * len(back_ends)
        self._hello = hello
        self._back_ends = back_ends
        self._make_path = make_path
        self._least_s = least_s
        self._count = 0

    async def run(self) -> None:
        """Dial from all sources side by side, each until it knows enough."""
        await load_http()
        await asyncio.gather(*(self._dial_on(one) for one in self.sources))

    async def _dial_on(self, source: DiallingSource) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            while not self._knows_enough(source, clock() - begun):
                dial = await self.dial(source)
                self.note_dial(source, dial)
                is_long = len(source.dials) >= self.enough
                pause_s = LONG_PAUSE_S if is_long else PAUSE_S
                # Sources in step would each get the same back end of a round robin again and again.
                # Dials that nothing answers all take the same time, and would keep them in step.
                took_s = clock() - dial.at
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5) + random.uniform(0, took_s))
        except Exception as error:
            # That of one source says nothing of the others.
            source.error = error
        self.waited_s = max(self.waited_s, clock() - begun)

    def find_source(self, name: str) -> DiallingSource:
        """Give the source of this name."""
        return next(one for one in self.sources if one.name == name)

    @property
    def usable(self) -> list[DiallingSource]:
        """The sources that still dial."""
        return [one for one in self.sources if one.error is None]

    def is_lost(self, dial: BalancerDial) -> bool:
        """Tell whether nothing answered a dial."""
        return self.find(dial) is None and not dial.heard

    async def dial(self, source: DiallingSource) -> BalancerDial:
        """Dial once. Raises AgentError."""
        self._count += 1
        dial = BalancerDial(self._count, asyncio.get_running_loop().time())
        path = self._make_path(dial.number)
        await dial_once(source.agent, source.target, self._hello, path, dial)
        return dial

    def note_dial(self, source: DiallingSource, dial: BalancerDial) -> None:
        """Note which back end was reached."""
        source.dials.append(dial)
        back_end = self.find(dial)
        is_known = len(self.pool) == len(self._back_ends)
        source.since_known += is_known
        source.lost_since += is_known and self.is_lost(dial)
        if back_end is not None:
            source.reached[back_end] = source.reached.get(back_end, 0) + 1
            since = source.reached_since
            since[back_end] = since.get(back_end, 0) + is_known
            self.pool.setdefault(back_end, dial.at)

    def _knows_enough(self, source: DiallingSource, waited_s: float) -> bool:
        if waited_s >= MOST_S or source.since_known >= self.enough:
            return True
        if len(source.reached) == len(self._back_ends):
            # Few more tell whether some get no answer, and then many tell how many.
            return source.since_known >= DIALS_EACH and not source.lost_since
        return waited_s >= self._least_s and len(source.dials) >= self.enough

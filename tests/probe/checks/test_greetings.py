"""Open ports of which no agent can tell the holder: what they say of themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from netprobe.model.evidence import Listener, Outcome
from netprobe.model.konnectivity import Event
from netprobe.model.notes import GreetingNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.greetings import PORTS_ASKED, Greetings
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.stream import Target
from tests.probe.builders import SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, FakePipe

OPEN = Outcome("connect", None, answer="unasked", rtt_ms=1.0)
BANNER = b"SSH-2.0-OpenSSH_9.2\r\n"
HIDDEN = Listener("live", "a process that the agent may not see on 0.0.0.0")


class Greeter(FakePipe):
    """A stream on which this comes first; afterwards the peer closes it."""

    def __init__(self, *events: Event) -> None:
        super().__init__(lambda _: events[-1])
        self.first = list(events)

    async def receive(self, limit_s: float) -> Event:
        await asyncio.sleep(0)
        return self.first.pop(0) if self.first else Event("fin")


def agent(*events: Event) -> FakeAgent:
    """A source on whose streams this happens."""
    source = FakeAgent(SOURCE)
    source.pipes = lambda _: Greeter(*events)
    return source


def opened(
    ports: Ports = ((22, 22),), listener: Listener | str = "unknown", **more: Any
) -> Observation:
    """Connections that opened; nothing was asked."""
    return make_observation(OPEN, make_task("tcp", ports, **more), listener=listener)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([Event("data", BANNER)], "SSH-2.0-OpenSSH_9.2"),
        # Who is slow to greet answers the ClientHello so.
        ([Event("timeout"), Event("data", BANNER)], "SSH-2.0-OpenSSH_9.2"),
        ([Event("timeout"), Event("data", b"HTTP/1.0 400 Bad request\r\n\r\n")],
         "HTTP/1.0 400 Bad request"),
        ([Event("data", b"\x1b[2J\x00")], "[2J"),
        ([Event("fin")], "it closed the connection"),
        ([Event("timeout"), Event("timeout")], "it said nothing"),
    ],
)  # fmt: skip
async def test_a_port_says_who_it_is(events: list[Event], said: str) -> None:
    """Its banner, or what it answers to a ClientHello, stands beside the outcome."""
    (found,) = await look(Greetings(), make_scene(agent(*events)), opened())

    assert found.outcome == OPEN
    assert found.greeting is not None
    assert said in found.greeting
    assert found.greeting.isprintable()
    assert found.trail[-1].note == GreetingNote(found.greeting)


async def test_a_few_ports_of_a_host_are_asked() -> None:
    """All that sources ask about there together; the row that knows its greeting comes first."""
    source = agent(Event("data", BANNER))
    ssh = opened(((22, 22),), process=("sshd",))

    found = await look(Greetings(), make_scene(source), opened(((1000, 1999),)), ssh)

    asked = [target.port for target in source.asked if isinstance(target, Target)]
    assert sorted(asked) == [22, *range(1000, 999 + PORTS_ASKED)]
    assert [(one.ports, one.greeting is not None) for one in found] == [
        (((22, 22),), True),
        (((1000, 998 + PORTS_ASKED),), True),
        (((999 + PORTS_ASKED, 1999),), False),
    ]


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (opened(listener="lost"), True),
        (opened(listener=HIDDEN, process=("sshd",)), True),
        (opened(listener=HIDDEN), False),
        (opened(listener=Listener("live", "x", processes=("x",)), process=("sshd",)), False),
        (opened(listener="ours"), False),
        (opened(probe="etcd"), False),
        (opened(expect="denied"), False),
    ],
)
async def test_only_a_holder_that_nobody_knows_is_asked(seen: Observation, asked: bool) -> None:
    """Where an agent sees the process, or a service is asked anyway, nothing more is sent."""
    source = agent(Event("data", BANNER))

    await look(Greetings(), make_scene(source), seen)

    assert bool(source.asked) is asked


async def test_where_everything_runs_nobody_is_asked() -> None:
    """With --live an open port is no surprise."""
    source = agent(Event("data", BANNER))

    await look(Greetings(), make_scene(source, settings=ProbeSettings(live=True)), opened())

    assert source.asked == []


class Mute(FakePipe):
    """A stream on which nothing ever comes; ``waited_s`` is how long that was waited for."""

    waited_s = 0.0

    async def receive(self, limit_s: float) -> Event:
        await asyncio.sleep(0)
        self.waited_s += limit_s
        return Event("timeout", since_sent_ms=self.waited_s * 1000)


async def test_only_a_greeting_that_decides_is_waited_for_long() -> None:
    """What a port says that no row knows by its greeting changes no verdict."""
    waited_s = {}
    for process in ((), ("sshd",)):
        source, pipe = FakeAgent(SOURCE), Mute()
        source.pipes = lambda _, pipe=pipe: pipe
        await look(Greetings(), make_scene(source), opened(process=process))
        waited_s[process] = pipe.waited_s

    assert waited_s[()] < 5 < waited_s["sshd",]


@pytest.mark.parametrize(("rtt_ms", "glance_s"), [(1.0, 0.4), (150.0, 0.7), (9000.0, 0.8)])
async def test_a_glance_is_as_long_as_answers_take(rtt_ms: float, glance_s: float) -> None:
    """A tenth of a second for a banner, then a few round trips, and never longer than that."""
    source, pipe = FakeAgent(SOURCE), Mute()
    source.pipes = lambda _: pipe
    scene, seen = make_scene(source), opened()
    answer = Outcome("connect", None, answer="unasked", rtt_ms=rtt_ms)
    scene.prober.answered.note_answer(*seen.task.pair, answer)

    await look(Greetings(), scene, seen)

    assert pipe.waited_s == pytest.approx(glance_s)

"""Services that are asked who they are, once a connection opened."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import CheckConclusion, Outcome, ServiceFinding
from netprobe.model.inventory import Address
from netprobe.model.konnectivity import Event
from netprobe.model.notes import ServiceNote
from netprobe.model.ports import Ports
from netprobe.probe.checks.services import PORTS_ASKED, Services
from netprobe.probe.flows.prober import Observation
from netprobe.vantage.stream import Target
from tests.probe.builders import SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, FakePipe

OPEN = Outcome("connect", None, answer="unasked", rtt_ms=1.0)
HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"


def opened(ports: Ports = ((80, 80),), probe: str = "http-health", **more: Any) -> Observation:
    """Connections that opened; the requirement names a service."""
    return make_observation(OPEN, make_task("tcp", ports, probe=probe, **more), listener="live")


def agent(answers: dict[int, bytes | Event | None]) -> FakeAgent:
    """A source whose streams are answered so, by port; None: there is no second connection."""
    source = FakeAgent(SOURCE)

    def open_pipe(target: Target) -> FakePipe:
        answer = answers[target.port]
        return FakePipe(failure="refused") if answer is None else FakePipe(lambda _: answer)

    source.pipes = open_pipe
    return source


async def test_a_service_that_says_who_it_is_is_one() -> None:
    """What it said stands beside the outcome, and in the trail."""
    source = agent({80: HEALTHY})

    (found,) = await look(Services(), make_scene(source), opened())

    assert found.outcome == OPEN
    assert found.service == ServiceFinding("service", "health probe: 200 ok")
    assert found.trail[-1].note == ServiceNote("service", "health probe: 200 ok")
    assert source.asked == [Target("10.0.0.2", 80, None)]


async def test_ports_are_told_apart_by_what_answers() -> None:
    """Ports with one finding stay together, and the listener stays."""
    source = agent({80: HEALTHY, 81: PAGE, 82: HEALTHY})

    found = await look(Services(), make_scene(source), opened(((80, 82),)))

    answers = [(one.ports, one.service and one.service.told) for one in found]
    assert answers == [(((80, 80), (82, 82)), "service"), (((81, 81),), "other")]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Event("fin"), "closed"),
        (Event("reset"), "reset"),
        (Event("timeout"), "silent"),
        (None, "silent"),
    ],
)
async def test_who_says_nothing_is_no_service(answer: Event | None, told: str) -> None:
    """That the connection opened stands."""
    (found,) = await look(Services(), make_scene(agent({80: answer})), opened())

    assert found.outcome == OPEN
    assert found.service is not None
    assert found.service.told == told


async def test_of_a_range_the_first_ports_speak_for_the_rest() -> None:
    """Nobody requires a service on thousands of ports."""
    source = agent(dict.fromkeys(range(1000, 1000 + PORTS_ASKED), HEALTHY))

    found = await look(Services(), make_scene(source), opened(((1000, 1999),)))

    last = 999 + PORTS_ASKED
    answers = [(one.ports, one.service and one.service.told) for one in found]
    assert answers == [(((1000, last),), "service"), (((last + 1, 1999),), None)]


async def test_streams_start_from_the_address_of_the_inventory() -> None:
    """Firewalls know that one."""
    own = replace(SOURCE, source_addresses=(Address("10.0.0.9", 4),))
    source = agent({80: HEALTHY})

    await look(Services(), make_scene(source), opened(source=own))

    assert source.asked == [Target("10.0.0.2", 80, "10.0.0.9")]


async def test_where_the_source_is_lost_the_open_connection_stands() -> None:
    """Flows of other sources are asked nevertheless."""
    lost = agent({80: HEALTHY})
    lost.lost = True
    seen = opened()

    (found,) = await look(Services(), make_scene(lost), seen)

    assert (found.outcome, found.service) == (seen.outcome, None)
    assert found.warnings == ("the service was not asked: the agent of a was lost",)


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({}, True),
        ({"listener": "unknown"}, True),
        ({"listener": "closed"}, True),
        ({"listener": "ours"}, False),
        ({"conclusion": CheckConclusion("intercepted")}, True),
        ({"conclusion": CheckConclusion("host-down")}, False),
        ({"protocol": "udp"}, False),
        ({"probe": None}, False),
        ({"probe": "dns"}, False),
        ({"expect": "denied"}, False),
        ({"answer": "nonce"}, False),
        ({"answer": None}, False),
        # TLS asks for a name, and no setting gives it.
        ({"probe": "ignition", "sni": ""}, False),
        ({"probe": "ignition", "sni": "ignition.lab.test"}, True),
    ],
)
def test_open_connections_to_known_services_concern_the_check(
    change: dict[str, Any], concerned: bool
) -> None:
    """Our own listener, other protocols and denied ports are asked nothing."""
    words = {"protocol": "tcp", "probe": "http-health", "answer": "unasked", **change}
    outcome = Outcome("connect", None, answer=words.pop("answer"))
    facts = {name: words.pop(name) for name in ("listener", "conclusion") if name in words}
    seen = make_observation(outcome, make_task(words.pop("protocol"), **words), **facts)

    assert Services().concerns(seen) is concerned


def test_untested_flows_do_not_concern_the_check() -> None:
    """Nobody saw anything of them."""
    assert not Services().concerns(make_observation(None, make_task(probe="http-health")))

"""The packed agent, as it crosses the wire, under every Python from 3.6 up that is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.agent.wire.answers import (
    Closed,
    Listening,
    Seen,
    StoryTold,
)
from netprobe.agent.wire.host_messages import (
    Resolved,
    ResolveOrder,
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    CloseOrder,
    HeldOrder,
    ListenOrder,
    RecordOrder,
    SeenOrder,
    StoryOrder,
)
from netprobe.vantage.launch import Launcher, start_agent
from tests.agent.interpreters import INTERPRETERS, PLACES
from tests.needs import skip
from tests.ports import free_port
from tests.vantage.support import (
    HOST,
    KEY,
    TEMPLATES,
    block,
    outcomes,
    probe,
    with_python,
)


def test_the_oldest_python_is_here() -> None:
    """The oldest Python that an agent must run under is among those that the next test takes."""
    if "3.6" not in INTERPRETERS:
        skip("no Python 3.6", f"one in {' or '.join(PLACES)}")
    assert next(iter(INTERPRETERS)) == "3.6"


def story(proto: str, port: int, number: int) -> StoryOrder:
    """What was seen of the probes of this host's own port."""
    return StoryOrder(
        0, proto, None, "127.0.0.1", "127.0.0.1", [(port, port)], sent=True,
        numbers=[number] if proto == "udp" else [], own_ports=[],
    )  # fmt: skip


def assert_told(told: StoryTold, permitted: bool) -> None:
    """A request went out and an answer came; without the right to look nothing is known."""
    assert told.running is permitted
    if not permitted:
        assert (told.failure, told.runs, told.heard) == ("no-permission", [], False)
        return
    (run,) = told.runs
    assert run.requests is not None
    assert run.answers is not None
    assert (run.requests.device, run.answers.device, told.heard) == ("lo", "lo", True)


@pytest.mark.slow
@pytest.mark.parametrize("version", INTERPRETERS)
async def test_the_packed_agent_does_its_work(version: str, tmp_path: Path) -> None:
    """Hello, listen, nonces over TCP and UDP, witness, story, route, names, close, stop."""
    host = with_python(tmp_path / "bin", INTERPRETERS[version])
    port = free_port()
    async with Launcher() as launcher:
        link = await start_agent(host, HOST, key=KEY, launcher=launcher)
        assert link.hello.python.startswith(version + ".")
        link.send(TEMPLATES)
        link.send(RecordOrder([(port, port)], [], None))
        ports = [(port, port)]
        blocks = [block("tcp", "127.0.0.1", ports), block("udp", "127.0.0.1", ports)]
        for item in (await link.request(ListenOrder(900, blocks), Listening)).blocks:
            assert item.up == ports

        for order, proto in ((1, "tcp"), (2, "udp")):
            found = await outcomes(link, probe(order, proto, "127.0.0.1", ports))
            assert found == [(port, port, None, "nonce")]

        seen = await link.request(SeenOrder(0, 900, [1, 2], rest=True), Seen)
        assert ([item.order for item in seen.orders], seen.unreached) == ([1, 2], [])
        assert all(item.senders == ["127.0.0.1"] for item in seen.orders)
        held = await link.request(HeldOrder(0, blocks), Listening)
        assert held.blocks[0].held[0].pid == link.hello.pid
        routed = await link.request(RouteOrder(0, "127.0.0.1", None), Routed)
        assert (routed.dev, routed.failure) == ("lo", None)
        resolved = await link.request(ResolveOrder(0, "localhost"), Resolved)
        assert "127.0.0.1" in resolved.addresses
        for number, proto in ((1, "tcp"), (2, "udp")):
            told = await link.request(story(proto, port, number), StoryTold)
            assert_told(told, link.hello.net_raw)
        assert await link.request(CloseOrder(900), Closed) == Closed(900)
        assert await outcomes(link, probe(3, "tcp", "127.0.0.1", ports)) == [
            (port, port, "refused", None)
        ]
        await link.close()
        assert link.exit_status == 0

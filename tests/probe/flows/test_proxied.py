"""Flows through a proxy, over streams that answer from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    Resolved,
    ResolveOrder,
)
from netprobe.agent.wire.templates import read_nonce
from netprobe.model.evidence import Listener, Outcome
from netprobe.model.inventory import Address, Proxy
from netprobe.model.konnectivity import Event
from netprobe.probe.flows.listeners import UNKNOWN, Listeners, Spot
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.proxied import Proxied, ways
from netprobe.probe.flows.work import Task, join
from netprobe.protocols import protocol_for
from netprobe.vantage.stream import Target
from tests.patience import PATIENCE_S
from tests.probe.builders import SOURCE, TARGET, make_want
from tests.probe.fakes import FakeAgent, FakeFleet, FakePipe, host

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PROXY = "192.0.2.7"
WORDS = f"CONNECT 10.0.0.2:6443 through http://{PROXY}:3128"
BY_URL = f"GET http://10.0.0.2:6443 through http://{PROXY}:3128"

Answers = Callable[[bytes], bytes | Event]


def proxied(probe: str = "kube-apiserver", url: str = f"http://{PROXY}:3128", **more: Any) -> Task:
    """One flow of a source whose software uses this proxy."""
    source = replace(SOURCE, proxy=Proxy(https_proxy=url, http_proxy=url))
    source = replace(source, **more.pop("own", {}))
    ports = more.pop("ports", ((6443, 6443),))
    (want,) = ways(make_want("tcp", ports, source=source, probe=probe, **more))
    (task,) = join([want], {})
    assert task.via is not None
    return task


def tunnel(inside: Answers | None = None) -> Answers:
    """A proxy that opens a tunnel, and what answers inside."""

    def respond(data: bytes) -> bytes | Event:
        if data.startswith(b"CONNECT "):
            return OPENED
        return Event("fin") if inside is None else inside(data)

    return respond


class World:
    """A source, its destination and another agent; every stream is answered alike."""

    def __init__(self, *pipes: FakePipe | Answers, resolved: list[str] | None = None) -> None:
        self.source = FakeAgent(
            SOURCE, {ResolveOrder: lambda order: Resolved(order.id, resolved or [], None, "")}
        )
        self.fleet = FakeFleet(
            [self.source, FakeAgent(TARGET), FakeAgent(host("other", "10.0.0.3"))]
        )
        self.opened: list[FakePipe] = []

        def open_pipe(target: Target) -> FakePipe:
            pipe = pipes[min(len(self.opened), len(pipes) - 1)]
            found = pipe if isinstance(pipe, FakePipe) else FakePipe(pipe)
            self.opened.append(found)
            return found

        self.source.pipes = open_pipe

    async def probe(self, task: Task, listener: Listener = UNKNOWN) -> list[Observation]:
        listeners = Listeners(UNKNOWN)
        spot = Spot("tcp", task.address, protocol_for(None), task.ports)
        listeners.add(spot, task.ports, listener)
        async with asyncio.timeout(PATIENCE_S):
            return await Proxied(self.fleet).probe([task], listeners)

    async def outcome(self, task: Task, listener: Listener = UNKNOWN) -> Outcome:
        """The outcome of the one flow."""
        (found,) = await self.probe(task, listener)
        assert found.outcome is not None
        return found.outcome

    @property
    def targets(self) -> list[Target]:
        return self.source.orders(Target)


async def test_httpx_is_there_before_the_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy refuses a client that is silent for as long as an import takes."""
    world = World(tunnel())
    opened: list[int] = []

    async def load() -> None:
        opened.append(len(world.opened))

    monkeypatch.setattr("netprobe.probe.flows.proxied.load_http", load)
    await world.probe(proxied())

    assert opened == [0]
    assert world.opened


@pytest.mark.parametrize(
    ("pipe", "refusal", "said"),
    [
        (
            FakePipe(failure="refused"),
            "refused",
            f"{WORDS}: {PROXY}:3128 gives no connection (refused)",
        ),
        (
            FakePipe(failure="no-answer"),
            "no-response",
            f"{WORDS}: {PROXY}:3128 gives no connection (no-response)",
        ),
        (lambda _: Event("fin"), "closed", f"{WORDS} is not answered"),
        (lambda _: Event("reset"), "closed", f"{WORDS} is not answered"),
        (lambda _: Event("timeout"), "silent", f"{WORDS} is not answered"),
        (
            lambda _: b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "not-http",
            f'{WORDS} is answered by "SSH-2.0-OpenSSH_9.2????"',
        ),
        (
            lambda _: (
                b"HTTP/1.1 407 Proxy Authentication Required\r\nServer: squid\r\n"
                b"Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm=x\r\n"
                b"Content-Length: 0\r\n\r\n"
            ),
            407,
            f"{WORDS}: HTTP 407 Proxy Authentication Required, says squid, "
            "asks for Negotiate, Basic",
        ),
        (
            lambda _: b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
            503,
            f"{WORDS}: HTTP 503 Busy",
        ),
    ],
)
async def test_why_there_is_no_tunnel(pipe: Any, refusal: int | str, said: str) -> None:
    """The proxy's own word is the outcome, with who it is."""
    found = await World(pipe).outcome(proxied())

    assert (found.operation, found.refusal, found.said) == ("proxy", refusal, said)
    assert (found.failure, found.answer) == (None, None)
    assert found.answered_by == (PROXY if refusal in (407, 503) else None)


async def test_a_tunnel_is_asked_for_by_the_name_that_software_dials() -> None:
    """The requirement's name, else the address; the proxy resolves it."""
    world = World(tunnel())

    await world.probe(proxied(sni="api.lab.test"))

    assert world.opened[0].sent.startswith(b"CONNECT api.lab.test:6443 HTTP/1.1\r\n")
    assert world.targets[0] == Target(PROXY, 3128, None)


async def test_a_password_goes_to_the_proxy_and_nowhere_else() -> None:
    """Words are shown, URLs are not."""
    world = World(lambda _: b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

    found = await world.outcome(proxied(url=f"http://user:s3cret@{PROXY}:3128"))

    assert b"Proxy-Authorization: Basic dXNlcjpzM2NyZXQ=" in world.opened[0].sent
    assert "s3cret" not in repr(found)
    assert "http://***@192.0.2.7:3128" in (found.said or "")


@pytest.mark.parametrize("inside", [None, lambda _: Event("reset"), lambda _: Event("timeout")])
async def test_a_tunnel_through_which_nothing_comes(inside: Answers | None) -> None:
    """Only the proxy says that there is a connection."""
    (found,) = await World(tunnel(inside)).probe(proxied())

    assert found.outcome == Outcome(
        "proxy", None, answer="tunnel", rtt_ms=1.5,
        said=f"{WORDS}: the proxy opened a tunnel, and nothing came through it",
    )  # fmt: skip
    assert found.service is not None
    assert found.service.told in ("silent", "closed", "reset")


async def test_something_else_in_the_tunnel_is_named() -> None:
    """TLS is expected, and plaintext answers."""
    (found,) = await World(tunnel(lambda _: b"SSH-2.0-OpenSSH_9.2\r\n")).probe(proxied())

    assert found.outcome == Outcome("proxy", None, answer="unasked", answered_by=PROXY, rtt_ms=1.5)
    assert found.service is not None
    assert found.service.told == "plaintext"
    assert found.service.said.endswith(f", through http://{PROXY}:3128")


async def test_without_a_server_name_only_the_tunnel_is_tried() -> None:
    """TLS needs a name, and no setting gives it."""
    world = World(tunnel())

    (found,) = await world.probe(proxied("ignition", sni=""))

    assert found.outcome is not None
    assert (found.outcome.refusal, found.outcome.answer) == (None, "tunnel")
    assert found.service is None
    assert "nothing was sent through it" in (found.outcome.said or "")
    assert world.opened[0].sent.count(b"\r\n\r\n") == 1
    refused = await World(FakePipe(failure="refused")).outcome(proxied("ignition", sni=""))
    assert refused.refusal == "refused"


def listener_answer(fleet: FakeFleet, index: int) -> Answers:
    """Our listener behind the proxy, on the host of this index."""
    template = protocol_for(None).template("tcp", 4)

    def respond(data: bytes) -> bytes | Event:
        nonce = template.recognise(fleet.key, data)
        assert nonce is not None
        assert read_nonce(nonce).port == 6443
        return template.reply(fleet.key, nonce, index, 6443, data)

    return tunnel(respond)


@pytest.mark.parametrize(("index", "answer"), [(1, "nonce"), (2, "foreign")])
async def test_our_own_listener_behind_the_proxy_knows_the_nonce(index: int, answer: str) -> None:
    """A proxy may lead to another host than the one that was meant."""
    world = World(tunnel())
    world.source.pipes = lambda _: FakePipe(listener_answer(world.fleet, index))

    found = await world.outcome(proxied(), Listener("ours"))

    assert (found.refusal, found.answer) == (None, answer)
    assert found.answered_by == world.fleet.name_of(index)
    assert found.rtt_ms == 1.5


@pytest.mark.parametrize(
    ("inside", "answer"), [(lambda _: b"220 mail.example.com ready", "other"), (None, "silent")]
)
async def test_what_is_not_our_listener_does_not_pass(inside: Any, answer: str) -> None:
    """The port is ours: whatever else answers stands between."""
    found = await World(tunnel(inside)).outcome(proxied(), Listener("ours"))

    assert (found.refusal, found.answer, found.answered_by) == (None, answer, None)
    assert found.said == "what came through the tunnel is not from our listener"


async def test_without_a_tunnel_our_listener_is_not_asked() -> None:
    """The proxy's failure is the outcome."""
    found = await World(FakePipe(failure="refused")).outcome(proxied(), Listener("ours"))

    assert found.refusal == "refused"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda _: HEALTHY, (None, "service")),
        (lambda _: b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", (403, None)),
        (lambda _: b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", (502, None)),
        (lambda _: b"HTTP/1.1 418 Tea\r\nContent-Length: 0\r\n\r\n", (None, "other")),
        (lambda _: Event("fin"), ("silent", None)),
        (lambda _: Event("timeout"), ("silent", None)),
        (FakePipe(failure="refused"), ("refused", None)),
    ],
)
async def test_plain_http_is_asked_for_by_its_whole_url(
    answer: Any, expected: tuple[int | str | None, str | None]
) -> None:
    """No tunnel: then a denial or a server error may be the proxy's own."""
    world = World(answer)

    (found,) = await world.probe(proxied("http-health"), Listener("ours"))

    assert found.outcome is not None
    assert (found.outcome.refusal, found.service and found.service.told) == expected
    assert b"CONNECT" not in world.opened[0].sent
    if not isinstance(answer, FakePipe):
        assert world.opened[0].sent.startswith(b"GET http://10.0.0.2:6443/healthz HTTP/1.1\r\n")
    if found.outcome.refusal == "silent":
        assert found.outcome.said == f"{BY_URL} is not answered"


async def test_a_proxys_name_is_resolved_at_the_source() -> None:
    """Software tries a few of its addresses; the one that opened is the proxy's."""
    addresses = ["192.0.2.8", "192.0.2.9", "192.0.2.10"]
    denied = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
    world = World(FakePipe(failure="refused"), lambda _: denied, resolved=addresses)

    found = await world.outcome(proxied(url="http://proxy.lab.test:3128"))

    assert [target.address for target in world.targets] == addresses[:2]
    assert (found.refusal, found.answered_by) == (403, "192.0.2.9")


async def test_a_proxy_that_never_opens_is_tried_at_two_addresses() -> None:
    """The last one says why."""
    world = World(
        FakePipe(failure="refused"), FakePipe(failure="no-answer"),
        resolved=["192.0.2.8", "192.0.2.9", "192.0.2.10"],
    )  # fmt: skip

    found = await world.outcome(proxied(url="http://proxy.lab.test:3128"))

    assert (found.refusal, len(world.targets)) == ("no-response", 2)


async def test_a_proxy_without_an_address_is_not_reached() -> None:
    """The words name the host that cannot resolve it."""
    world = World(tunnel())

    found = await world.outcome(proxied(url="http://proxy.lab.test:3128"))

    assert found.refusal == "not-resolved"
    assert found.said == "a cannot resolve the proxy proxy.lab.test"
    assert world.opened == []


async def test_a_proxy_over_tls_that_answers_no_client_hello() -> None:
    """Then it is no https proxy."""
    found = await World(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n").outcome(
        proxied(url=f"https://{PROXY}:3129")
    )

    assert found.refusal == "not-http"
    assert (found.said or "").endswith("the proxy answers no ClientHello")


async def test_streams_start_from_the_address_of_the_proxys_family() -> None:
    """The inventory may name one of each."""
    own = {"source_addresses": (Address("fd00::9", 6), Address("10.0.0.9", 4))}
    world = World(tunnel())

    await world.probe(proxied(own=own))
    await world.probe(proxied(own=own, url="http://[2001:db8::7]:3128"))

    starts = {(target.address, target.source) for target in world.targets}
    assert starts == {(PROXY, "10.0.0.9"), ("2001:db8::7", "fd00::9")}


async def test_every_port_is_a_flow_of_its_own() -> None:
    """Each has its tunnel, its order and its listener."""
    world = World(tunnel())

    found = await world.probe(proxied(ports=((6443, 6445),)), Listener("live", "x"))

    assert [one.ports for one in found] == [((port, port),) for port in (6443, 6444, 6445)]
    assert len({one.order for one in found}) == 3
    assert {one.listener.state for one in found} == {"live"}


async def test_where_the_source_is_lost_its_flows_are_untested() -> None:
    """Nobody asked the proxy."""
    world = World(tunnel())
    world.source.lost = True

    (found,) = await world.probe(proxied())

    assert found.outcome is None
    assert found.untested == ("agent-lost", "the agent of a was lost")


async def test_a_talk_that_fails_as_nobody_foresaw_is_one_flow() -> None:
    """Another port through the same proxy has its outcome."""

    def respond(data: bytes) -> bytes:
        if b":6444" in data:
            raise LookupError("odd")
        return b"HTTP/1.1 407 No\r\n\r\n"

    found = await World(respond).probe(proxied(ports=((6443, 6444),)))

    good, bad = sorted(found, key=lambda one: one.ports)
    assert good.outcome is not None
    assert good.outcome.refusal == 407
    assert bad.outcome is None
    assert bad.untested is not None
    assert bad.untested[0] == "netprobe-fault"
    assert bad.untested[1].startswith("LookupError: odd; a bug in netprobe")

"""Diagnosed tunnels: workers whose agents see each thing that can be seen before TLS, and others.

The first workers are looked at by the real stages, from agents that answer by a script on a clock
that jumps. Each further worker has one verdict of the table, with words in place of what it saw.
"""

from __future__ import annotations

import asyncio
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from netprobe.agent.wire.host_messages import (
    Nameservers,
    NameserversOrder,
    Resolved,
    ResolveOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.agent.wire.parts import IcmpFact
from netprobe.konnectivity.clocks import compare_clocks
from netprobe.konnectivity.combining import causes
from netprobe.konnectivity.findings import Log, diagnosis, found
from netprobe.konnectivity.request import ProxyRoute, Tunnel
from netprobe.konnectivity.stages import diagnose
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import STAGES, Diagnosis, Event, Opened, TunnelReport
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.protocols.services.proxy_url import parse_proxy
from tests.konnectivity.test_unheard import SilentPipe
from tests.probe.fakes import FakeAgent, FakePipe, host, kind, reply, routed

TUNNEL = Tunnel("k.example.com", 443, "route", sni="k.example.com")
NAMES = Resolved(1, ["10.0.0.9"], None, "")
UNKNOWN = Resolved(1, [], "not-found", "Name or service not known")
ROUTER = IcmpFact(3, 13, "10.0.0.254", 63)
DIRECT = ProxyRoute(None, "direct: no proxy is set")
PROXY = ProxyRoute(parse_proxy("http://proxy.example:3128", "x"), "HTTPS_PROXY of the worker")
TCP = {"snd_mss": 1448, "advmss": 1448, "pmtu": 1500}
Respond = Callable[[bytes], bytes | Event]


def _close(_: bytes) -> Event:
    return Event("fin", elapsed_ms=2.0, since_sent_ms=1.0)


def _reset(_: bytes) -> Event:
    return Event("reset", elapsed_ms=2.0, since_sent_ms=1.0)


def _answer(status: str, *headers: str) -> Respond:
    """What a proxy says to CONNECT."""
    text = "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", ""])
    return lambda _: Event("data", text.encode(), elapsed_ms=2.0)


@dataclass(frozen=True)
class Seen:
    """What the agent of one worker sees. ``opened``: of each connect by turns."""

    resolved: Resolved = NAMES
    servers: tuple[str, ...] = ("10.0.0.53", "10.0.0.54")
    dns: Mapping[str, Any] = field(default_factory=dict)
    route: Mapping[str, Any] = field(default_factory=dict)
    opened: tuple[Opened, ...] = (Opened(None, rtt_ms=1.5, tcp=TCP),)
    respond: Respond | None = _close
    via: ProxyRoute = DIRECT
    skew_s: float = 0.0


def _fail(failure: str, **facts: Any) -> tuple[Opened, ...]:
    return (Opened(failure, **facts),)


OPENED = Opened(None, rtt_ms=1.5, tcp=TCP)
LATE = Opened(None, rtt_ms=1003.0, tcp={**TCP, "total_retrans": 1})
SCENES: dict[str, Seen] = {
    "closes": Seen(),
    "resets": Seen(respond=_reset),
    "silent": Seen(respond=None),
    "foreign": Seen(respond=lambda _: b"SSH-2.0-OpenSSH_9.2\r\n"),
    "slow clock": Seen(skew_s=-400 * 86400.0),
    "loses": Seen(opened=(OPENED, LATE)),
    "name unknown": Seen(UNKNOWN, dns={"failure": "refused"}),
    "name servers silent": Seen(UNKNOWN, dns={"failure": "no-answer"}),
    "no name servers": Seen(UNKNOWN, servers=()),
    "odd name server": Seen(UNKNOWN, dns={"answer": "bytes", "data": b"x"}),
    "no route": Seen(route={"failure": "network-unreachable"}),
    "far": Seen(route={"gateway": "10.0.0.254"}),
    "filtered": Seen(opened=_fail("no-answer", syns=3, left=True)),
    "refused": Seen(opened=_fail("refused", elapsed_ms=0.4)),
    "rejected": Seen(opened=_fail("host-unreachable", icmp=ROUTER, elapsed_ms=1.0)),
    "rejected there": Seen(
        opened=_fail("host-unreachable", icmp=IcmpFact(3, 10, "10.0.0.9", 62), elapsed_ms=1.0)
    ),
    "host down": Seen(opened=_fail("host-unreachable", icmp=IcmpFact(3, 1, "10.0.0.254", 64),
                                   elapsed_ms=3060.0)),
    "unrouted": Seen(opened=_fail("network-unreachable", icmp=IcmpFact(3, 0, "10.0.0.254", 64))),
    "kernel refuses": Seen(opened=_fail("network-unreachable", local="10.0.0.1")),
    "own firewall": Seen(opened=_fail("no-answer", syns=0, left=False)),
    "odd failure": Seen(opened=_fail("unknown-EPROTO")),
    "unsteady": Seen(opened=(OPENED, *_fail("refused", elapsed_ms=0.4))),
    "two addresses": Seen(Resolved(1, ["10.0.0.9", "10.0.0.10"], None, "")),
    "proxy silent": Seen(via=PROXY, respond=None),
    "proxy closes": Seen(via=PROXY),
    "proxy wants a password": Seen(
        via=PROXY,
        respond=_answer("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=x",
                        "Server: squid/6"),
    ),
    "proxy denies": Seen(via=PROXY, respond=_answer("403 Forbidden")),
    "proxy fails": Seen(via=PROXY, respond=_answer("502 Bad Gateway")),
    "proxy knows no CONNECT": Seen(via=PROXY, respond=_answer("405 Method Not Allowed")),
    "proxy is none": Seen(via=PROXY, respond=lambda _: b"220 mail ready\r\n"),
    "proxy not there": Seen(via=PROXY, opened=_fail("no-answer", syns=3, left=True)),
    "proxy unknown": Seen(UNKNOWN, via=PROXY, dns={"failure": "no-answer"}),
}  # fmt: skip


class SeeingAgent(FakeAgent):
    """The agent of a worker that sees this."""

    def __init__(self, name: str, seen: Seen) -> None:
        super().__init__(host(name, "10.0.0.1"), {
            ResolveOrder: lambda _: seen.resolved,
            NameserversOrder: lambda order: Nameservers(order.id, list(seen.servers)),
            RouteOrder: routed(**seen.route),
            ProbeOrder: lambda order: reply(order, kind(**seen.dns)),
        })  # fmt: skip
        self._seen = seen
        self._count = 0
        self.pipes = self._open_pipe

    @property
    def skew_s(self) -> float:
        return self._seen.skew_s

    def _open_pipe(self, _target: Any) -> Any:
        opened = self._seen.opened[self._count % len(self._seen.opened)]
        self._count += 1
        pipe: Any = SilentPipe() if self._seen.respond is None else FakePipe(self._seen.respond)
        pipe.opened = opened
        return pipe


async def _diagnose_scenes() -> list[Diagnosis]:
    return [
        await diagnose(name, SeeingAgent(name, seen), TUNNEL, seen.via, ("10.0.0.1",))
        for name, seen in SCENES.items()
    ]


async def _list_verdicts() -> list[Diagnosis]:
    return [_make_verdict(code) for code in VERDICTS]


def _make_verdict(code: str) -> Diagnosis:
    """A worker with this verdict; what its sentences name stands there in capitals."""
    row, log = VERDICTS[code], Log()
    names = {name for text in (row.title, row.remedy, row.logs) for name in _list_names(text)}
    evidence = {name: name.upper() for name in sorted(names)}
    for name in STAGES:
        failed = name == row.stage
        log.add(name, "bad" if failed else "ok", f"{name} was seen", evidence if failed else None,
                "" if failed else f"{name} works")  # fmt: skip
    log.open.append("nothing is known of a real agent")
    return diagnosis(f"of {code}", "direct", log, found(code, "as it was seen", evidence))


def _list_names(text: str) -> Iterator[str]:
    return (name for _, name, _, _ in string.Formatter().parse(text) if name)


@cache
def make_tunnels() -> TunnelReport:
    """All of them, as one run."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        diagnoses = (*runner.run(_diagnose_scenes()), *runner.run(_list_verdicts()))
    return TunnelReport(
        TUNNEL.host, 443, "route", None, TUNNEL.sni, "2026-11-20T10:00:00Z", 4.2, diagnoses,
        causes(diagnoses), compare_clocks(diagnoses),
    )  # fmt: skip

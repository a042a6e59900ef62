"""Flows that go through the proxy of the inventory: CONNECT on the source, then the service.

Decides whether a source's software goes directly or through the proxy of the inventory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from msgspec.structs import replace

from netprobe.agent.wire.templates import pack_nonce
from netprobe.errors import FAULT, AgentError, bug_words
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Listener, Outcome, ServiceFinding
from netprobe.model.inventory import Proxy
from netprobe.model.konnectivity import OpenedPipe, Pipe
from netprobe.model.ports import PortRange
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.batches import Part, parts
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task, Via, Want, family_of
from netprobe.probe.settings import SERVICES_AT_ONCE
from netprobe.protocols import Protocol
from netprobe.protocols.base import format_place, is_address
from netprobe.protocols.services.connect import connect
from netprobe.protocols.services.http_exchange import HttpAnswer, ReadLimits, load_http
from netprobe.protocols.services.identify import Asked, identify
from netprobe.protocols.services.pages import name_page
from netprobe.protocols.services.proxy_url import decide, parse_proxy
from netprobe.protocols.services.services import service_for
from netprobe.protocols.services.tls import Hello
from netprobe.protocols.services.tls_talk import TlsPipe
from netprobe.vantage.stream import Target

ProxyWay = tuple[Via | None, str | None]

# A proxy that waits for its own connect says nothing for long; nobody who asks waits as long.
CONNECT_LIMITS = ReadLimits(6.0)
NONCE_LIMITS = ReadLimits(3.0)
# A name may have many addresses; software tries a few.
ADDRESSES = 2
# Asked for a whole URL, a proxy answers by itself like this, or with any status from 500 on.
_DENIED = frozenset((403, 407))


def ways(want: Want) -> list[Want]:
    """Give the want, cut by way where NO_PROXY tells its ports apart."""
    service = service_for(want.service)
    proxy = want.flow.source.proxy_for(want.service)
    if proxy is None or service is None:
        return [want]
    found: dict[ProxyWay, list[PortRange]] = {}
    for port in port_sets.each(want.flow.block.ports):
        found.setdefault(_choose_way(want, proxy, service.speaks_tls(port), port), []).append(
            (port, port)
        )
    if len(found) == 1:
        ((way, _),) = found.items()
        return [_take_way(want, way)]
    return [_take_way(_narrow_flow(want, ranges), way) for way, ranges in found.items()]


def dialled(want: Want) -> str:
    """Give the host that the software is told to dial: its name where one is known."""
    return want.server_name or want.flow.address.text


def _choose_way(want: Want, proxy: Proxy, tls: bool, port: int) -> ProxyWay:
    """Choose the proxy or None, and what decided. Go's rules; HTTP has a variable of its own."""
    variable, url = ("https_proxy", proxy.https_proxy) if tls else ("http_proxy", proxy.http_proxy)
    if not url:
        return None, None
    host = dialled(want)
    decision = decide(host, port, proxy.no_proxy)
    if not decision.proxied:
        return None, f"it goes directly, not through the proxy (no_proxy: {decision.entry})"
    shown = parse_proxy(url, variable)
    said = f"it goes through the proxy {shown} ({variable}; no entry of no_proxy matches {host})"
    return Via(url, str(shown)), said


def _take_way(want: Want, way: ProxyWay) -> Want:
    via, said = way
    return replace(want, via=via, notes=() if said is None else (said,))


def _narrow_flow(want: Want, ranges: list[PortRange]) -> Want:
    """Give the want with these of its ports only."""
    block = want.flow.block
    ports = port_sets.intersect(block.ports, port_sets.normalise(ranges))
    return replace(want, flow=replace(want.flow, block=replace(block, ports=ports)))


class Proxied:
    """Asks a destination's services through the proxies of the sources."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._slots = asyncio.Semaphore(SERVICES_AT_ONCE)

    async def probe(self, tasks: Iterable[Task], listeners: Listeners) -> list[Observation]:
        """Give one seen for each port of these tasks, which all have a proxy."""
        wanted = [part for task in tasks for part in parts(task, listeners, self._fleet.templates)]
        if wanted:
            await load_http()
        each = [
            self._probe_port(part, port, listener)
            for part in wanted
            for ports, listener in part.listener(part.ports)
            for port in port_sets.each(ports)
        ]
        return list(await asyncio.gather(*each))

    async def _probe_port(self, part: Part, port: int, listener: Listener) -> Observation:
        number = next(self._fleet.order_ids)
        blank = Observation(
            part.task, part, ((port, port),), number, outcome=None, listener=listener
        )
        async with self._slots:
            try:
                talk = _Talk(self._fleet, part.task, port)
                if listener.state == "ours" and not talk.by_url:
                    outcome = await self._ask_nonce(talk, part.protocol, number)
                    return replace(blank, outcome=outcome)
                outcome, service = await talk.ask()
            except AgentError as error:
                return replace(blank, untested=(error.reason, str(error)))
            except Exception as error:
                return replace(blank, untested=(FAULT, bug_words(error)))
        return replace(blank, outcome=outcome, service=service)

    async def _ask_nonce(self, talk: _Talk, protocol: Protocol, number: int) -> Outcome:
        """Ask our own listener behind the proxy, which knows the nonces of this run."""
        template = protocol.template("tcp", talk.task.family)
        nonce = pack_nonce(number, talk.port, 1)
        async with talk.dial() as pipe:
            if pipe is None:
                return talk.failed()
            data = b""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NONCE_LIMITS.whole_s):
                    await pipe.send(template.fill(self._fleet.key, nonce))
                    data = await _receive_bytes(pipe, len(template.answer or b""))
        host = template.answering_host(self._fleet.key, nonce, data)
        if host is None:
            said = "what came through the tunnel is not from our listener"
            return Outcome("proxy", None, answer="other" if data else "silent", said=said)
        wanted = self._fleet.agent(talk.task.wants[0].flow.destination).index
        return Outcome(
            "proxy",
            None,
            answer="nonce" if host == wanted else "foreign",
            answered_by=self._fleet.name_of(host),
            rtt_ms=talk.rtt_ms,
        )


async def _receive_bytes(pipe: Pipe, length: int) -> bytes:
    """Receive so many bytes, or what comes before the end."""
    data = b""
    while len(data) < length:
        event = await pipe.receive(NONCE_LIMITS.silence_s)
        data += event.data
        if event.kind != "data":
            break
    return data


class _Talk:
    """One port of one task: connections through the proxy, and why the last one failed."""

    def __init__(self, fleet: Fleet, task: Task, port: int) -> None:
        assert task.via is not None
        self.task = task
        self.port = port
        self.rtt_ms: float | None = None
        self._agent = fleet.agent(task.source)
        self._lookups = fleet.lookups
        self._proxy = parse_proxy(task.via.url, "proxy")
        self._host = dialled(task.wants[0])
        service = service_for(task.probe)
        assert service is not None
        self._service = service
        self._failed: Outcome | None = None
        self._at = ""

    @property
    def by_url(self) -> bool:
        """Whether plain HTTP is asked for, which needs no tunnel: the proxy gets the whole URL."""
        return not self._service.speaks_tls(self.port)

    @property
    def _asked(self) -> str:
        asked = "GET http://" if self.by_url else "CONNECT "
        return f"{asked}{format_place(self._host, self.port)} through {self._proxy}"

    def failed(self) -> Outcome:
        """Why there is no connection."""
        return self._failed or self._tell_refusal("closed", ": no answer")

    async def ask(self) -> tuple[Outcome, ServiceFinding | None]:
        """Ask the service through the proxy; give the outcome, and what the service told."""
        if self.task.server_name == "":
            async with self.dial() as pipe:
                return self.failed() if pipe is None else self._mute_tunnel("was sent"), None
        name = self.task.server_name
        asked = Asked(self._host, self.port, name, self._proxy if self.by_url else None)
        finding = await identify(self._service, asked, self.dial)
        if self._failed is not None and finding.told not in ("service", "other"):
            return self._failed, None
        return self._read_finding(finding)

    def _read_finding(self, finding: ServiceFinding) -> tuple[Outcome, ServiceFinding | None]:
        status = finding.status or 0
        if self.by_url and finding.told == "other" and (status in _DENIED or status >= 500):
            return self._tell_refusal(status, f": {finding.said}"), None
        if finding.told in ("silent", "closed", "reset"):
            if self.by_url:
                return self._tell_refusal("silent", " is not answered"), None
            return self._mute_tunnel("came"), finding
        outcome = Outcome("proxy", None, answer="unasked", answered_by=self._at, rtt_ms=self.rtt_ms)
        return outcome, finding._replace(said=f"{finding.said}, through {self._proxy}")

    def _mute_tunnel(self, what: str) -> Outcome:
        said = f"{self._asked}: the proxy opened a tunnel, and nothing {what} through it"
        return Outcome("proxy", None, answer="tunnel", said=said, rtt_ms=self.rtt_ms)

    def _tell_refusal(self, refusal: int | str, words: str) -> Outcome:
        by = self._at if isinstance(refusal, int) else None
        return Outcome("proxy", None, answered_by=by, said=f"{self._asked}{words}", refusal=refusal)

    @contextlib.asynccontextmanager
    async def dial(self) -> AsyncIterator[Pipe | None]:
        """Give a tunnel to the service, or the proxy itself where it gets whole URLs."""
        async with contextlib.AsyncExitStack() as stack:
            stream = await self._open_stream(stack)
            yield None if stream is None else await self._pass_proxy(stream)

    async def _open_stream(self, stack: contextlib.AsyncExitStack) -> OpenedPipe | None:
        for address in await self._find_addresses():
            source = source_address(self.task, family_of(address))
            target = Target(address, self._proxy.port, source)
            stream = await stack.enter_async_context(self._agent.open_stream(target))
            failure = stream.opened.failure
            if failure is None:
                self._at = address
                self.rtt_ms = stream.opened.rtt_ms
                self._failed = None
                return stream
            self._failed = self._fail_connect(address, failure)
        return None

    async def _find_addresses(self) -> list[str]:
        if is_address(self._proxy.host):
            return [self._proxy.host]
        reply = await self._lookups.resolve(self._agent, self._proxy.host)
        found = reply.addresses[:ADDRESSES]
        if not found:
            words = f"{self._agent.host.name} cannot resolve the proxy {self._proxy.host}"
            self._failed = Outcome("proxy", None, said=words, refusal="not-resolved")
        return found

    async def _pass_proxy(self, stream: OpenedPipe) -> Pipe | None:
        pipe: Pipe | None = stream
        if self._proxy.scheme == "https":
            sni = None if is_address(self._proxy.host) else self._proxy.host
            pipe = await TlsPipe.shaken(stream, Hello(sni, alpn=("http/1.1",)))
        if pipe is None:
            self._failed = self._tell_refusal("not-http", ": the proxy answers no ClientHello")
            return None
        if self.by_url:
            return pipe
        answer = await connect(pipe, self._host, self.port, self._proxy, CONNECT_LIMITS)
        if answer.status is not None and 200 <= answer.status < 300:
            return pipe
        self._failed = self._read_refusal(answer)
        return None

    def _fail_connect(self, address: str, failure: str) -> Outcome:
        reason = "no-response" if failure == "no-answer" else failure
        place = format_place(address, self._proxy.port)
        return self._tell_refusal(reason, f": {place} gives no connection ({reason})")

    def _read_refusal(self, answer: HttpAnswer) -> Outcome:
        if answer.foreign is not None:
            return self._tell_refusal("not-http", f' is answered by "{answer.foreign}"')
        if answer.status is None:
            did = "silent" if answer.ended == "timeout" else "closed"
            return self._tell_refusal(did, " is not answered")
        page = "" if answer.schemes else name_page(answer, None)
        words = f"{answer.words()}{page and f': {page}'}"
        return self._tell_refusal(answer.status, f": {words}")

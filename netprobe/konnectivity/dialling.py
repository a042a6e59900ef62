"""Stages 1 to 3: names, the worker's route, connects, and CONNECT where a proxy stands between."""

from __future__ import annotations

import asyncio
from typing import Any

from netprobe.agent.wire.host_messages import Resolved
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.errors import AgentError
from netprobe.konnectivity.findings import Conclusion, Log, icmp_evidence
from netprobe.konnectivity.reach import Reach, Tasks
from netprobe.konnectivity.symptoms import TcpSymptom, tcp_symptom
from netprobe.konnectivity.tables import TCP
from netprobe.konnectivity.verdicts import DIAL_ERRORS
from netprobe.model.konnectivity import Opened, ResolvedName, TunnelPlace
from netprobe.model.notes import LookNote, word_resolved, word_route
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.decode import read_icmp
from netprobe.probe.agents.name_questions import DNS_PORT, KINDS
from netprobe.probe.settings import Timing
from netprobe.protocols.base import format_place, is_address
from netprobe.protocols.services.connect import connect
from netprobe.protocols.services.http_exchange import HttpAnswer

ASK_AFTER_S = 1.5
LOOKS = Timing(None, 2000, 2)
MOST_SERVERS = 4
PRIVATE_ZONE = ".hypershift.local"

# What each resolver says in a word, by kind of record and protocol: ``A/udp``.
ServerAnswers = dict[str, dict[str, str]]

CONNECTS = 3
# What web servers say to CONNECT: method not allowed, not implemented.
NO_CONNECT = (405, 501)
CREDENTIALS_WANTED = 407


async def look_up(
    agent: AgentMethods, host: str, log: Log, *, proxy: bool = False
) -> tuple[tuple[str, ...], Conclusion | None]:
    """The addresses, or why there are none. ``proxy``: the name is that of the worker's proxy."""
    if is_address(host):
        log.add("names", "ok", f"{host} is an address")
        return (host,), None
    async with Tasks() as tasks:
        resolving = tasks.begin(agent.resolve(host))
        await asyncio.wait({resolving}, timeout=ASK_AFTER_S)
        # A resolver that takes so long waits for servers, which can be asked meanwhile.
        known = resolving.done() and resolving.result().addresses
        asking = None if known else tasks.begin(_ask_servers(agent, host))
        answer = await resolving
        addresses = tuple(answer.addresses)
        log.resolved = ResolvedName(host, addresses)
        if addresses or asking is None:
            said = word_resolved("the worker", host, answer)
            log.prove("names", said, {"host": host, "addresses": list(addresses)})
            return addresses, None
        what = _explain_failure(await asking, host, answer, proxy)
        return (), log.fail("names", what)


async def _ask_servers(agent: AgentMethods, host: str) -> ServerAnswers:
    servers = (await agent.nameservers()).servers[:MOST_SERVERS]
    asked = await asyncio.gather(*(_ask_server(agent, server, host) for server in servers))
    return dict(zip(servers, asked, strict=True))


async def _ask_server(agent: AgentMethods, server: str, host: str) -> dict[str, str]:
    """Tell what one resolver answers to A and AAAA over UDP and TCP."""
    ways = [(kind, proto) for proto in ("udp", "tcp") for kind in KINDS]
    answers = await asyncio.gather(
        *(_ask_kind(agent, server, host, kind, proto) for kind, proto in ways)
    )
    return {f"{kind}/{proto}": said for (kind, proto), said in zip(ways, answers, strict=True)}


async def _ask_kind(agent: AgentMethods, server: str, host: str, kind: str, proto: str) -> str:
    """Give the answer in a word; a worker that stood still says nothing of the resolver."""
    try:
        return await agent.names.ask_plainly(server, host, kind, proto, LOOKS)
    except AgentError as error:
        if error.reason != "machine-busy":
            raise
        return "unknown"


def _explain_failure(
    answers: ServerAnswers, host: str, answer: Resolved, proxy: bool
) -> Conclusion:
    flow = (next(iter(answers)), f"udp/{DNS_PORT}") if answers else None
    evidence = {
        "host": host,
        "resolver_words": answer.words,
        "servers": ", ".join(answers) or "none configured",
        "answers": answers,
        **({"flow": list(flow)} if flow else {}),
    }
    said = "; ".join(f"{server}: {_word_answers(each)}" for server, each in answers.items())
    hint = ""
    if host.endswith(PRIVATE_ZONE):
        hint = f"; names below {PRIVATE_ZONE} exist in a private zone only"
    because = f"{word_resolved('the worker', host, answer)}; {said or 'no resolver'}{hint}"
    code = "PROXY_NAME_NOT_RESOLVED" if proxy else _worst_agreed_code(answers)
    return Conclusion(code, because, evidence, flow=flow)


def _worst_agreed_code(answers: ServerAnswers) -> str:
    """Give the worst that all resolvers agree on."""
    codes = {code for each in answers.values() for code in each.values()}
    if not codes:
        return "NAME_NOT_RESOLVED"
    if codes <= {"no answer", "refused"}:
        return "NAME_SERVERS_SILENT"
    if "NXDOMAIN" in codes:
        return "NAME_NOT_FOUND"
    if codes & {"SERVFAIL", "REFUSED"}:
        return "NAME_SERVER_FAILURE"
    return "NAME_NOT_RESOLVED"


def _word_answers(answers: dict[str, str]) -> str:
    if len(set(answers.values())) == 1:
        return f"{next(iter(answers.values()))} to all questions"
    return ", ".join(f"{kind} {code}" for kind, code in answers.items())


async def look_at_route(reach: Reach, log: Log) -> Conclusion | None:
    """Look up the route in the worker's routing table; no packet is sent."""
    reply = await reach.agent.route(reach.address, reach.source)
    facts = {key: getattr(reply, key) for key in ("source", "dev", "mtu", "gateway")}
    log.is_local = reply.dev == "lo"
    said = word_route("the worker", reach.address, reply)
    if reply.failure is None:
        log.prove("route", said, facts)
        return None
    evidence = {"address": reach.address, "failure": reply.failure, "to": reach.to}
    return log.fail("route", Conclusion("NO_ROUTE", said, evidence | _dial_error(reply.failure)))


async def look_at_tcp(reach: Reach, log: Log) -> Conclusion | None:
    """Three connects at once. Where only some fail, the stage is a warning and the run goes on."""
    opened = await asyncio.gather(*(_try_connect(reach) for _ in range(CONNECTS)))
    symptoms = [tcp_symptom(one) for one in opened]
    alike = {one: [each for each in opened if tcp_symptom(each) == one] for one in symptoms}
    notes = {symptom: _note_look(reach, some) for symptom, some in alike.items()}
    place = format_place(reach.address, reach.port)  # the proxy's, if there is one
    said = "; ".join(note.words(None, None, place) for note in notes.values())
    if "opened" in notes and len(notes) > 1:
        reach.doubted.set()
        log.add("tcp", "doubt", said, {"sights": symptoms})
        return None
    # A refusal is more than silence, and ICMP errors are limited to one a second.
    told = set(symptoms) - {"silent"} or {"silent"}
    symptom = told.pop() if len(told) == 1 else "other"
    icmp = notes.get(symptom, notes[symptoms[0]]).icmp
    where: TunnelPlace | None = "destination" if icmp and icmp.origin == "destination" else None
    evidence = _describe_connects(reach, symptom, opened) | ({"where": where} if where else {})
    code = TCP[symptom]
    if code is None:
        log.prove("tcp", said, evidence)
        return None
    log.add("tcp", "bad", said, evidence)
    if reach.proxy is not None and code not in ("NO_ROUTE", "LOCAL_FIREWALL"):
        code = "PROXY_UNREACHABLE"
        evidence["where"] = where = "proxy"
    return Conclusion(code, said, evidence, where=where, silent=symptom == "silent")


def _note_look(reach: Reach, alike: list[Opened]) -> LookNote:
    """Note connects that ended alike, as probes of a run do."""
    one, took_ms = alike[0], _median_ms(alike)
    late = round(took_ms / 100) * 100 if one.failure == "host-unreachable" else None
    syns = sum(each.syns or 0 for each in alike) or None
    kind = OutcomeKind("connect", one.failure, one.icmp, one.left,
        None if one.failure else "unasked", None, None, None, late, None, syns, None)  # fmt: skip
    icmp = one.icmp and read_icmp(one.icmp, reach.address, reach.agent.own_addresses)
    return LookNote("tcp", "connect", 0, kind, round(took_ms * 1000), len(alike), icmp)


def _median_ms(opened: list[Opened]) -> float:
    times = sorted(each.rtt_ms if each.rtt_ms is not None else each.elapsed_ms for each in opened)
    return times[len(times) // 2]


async def _try_connect(reach: Reach) -> Opened:
    async with reach.agent.open_stream(reach.target()) as stream:
        reach.watch(stream.opened.tcp)
        return stream.opened


def _describe_connects(reach: Reach, symptom: TcpSymptom, opened: list[Opened]) -> dict[str, Any]:
    one = next((each for each in opened if tcp_symptom(each) == symptom), opened[0])
    evidence: dict[str, Any] = {
        "address": reach.address,
        "port": reach.port,
        "to": format_place(reach.address, reach.port),  # the proxy's, if there is one
        "tries": len(opened),
        "sight": symptom,
        "rtt": round(_median_ms(opened), 1),
        "failure": one.failure,
        "syns": sum(each.syns or 0 for each in opened),
        "local": one.local,
        "offender": "a host on the way",
        "icmp": f"an ICMP error ({one.failure})",
    }
    if symptom == "other":
        evidence["again"] = reach.again
    if one.tcp and symptom == "opened":
        evidence |= {name: one.tcp.get(name) for name in ("snd_mss", "advmss", "pmtu")}
    return evidence | _dial_error(one.failure) | icmp_evidence(one.icmp)


def _dial_error(failure: str | None) -> dict[str, str]:
    """Give what Go says to this errno, where an agent was seen to say it."""
    words = DIAL_ERRORS.get(failure or "")
    return {} if words is None else {"dial_error": words}


async def look_at_proxy(reach: Reach, log: Log) -> Conclusion | None:
    """CONNECT through the proxy, if there is one."""
    if reach.proxy is None:
        return None
    tunnel = reach.tunnel
    async with reach.agent.open_stream(reach.target()) as stream:
        if stream.opened.failure is not None:
            answer = HttpAnswer(ended=stream.opened.failure)
        else:
            answer = await connect(stream, tunnel.host, tunnel.port, reach.proxy)
    variant = "no-connect" if answer.status in NO_CONNECT else None
    if answer.status == CREDENTIALS_WANTED and reach.proxy.credentials is not None:
        variant = "rejected"
    evidence = {
        "host": tunnel.host,
        "port": tunnel.port,
        "proxy": str(reach.proxy),
        "status": answer.status,
        "variant": variant,
        "reason": answer.reason,
        "proxy_server": answer.server,
        "authentication": list(answer.schemes),
        "body": answer.body,
        "ended": answer.ended,
        "foreign": answer.foreign,
        "to": reach.to,
    }
    said = f"CONNECT {tunnel.host}:{tunnel.port} through {reach.proxy}{_word_proxy(answer)}"
    code = _proxy_code(answer)
    if code is not None:
        return log.fail("proxy", Conclusion(code, said, evidence, variant=variant))
    fine = f"the proxy opens a tunnel to {tunnel.host}:{tunnel.port}"
    log.add("proxy", "ok", said, evidence, fine)
    return None


def _word_proxy(answer: HttpAnswer) -> str:
    if answer.foreign is not None:
        return f" is answered by: {answer.foreign}"
    if answer.status is None:
        return f" is not answered ({answer.ended})"
    return f": {answer.words()}"


def _proxy_code(answer: HttpAnswer) -> str | None:
    if answer.foreign is not None:
        return "PROXY_NOT_HTTP"
    if answer.status is None:
        return "PROXY_SILENT" if answer.ended == "timeout" else "PROXY_NOT_HTTP"
    if 200 <= answer.status < 300:
        return None
    exact = {CREDENTIALS_WANTED: "PROXY_407", 403: "PROXY_403"}
    return exact.get(answer.status, "PROXY_5XX" if answer.status >= 500 else "PROXY_REFUSED")

"""Stage 1: which addresses the worker gets for a name, and if none, what each resolver says."""

from __future__ import annotations

import asyncio

from netprobe.agent.wire.host_messages import Resolved
from netprobe.konnectivity.findings import Conclusion, Log
from netprobe.konnectivity.reach import Tasks
from netprobe.model.konnectivity import ResolvedName
from netprobe.model.notes import word_resolved
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.name_questions import DNS_PORT, KINDS
from netprobe.probe.settings import Timing
from netprobe.protocols.base import is_address

ASK_AFTER_S = 1.5
LOOKS = Timing(None, 2000, 2)
MOST_SERVERS = 4
PRIVATE_ZONE = ".hypershift.local"

# What each resolver says in a word, by kind of record and protocol: ``A/udp``.
ServerAnswers = dict[str, dict[str, str]]


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
        *(agent.names.ask_plainly(server, host, kind, proto, LOOKS) for kind, proto in ways)
    )
    return {f"{kind}/{proto}": said for (kind, proto), said in zip(ways, answers, strict=True)}


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

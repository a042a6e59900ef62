"""Stage 1: which addresses the worker gets for a name, and if none, what each resolver says."""

from __future__ import annotations

import asyncio
from typing import Any

from netprobe.agent.wire.host_messages import Resolved
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.konnectivity.findings import Conclusion, Log, found
from netprobe.konnectivity.request import is_address
from netprobe.model.konnectivity import ResolvedName
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.settings import Timing
from netprobe.protocols.packets.dns import TYPES, question, read_answer

DNS_PORT = 53
ASK_AFTER_S = 1.5
LOOK_MS = 2000
LOOKS = 2
MOST_SERVERS = 4
PRIVATE_ZONE = ".hypershift.local"


async def look_up(
    agent: AgentMethods, host: str, log: Log, *, proxy: bool = False
) -> tuple[tuple[str, ...], Conclusion | None]:
    """The addresses, or why there are none. ``proxy``: the name is that of the worker's proxy."""
    if is_address(host):
        log.add("names", "ok", f"{host} is an address")
        return (host,), None
    resolving = asyncio.create_task(agent.resolve(host))
    await asyncio.wait({resolving}, timeout=ASK_AFTER_S)
    # A resolver that takes so long waits for servers, which can be asked meanwhile.
    asking = (
        asyncio.create_task(_ask_servers(agent, host)) if not _has_addresses(resolving) else None
    )
    try:
        answer = await resolving
        addresses = tuple(answer.addresses)
        log.resolved = ResolvedName(host, addresses)
        if addresses or asking is None:
            said = f"{host} is {', '.join(addresses)}"
            fine = f"the worker resolves {host}: {', '.join(addresses)}"
            log.add("names", "ok", said, {"host": host, "addresses": list(addresses)}, fine)
            return addresses, None
        what = _explain_failure(await asking, host, answer.words, proxy)
        log.add("names", "bad", what.because, what.evidence)
        return (), what
    finally:
        tasks: list[asyncio.Task[Any]] = [task for task in (resolving, asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _has_addresses(resolving: asyncio.Task[Resolved]) -> bool:
    return resolving.done() and bool(resolving.result().addresses)


async def _ask_servers(agent: AgentMethods, host: str) -> dict[str, dict[str, str]]:
    servers = (await agent.nameservers()).servers[:MOST_SERVERS]
    asked = await asyncio.gather(*(_ask_server(agent, server, host) for server in servers))
    return dict(zip(servers, asked, strict=True))


def _explain_failure(
    answers: dict[str, dict[str, str]], host: str, words: str, proxy: bool
) -> Conclusion:
    evidence = {
        "host": host,
        "resolver_words": words,
        "servers": ", ".join(answers) or "none configured",
        "answers": answers,
        **({"flow": [next(iter(answers)), f"udp/{DNS_PORT}"]} if answers else {}),
    }
    said = "; ".join(f"{server}: {_word_answers(each)}" for server, each in answers.items())
    hint = ""
    if host.endswith(PRIVATE_ZONE):
        hint = f"; names below {PRIVATE_ZONE} exist in a private zone only"
    because = f"the worker's resolver says: {words or 'nothing'}; {said or 'no resolver'}{hint}"
    code = "PROXY_NAME_NOT_RESOLVED" if proxy else _worst_agreed_code(answers)
    return found(code, because, evidence)


def _worst_agreed_code(answers: dict[str, dict[str, str]]) -> str:
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


async def _ask_server(agent: AgentMethods, server: str, host: str) -> dict[str, str]:
    """Tell what one resolver answers to A and AAAA over UDP and TCP."""
    ways = [(kind, proto) for proto in ("udp", "tcp") for kind in TYPES]
    answers = await asyncio.gather(
        *(_ask_one_server(agent, server, host, kind, proto) for kind, proto in ways)
    )
    return {f"{kind}/{proto}": said for (kind, proto), said in zip(ways, answers, strict=True)}


async def _ask_one_server(
    agent: AgentMethods, server: str, host: str, kind: str, proto: str
) -> str:
    tcp = proto == "tcp"
    request = question(host, kind, tcp)
    timing = Timing(None, LOOK_MS, LOOKS)
    outcomes = await agent.ask_service(proto, server, DNS_PORT, request, timing)
    said = [_read_outcome(outcome, tcp) for outcome in outcomes]
    return said[-1] if said else "no answer"


def _read_outcome(outcome: OutcomeKind, tcp: bool) -> str:
    if outcome.data:
        answer = read_answer(outcome.data, tcp)
        if answer is None:
            return "no DNS"
        return answer.rcode if answer.rcode != "NOERROR" or answer.addresses else "no record"
    if outcome.failure == "refused":
        return "refused"
    return "no answer"

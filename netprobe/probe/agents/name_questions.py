"""What name servers tell one source: each server is asked for each name once in a run."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Iterable
from typing import Protocol, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.errors import AgentError
from netprobe.model.names import NO_ANSWERS, VIEWS, NameTold, ServerTold
from netprobe.probe.settings import Timing
from netprobe.protocols.base import is_address
from netprobe.protocols.packets.dns import NameAnswer, make_server_question, question, read_answer

DNS_PORT = 53
# A program asks no more than three of its resolv.conf (resolv.conf(5), MAXNS).
RESOLVERS = 3
TIMING = Timing(None, 1500, 2)
# What is asked after silence: somebody answered other questions by then.
AGAIN = Timing(None, 1500, 1)
# The full size that resolvers once asked for, the one of today (no fragments), and plain DNS.
FULL_BYTES = 4096
SMALL_BYTES = 1232
PACKET_BYTES = 1472
WILDCARD = "*."
ROOT = "."
# Of a balancer that gives one of four addresses, 1 of 64 gives the same one so often.
MORE_ASKINGS = 3

Reply = NameAnswer | str
# A program takes an address of either family.
KINDS = ("A", "AAAA")
# Server, name, and kind of record.
Asking = tuple[str, str, str]


class AskService(Protocol):
    """Sends a request to a service, as ``AgentMethods.ask_service`` does."""

    def __call__(
        self, protocol: str, dst: str, port: int, request: bytes, timing: Timing,
        src: str | None = None,
    ) -> Awaitable[list[OutcomeKind]]:  # fmt: skip
        """Give what came back."""


class NameSurvey(Struct, frozen=True):
    """What to ask a server for, and how.

    ``stranger``: a label that nobody made. ``src``: the address to ask from; None: the kernel
    chooses.
    """

    names: tuple[str, ...]
    protocol: str
    stranger: str
    src: str | None = None

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that the names are in, each once."""
        return tuple(dict.fromkeys(domain_of(name) for name in self.names))


def domain_of(name: str) -> str:
    """Give what follows the first label: ``example.com`` of ``api.example.com``."""
    return name.partition(".")[2]


def make_stranger(key: bytes) -> str:
    """Make a label that nobody made a record for; the same in all of a run."""
    return f"netprobe-{hashlib.sha256(key).hexdigest()[:12]}"


def choose_resolvers(servers: Iterable[str]) -> list[str]:
    """Choose the servers of a resolv.conf that programs ask."""
    return [one for one in list(servers)[:RESOLVERS] if is_address(one.partition("%")[0])]


class NameQuestions:
    """Asks name servers from one host; ``ask`` sends a request there."""

    def __init__(self, source: str, ask: AskService) -> None:
        self._source = source
        self._ask_service = ask
        self._known: dict[tuple[str, NameSurvey], asyncio.Task[ServerTold]] = {}

    async def ask(self, server: str, survey: NameSurvey) -> ServerTold:
        """Ask a server, once; anew where that failed. Raises AgentError."""
        key = (server, survey)
        known = self._known.get(key)
        if known is None or (known.done() and known.exception() is not None):
            known = self._known[key] = asyncio.create_task(self._ask_server(server, survey))
        return await asyncio.shield(known)

    async def _ask_server(self, server: str, survey: NameSurvey) -> ServerTold:
        strangers = [f"{WILDCARD}{domain}" for domain in survey.domains]
        names = [*survey.names, *(one for one in strangers if one not in survey.names)]
        told, serials = await asyncio.gather(
            asyncio.gather(*(self._ask_name(server, name, survey) for name in names)),
            asyncio.gather(*(self._ask_serial(server, one, survey) for one in survey.domains)),
        )
        by_name = {one.name: one for one in told}
        alive = any(one.said not in NO_ANSWERS for one in told)
        knows = any(one.said in VIEWS for one in told) or any(one is not None for one in serials)
        asks_root = not knows and (alive or not told)
        root = await self._ask_root(server, survey) if asks_root else None
        return ServerTold(
            self._source,
            server,
            tuple(by_name[name] for name in survey.names),
            tuple(by_name[name] for name in strangers),
            tuple(
                (domain, serial)
                for domain, serial in zip(survey.domains, serials, strict=True)
                if serial is not None
            ),
            alive=alive or await self._is_alive(server, survey),
            root=root,
            resolves=knows or root in VIEWS,
        )

    async def ask_plainly(
        self, server: str, name: str, kind: str, protocol: str, timing: Timing
    ) -> str:
        """Ask for one kind of record, as plain DNS does; give the answer in a word.

        Raises AgentError.
        """
        survey = NameSurvey((name,), protocol, "")
        reply = await self._send_question(server, name, kind, survey, None, timing)
        return _read_told(name, reply).said

    async def find_varying(self, told: ServerTold, survey: NameSurvey) -> ServerTold:
        """Ask a server again, and note the names for which it says something else then.

        Raises AgentError.
        """
        again = [await self._ask_server(told.server, survey) for _ in range(MORE_ASKINGS)]
        varying = [
            one.name
            for one in told.told
            if any(
                later != one for other in again for later in other.told if later.name == one.name
            )
        ]
        return replace(told, varying=tuple(varying))

    async def _is_alive(self, server: str, survey: NameSurvey) -> bool:
        """Tell whether a server answers what each answers by itself: the name that it goes by."""
        request = make_server_question(survey.protocol)
        return any(one.data for one in await self._send_request(server, request, survey, AGAIN))

    async def _ask_root(self, server: str, survey: NameSurvey) -> str:
        """Ask a server that fails for all names for the root: it may know of others."""
        reply = await self._send_question(server, ROOT, "SOA", survey)
        return reply.rcode if isinstance(reply, NameAnswer) else reply

    async def _ask_serial(self, server: str, domain: str, survey: NameSurvey) -> int | None:
        if not domain:
            return None
        reply = await self._send_question(server, domain, "SOA", survey)
        return reply.serial if isinstance(reply, NameAnswer) else None

    async def _ask_name(self, server: str, name: str, survey: NameSurvey) -> NameTold:
        """Ask for the addresses of a name; for any name below a wildcard."""
        asked = name.replace("*", survey.stranger, 1)
        found = await asyncio.gather(
            *(self._ask_kind((server, asked, kind), survey) for kind in KINDS)
        )
        return _join_answers(name, found)

    async def _ask_kind(self, what: Asking, survey: NameSurvey) -> NameTold:
        name = what[1]
        full = await self._send_question(*what, survey, FULL_BYTES)
        if survey.protocol == "tcp":
            return _read_told(name, full)
        if _takes_edns(full):
            return await self._complete_answer(what, survey, full)
        small, plain = await asyncio.gather(
            self._send_question(*what, survey, SMALL_BYTES, AGAIN),
            self._send_question(*what, survey, None, AGAIN),
        )
        if _takes_edns(small):
            return await self._complete_answer(what, survey, small, lost=full == "no answer")
        if isinstance(plain, NameAnswer):
            told = await self._complete_answer(what, survey, plain)
            return replace(told, trouble="edns") if full == "no answer" else told
        return _read_told(name, full)

    async def _complete_answer(
        self, what: Asking, survey: NameSurvey, answer: NameAnswer, *, lost: bool = False
    ) -> NameTold:
        """Give a whole answer: one that is cut off is asked for again over TCP.

        ``lost``: the same answer did not come in full size.
        """
        name = what[1]
        if not answer.truncated:
            return _read_told(name, answer)
        whole = await self._send_question(*what, replace(survey, protocol="tcp"), FULL_BYTES)
        if not isinstance(whole, NameAnswer):
            return NameTold(name, answer.rcode, answer.addresses, answer.size, "cut")
        told = _read_told(name, whole)
        return replace(told, trouble="lost") if lost and whole.size > PACKET_BYTES else told

    async def _send_question(
        self, server: str, name: str, kind: str, survey: NameSurvey, most: int | None = None,
        timing: Timing = TIMING,
    ) -> Reply:  # fmt: skip
        """Give the answer, or in words that there is none."""
        tcp = survey.protocol == "tcp"
        request = question(name, kind, tcp, most)
        outcomes = await self._send_request(server, request, survey, timing)
        return _read_outcome(outcomes[-1], tcp) if outcomes else "no answer"

    async def _send_request(
        self, server: str, request: bytes, survey: NameSurvey, timing: Timing
    ) -> list[OutcomeKind]:
        """Give what came back; once more where the host stood still, which says nothing of the
        server. Raises AgentError where it did again."""
        for _ in range(2):
            outcomes = await self._ask_service(
                survey.protocol, server, DNS_PORT, request, timing, survey.src
            )
            if all(one.failure != STOOD_STILL for one in outcomes):
                return outcomes
        raise AgentError("machine-busy", f"{self._source} stood still while it asked {server}")


def _takes_edns(reply: Reply) -> TypeGuard[NameAnswer]:
    return isinstance(reply, NameAnswer) and reply.rcode not in ("FORMERR", "NOTIMP")


def _read_outcome(outcome: OutcomeKind, tcp: bool) -> Reply:
    if outcome.data:
        return read_answer(outcome.data, tcp) or "no DNS"
    return "refused" if outcome.failure == "refused" else "no answer"


def _read_told(name: str, reply: Reply) -> NameTold:
    if isinstance(reply, str):
        return NameTold(name, reply)
    said = reply.rcode
    if said == "NOERROR" and not reply.addresses:
        said = "no record"
    return NameTold(name, said, tuple(sorted(reply.addresses)), reply.size)


def _join_answers(name: str, found: Iterable[NameTold]) -> NameTold:
    """Join what was told of both families: addresses of either make it an answer."""
    some = sorted(found, key=lambda one: (not one.addresses, one.said != "no record"))
    addresses = tuple(sorted({text for one in some for text in one.addresses}))
    size = max(one.size for one in some)
    trouble = next((one.trouble for one in some if one.trouble), some[0].trouble)
    # Without any address the failure of either is worse than that the other has no record.
    said = some[0].said if addresses else some[-1].said
    return NameTold(name, said, addresses, size, trouble)

"""Agents that answer from what their hosts have written, for a merge.

An order to which there is no answer is *outstanding*: it is noted, and the asker hears that nobody
was asked. A check then rests on what is known, and a flow whose probe itself is missing is not
tested. What is outstanding is what a next round has to ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from netprobe.agent.wire import answers, orders, parts
from netprobe.batch.ideal import MANY_FILES, NO_AGENT, Note, ScriptedAgent
from netprobe.batch.looks import LookKey
from netprobe.batch.told import HostTold
from netprobe.errors import AgentError, bug_words
from netprobe.model import ports as port_sets
from netprobe.model.inventory import Host
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport
from netprobe.probe.agents.decode import Heard, PortOutcome, ProbeReply
from netprobe.probe.agents.fleet import Fleet, TellHost
from netprobe.probe.agents.live_fleet import report_hello
from netprobe.probe.agents.templates import Templates

Answer = TypeVar("Answer")
# Tells why nothing that one host heard of another can be believed (by their names); None: it can.
Doubts = Callable[[str, str], str | None]

NOT_ASKED = "not-asked"
# Answers that prove themselves, whatever clocks say.
_PROOFS = ("nonce", "foreign", "echo")
_OPEN = ("nonce", "foreign", "reflected", "garbled", "silent", "closed", "reset")


class RecordedAgent(ScriptedAgent):
    """An agent that answers as its host did. ``told`` None: it has none, and ``error`` says why."""

    def __init__(self, host: Host, fleet: RecordedFleet, told: HostTold | None, error: AgentError):
        super().__init__(host, 0, fleet.templates)
        self.told = told
        self.error = error
        self._fleet = fleet
        self._hello = None if told is None else told.recording.hello
        self.settled.set()

    @property
    def hello(self) -> answers.HelloLine | None:
        """What the host's agent said of itself; None where it said nothing."""
        # All listeners were open at once, whatever the limit of files: rounds are as planned.
        return None if self._hello is None else self._hello._replace(nofile=MANY_FILES)

    @property
    def alive(self) -> bool:
        """Whether the host has told anything."""
        return self._hello is not None

    async def wait_ready(self) -> object:
        """Raise AgentError where the host has told nothing."""
        if not self.alive:
            raise self.error
        return None

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Give the host's answer to such an order. Raises AgentError where it has none."""
        await self.wait_ready()
        assert self.told is not None
        found = self._find_answer(self.told, order)
        if found is None:
            self._fleet.note_outstanding(self.host.name, order)
            raise self._word_missing()
        assert isinstance(found, answer)
        return found

    def _find_answer(self, told: HostTold, order: Any) -> Any | None:
        if isinstance(order, orders.ListenOrder | orders.HeldOrder):
            return self._find_listening(told, order)
        if isinstance(order, orders.CloseOrder):
            return answers.Closed(order.id)
        if isinstance(order, orders.SeenOrder):
            return self._find_seen(told, order)
        if isinstance(order, orders.StoryOrder):
            return self._find_story(told, order)
        if isinstance(order, orders.WalkOrder):
            return told.find_walk(order)
        if isinstance(order, orders.KeptOrder):
            return answers.PacketsKept(order.id, [], [], 0, [], sure=False)
        return told.find_single(order)

    def _find_listening(
        self, told: HostTold, order: orders.ListenOrder | orders.HeldOrder
    ) -> answers.Listening:
        """Give what became of all ports. Where some are unknown only these are outstanding: an
        agent that still listens at the others would take itself for another run."""
        known: list[parts.ListeningBlock] = []
        missing: list[parts.ListenBlock] = []
        for block in order.blocks:
            request = self._fleet.request_of(block.template)
            found, rest = told.find_block(type(order), block, request)
            known.append(found)
            if rest:
                missing.append(block._replace(ports=list(rest) if block.ports else []))
        if missing:
            self._fleet.note_outstanding(self.host.name, order._replace(blocks=missing))
            raise self._word_missing()
        return answers.Listening(order.id, known)

    def _find_seen(self, told: HostTold, order: orders.SeenOrder) -> answers.Seen | None:
        if not told.seen:
            return None
        arrivals = told.arrivals()
        found = [
            item._replace(order=number, ports=list(common))
            for number in order.orders
            for recorded, ports in self._fleet.looks_of(number)
            for item in arrivals.get(recorded, ())
            if (common := _common_ports(item, ports))
        ]
        joined: dict[tuple[int, str | None], parts.OrderArrivals] = {}
        for item in found:
            key = (item.order, item.reply)
            known = joined.get(key)
            joined[key] = item if known is None else known._replace(
                ports=list(port_sets.normalise((*known.ports, *item.ports))),
                senders=sorted({*known.senders, *item.senders}),
            )  # fmt: skip
        last = told.seen[-1]
        unreached = [one for seen in told.seen for one in seen.unreached]
        return answers.Seen(
            order.id, list(joined.values()), last.half_open, last.strangers, unreached
        )

    def _find_story(self, told: HostTold, order: orders.StoryOrder) -> answers.StoryTold | None:
        by_order = order.proto != "tcp"
        numbers = order.numbers
        if by_order:
            numbers = sorted(
                {recorded for number in numbers for recorded, _ in self._fleet.looks_of(number)}
            )
        asked = order._replace(numbers=numbers)
        if order.numbers and all(map(self._fleet.is_named, order.numbers)):
            asked = asked._replace(own_ports=[])
        found, is_exact = told.find_story(asked)
        # Sequence numbers find what is translated on the way; the host could not know them.
        if found is not None and not is_exact and not by_order:
            self._fleet.note_outstanding(self.host.name, asked)
            heard = found.heard and told.has_requests(order.asker, order.target)
            found = found._replace(heard=heard, awake=False)
        if found is None:
            self._fleet.note_outstanding(self.host.name, asked)
            raise self._word_missing()
        return found

    async def probe(
        self, order: orders.ProbeOrder | orders.EchoOrder, heard: Heard | None = None
    ) -> ProbeReply:
        """Give the host's next look at each port. Raises AgentError where one is missing."""
        await self.wait_ready()
        assert self.told is not None
        there = self._fleet.destination_of(order)
        taken = self.told.looks.take(order, self._fleet.numbered)
        rows = list(taken.rows)
        missing: list[tuple[LookKey, Ports]] = []
        for key, ports in taken.missing:
            weaker = list(self._find_opened(key, ports, there))
            rows += weaker
            left = port_sets.subtract(ports, port_sets.normalise((r.first, r.last) for r in weaker))
            missing += [(key, left)] if left else []
        self._fleet.note_looks(order, taken.orders)
        doubt = self._fleet.doubt(self.host.name, there)
        if doubt is not None:
            proofs = [row for row in rows if row.kind.answer in _PROOFS]
            if heard is not None:
                heard(proofs)
            if len(proofs) < len(rows) or missing:
                raise AgentError("no-overlap", doubt)
        if heard is not None:
            heard(rows)
        if missing:
            self._fleet.note_outstanding(self.host.name, _cut_order(order, missing))
            if taken.is_doubtful:
                words = "heard nothing at its first look, and nobody has asked again so far"
                raise AgentError(NOT_ASKED, f"{self.host.name} {words}")
            raise self._word_unasked(there)
        await asyncio.sleep(0)
        return ProbeReply(rows, taken.own_port)

    def _find_opened(self, key: LookKey, ports: Ports, there: Host | None) -> list[PortOutcome]:
        """Give what a nonce's connect tells of ports that somebody else holds there.

        Whether a connection opens is the same question, and that somebody holds the port was known
        only afterwards.
        """
        told = self._fleet.told_of(there)
        if key.proto != "tcp" or key.mode not in ("connect", "bytes") or told is None:
            return []
        found: list[PortOutcome] = []
        assert self.told is not None
        for other in self.told.looks.keys_to(key.dst):
            if other._replace(mode=key.mode, request=key.request) != key or other.mode != "nonce":
                continue
            for row in self.told.looks.find(other, ports):
                if not told.is_held("tcp", key.dst, row.first):
                    continue
                kind = row.kind
                if kind.answer in _OPEN:
                    kind = kind._replace(op="connect", answer="unasked", failure=None, by=None)
                found.append(row._replace(kind=kind))
        return found

    def _word_missing(self) -> AgentError:
        assert self.told is not None
        if self.told.recording.is_cut:
            words = f"{self.host.name}: its results end early: {self.told.recording.words}"
            return AgentError("results-cut", words)
        if self.told.recording.words:
            return AgentError(NOT_ASKED, f"{self.host.name}: {self.told.recording.words}")
        return AgentError(NOT_ASKED, f"{self.host.name} was not asked this in the rounds so far")

    def _word_unasked(self, there: Host | None) -> AgentError:
        """Say why a probe has no answer: of the host itself, or because of the other end."""
        if there is not None and there.vantage.kind != "none":
            other = self._fleet.agent(there)
            if isinstance(other, RecordedAgent) and not other.alive:
                return other.error
            if isinstance(other, RecordedAgent) and other.told and other.told.recording.is_cut:
                return other._word_missing()
        return self._word_missing()

    def lose(self, error: Exception) -> AgentError:
        """Give the error of flows of which this host wrote what nothing can be made of."""
        words = f"{self.host.name} has written what netprobe cannot work with ({bug_words(error)})"
        return AgentError("no-results", words)

    async def quiet(self) -> None:
        """Nothing is ever out."""


class RecordedFleet(Fleet):
    """The fleet of a merge: ``outstanding`` are the orders that have no answer."""

    # A host has asked again by one order, whose looks follow one another.
    side_by_side = False
    # Hosts tell at the end, when their kernels have given up what nobody completed.
    sees_waiting = False

    def __init__(
        self,
        hosts: Sequence[Host],
        tell: TellHost,
        key: bytes,
        told: Mapping[str, HostTold],
        missing: Mapping[str, str],
        doubts: Doubts,
    ) -> None:
        self.templates = Templates()
        self.outstanding: list[Note] = []
        self._told = told
        self._doubts = doubts
        self._named: set[int] = set()
        self._looks: dict[int, list[tuple[int, Ports]]] = {}
        self._by_address = {text: host for host in hosts for text in host.listed_addresses}
        agents = [self._make_agent(host, missing) for host in hosts]
        super().__init__(agents, self.templates, key, tell)

    def _make_agent(self, host: Host, missing: Mapping[str, str]) -> RecordedAgent:
        if host.vantage.kind == "none":
            return RecordedAgent(host, self, None, NO_AGENT)
        if host.closed is not None:
            return RecordedAgent(host, self, None, AgentError("no-vantage", host.closed))
        words = missing.get(host.name, f"no result file of {host.name} was given")
        return RecordedAgent(host, self, self._told.get(host.name), AgentError("no-results", words))

    def start(self) -> None:
        """Report every host as its results say."""
        for host in self.hosts():
            agent = self.agent(host)
            assert isinstance(agent, RecordedAgent)
            report = _report_host(host, agent)
            self.report_host(replace(report, addresses=host.probing_addresses, zone=host.zone))

    @property
    def numbered(self) -> Mapping[int, parts.NumberedTemplate]:
        """Give the templates of this merge by their numbers."""
        return {one.number: one for one in self.templates.after(0)}

    def request_of(self, template: int) -> bytes:
        """Give the bytes that a template's number stands for."""
        known = self.numbered.get(template)
        return b"" if known is None else known.request

    def note_outstanding(self, host: str, order: Any) -> None:
        """Note an order that a next round has to ask."""
        self.outstanding.append(Note(host, order))

    def renumber_outstanding(
        self, known: Sequence[parts.NumberedTemplate]
    ) -> tuple[list[parts.NumberedTemplate], list[Note]]:
        """Give the packets that the hosts do not know yet, and all that is outstanding with the
        numbers by which they know packets."""
        numbers = {_content_of(one): one.number for one in known}
        fresh: list[parts.NumberedTemplate] = []
        by_own = {0: 0}
        for mine in self.templates.after(0):
            content = _content_of(mine)
            if content not in numbers:
                numbers[content] = len(numbers) + 1
                fresh.append(mine._replace(number=numbers[content]))
            by_own[mine.number] = numbers[content]
        return fresh, [
            Note(one.host, _name_templates(one.order, by_own)) for one in self.outstanding
        ]

    def note_looks(self, order: Any, looks: list[tuple[int, Ports]]) -> None:
        """Note by which orders the host has carried out one of this merge."""
        self._looks.setdefault(order.id, []).extend(looks)
        templates = [self.numbered.get(block.template) for block in getattr(order, "blocks", ())]
        if all(one is not None and one.nonce_at is not None for one in templates):
            self._named.add(order.id)

    def is_named(self, number: int) -> bool:
        """Tell whether the packets of an order of this merge carry a nonce, which names them."""
        return number in self._named

    def looks_of(self, number: int) -> list[tuple[int, Ports]]:
        """Give the host's ids, and their ports, for an id of this merge."""
        return self._looks.get(number, [])

    def destination_of(self, order: orders.ProbeOrder | orders.EchoOrder) -> Host | None:
        """Give the host that an order asks; None where no host of the run has the address."""
        if isinstance(order, orders.EchoOrder):
            return self._by_address.get(order.dsts[0])
        return (
            self.hosts()[order.host] if order.host is not None else self._by_address.get(order.dst)
        )

    def told_of(self, host: Host | None) -> HostTold | None:
        """Give what a host has told; None where it told nothing."""
        return None if host is None else self._told.get(host.name)

    def doubt(self, source: str, there: Host | None) -> str | None:
        """Say why what a source heard of a host proves nothing; None where it counts."""
        if there is None or there.name not in self._told:
            return None
        return self._doubts(source, there.name)


def _report_host(host: Host, agent: RecordedAgent) -> HostReport:
    if host.vantage.kind == "none":
        return HostReport(name=host.name, state="none")
    if agent.told is None or agent.told.recording.hello is None:
        return HostReport(name=host.name, state="failed", words=str(agent.error))
    recording = agent.told.recording
    assert recording.hello is not None
    report = report_hello(host.name, recording.hello)
    if recording.is_cut:
        return replace(report, state="lost", words=f"its results {recording.words}")
    return report


def _common_ports(item: parts.OrderArrivals, ports: Ports) -> Ports:
    if ports == ((0, 0),):
        return port_sets.normalise(item.ports)
    return port_sets.intersect(port_sets.normalise(item.ports), ports)


def _cut_order(order: Any, missing: list[tuple[LookKey, Ports]]) -> Any:
    """Give an order for what is missing only."""
    if isinstance(order, orders.EchoOrder):
        return order
    modes = {(key.mode, key.request): ports for key, ports in missing}
    blocks = [
        parts.ProbeBlock(block.ports and list(ports), block.mode, block.template)
        for block in order.blocks
        for (mode, _), ports in modes.items()
        if mode == block.mode
    ]
    return order._replace(blocks=blocks)


def _content_of(template: parts.NumberedTemplate) -> str:
    """Give what two templates that are the same packet have in common."""
    return repr(template._replace(number=0))


def _name_templates(order: Any, numbers: Mapping[int, int]) -> Any:
    """Give an order with the numbers by which hosts know its packets."""
    if hasattr(order, "blocks"):
        blocks = [one._replace(template=numbers[one.template]) for one in order.blocks]
        return order._replace(blocks=blocks)
    return order._replace(template=numbers[order.template]) if hasattr(order, "template") else order

"""Orders out, observations back: what one source saw on some ports, with the listener it met."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from typing import NamedTuple

from msgspec.structs import replace

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import OutcomeKind, ProbeBlock
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import FlowFacts, Outcome
from netprobe.model.inventory import Host
from netprobe.model.notes import LookNote
from netprobe.model.ports import Ports
from netprobe.model.story import Sight, TrailEntry, TrailStatus
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.decode import PortOutcome, ProbeReply, Reader, join_rows
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.phases import Phase
from netprobe.probe.agents.templates import EMPTY
from netprobe.probe.flows.batches import Part, parts, probe_order
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import (
    LEAST_LOOK_S,
    ONE_WAY_MS,
    PACED_LOOKS,
    ROUND_TRIPS,
    UDP_SOURCES_AT_ONCE,
    ProbeSettings,
    Timing,
)
from netprobe.protocols import Protocol, protocol_for

# Answers that only the destination itself can give.
PROVEN = ("nonce", "echo")


class Observation(FlowFacts, frozen=True):
    """One source's view of some ports of a task, with the facts about the other end.

    ``order`` is the order id that the nonces carry, ``sport`` the UDP port that they were sent from
    where the agent said it; ``earlier`` has both of the looks before. ``stood_for``: nothing was
    sent, because another flow to the same dead host stands for it.
    """

    task: Task
    part: Part
    ports: Ports
    order: int
    sport: int | None = None
    stood_for: bool = False
    earlier: tuple[tuple[int, int | None], ...] = ()

    @property
    def orders(self) -> tuple[tuple[int, int | None], ...]:
        """All orders that asked about the flow, each with the UDP port that it was sent from."""
        return (*self.earlier, (self.order, self.sport))

    @property
    def proven(self) -> bool:
        """Whether no further look can change its verdict.

        Only an answer is proven: silence and refusals need a second look, and so does a port that
        must not answer. What opened late may need a warning.
        """
        answered = self.outcome is not None and self.outcome.answer in PROVEN
        return answered and not self.task.denied and not self.opened_late

    @property
    def opened_late(self) -> bool:
        """Whether the last look opened a connection, and not by its first SYN."""
        kinds = [note.kind for note in self.notes(LookNote)[-1:]]
        late = any(kind.answer is not None and (kind.packets or 0) > 1 for kind in kinds)
        return late and self.task.protocol == "tcp" and self.outcome is not None

    @property
    def silent(self) -> bool:
        """Whether the source got no word at all."""
        return self.outcome is not None and self.outcome.failure == "no-answer"

    @property
    def unanswered(self) -> bool:
        """Whether a TCP connection opened, and our listener's answer to the nonce did not come."""
        answer = self.outcome.answer if self.outcome is not None else None
        nonce = self.task.protocol == "tcp" and self.part.mode == "nonce"
        return nonce and answer in ("silent", "closed", "reset", "other")

    @property
    def lost(self) -> bool:
        """Whether the source got no word, and nobody knows yet where the packet stayed.

        One-way packets need no answer: the listener's word is all there is to have.
        """
        outcome = self.outcome
        if outcome is None or self.conclusion is not None or self.has_left is False:
            return False
        arrived = self.witness is not None and self.witness.socket
        one_way = outcome.failure is None and outcome.answer is None and outcome.refusal is None
        return self.silent or (one_way and not arrived)

    @property
    def came(self) -> Sight:
        """Whether the packets came to the destination, as its recorder says."""
        return "unknown" if self.story is None else self.story.destination_in.seen

    @property
    def arrived(self) -> bool:
        """Whether the destination's agent saw the packet."""
        came = self.came == "yes"
        return came or (self.witness is not None and self.witness.socket)

    def noting(
        self, name: str, note: NamedTuple | None = None, status: TrailStatus = "ok"
    ) -> Observation:
        """Give the same with one more entry in its trail."""
        return replace(self, trail=(*self.trail, TrailEntry(name, status, note)))

    def counting(self, before: Outcome | None, *, packets: bool = True) -> Observation:
        """Give the same with the looks, and packets, of an outcome before counted."""
        now = self.outcome
        if now is None or before is None:
            return self
        total = now.count_looks_of(before)
        return replace(self, outcome=total if packets else replace(total, packets=now.packets))

    def cut(self, ports: Ports) -> Iterator[tuple[bool, Observation]]:
        """Split off the ports that are among these (True) from the others (False)."""
        among = port_sets.intersect(self.ports, ports)
        others = port_sets.subtract(self.ports, ports)
        for is_among, some in ((True, among), (False, others)):
            if some:
                yield is_among, replace(self, ports=some)


class Prober:
    """Sends the orders of one destination's tasks and reads what comes back."""

    def __init__(self, fleet: Fleet, settings: ProbeSettings, answered: Answered) -> None:
        self._fleet = fleet
        self._settings = settings
        self.everything_runs = settings.live
        self.answered = answered
        self.chance = answered.chance
        # What is proven, as it arrives: it counts whatever becomes of its order and of the run.
        self.proven: list[Observation] = []
        # What came and needs a further look: an interrupt says what it was.
        self._unchecked: list[tuple[Part, int, list[PortOutcome]]] = []
        # Orders of checks: what their answers mean is the check's to say.
        self.asked_again: set[int] = set()
        # ICMP answers come from one bucket a prober, but the sockets and softirqs of the
        # destination are shared: at most 30 outstanding over all sources (design 6.7).
        self._paced = asyncio.Semaphore(UDP_SOURCES_AT_ONCE)

    def cut(self, tasks: Iterable[Task], listeners: Listeners) -> list[Part]:
        """Cut tasks into the parts that are one order each."""
        return [part for task in tasks for part in parts(task, listeners, self._fleet.templates)]

    @property
    def wanted_looks(self) -> int | None:
        """How often the user wants silence to be asked; None: as the chance of error demands."""
        return self._settings.looks

    @property
    def fixed_look_ms(self) -> int | None:
        """How long the user wants a look to wait; None: it is learned."""
        return None if self._settings.timeout_s is None else self._settings.look_ms

    def slowest_ms(self, task: Task) -> float | None:
        """Give the slowest round trip so far between a task's ends; None: nothing was answered."""
        return self.answered.slowest_ms(*task.pair)

    def measure_answer_s(self, task: Task, most_s: float) -> float:
        """Give how many seconds an answer may take, by those that came so far; ``most_s`` at
        most."""
        slowest_s = (self.slowest_ms(task) or 0.0) / 1000
        return min(most_s, max(LEAST_LOOK_S, ROUND_TRIPS * slowest_s))

    async def part(
        self, part: Part, timing: Timing | None = None, sport: int | None = None
    ) -> list[Observation]:
        """Run one order; ``timing`` None: as the settings say. ``sport``: our own port."""
        agent = self._fleet.agent(part.task.source)
        number = next(self._fleet.order_ids)
        if timing is not None:
            self.asked_again.add(number)
        # Only the destination may answer; the answer of another host is "foreign".
        host = self._fleet.agent(part.task.wants[0].flow.destination).index
        timing = timing or self.choose_timing(part)
        order = part.make_order(number, source_address(part.task), timing, host)
        if sport is not None and isinstance(order, ProbeOrder):
            order = order._replace(sport=sport)
        proven: list[Observation] = []
        unchecked: list[PortOutcome] = []
        self._unchecked.append((part, number, unchecked))

        def hear(rows: list[PortOutcome]) -> None:
            if part.task.protocol == "tcp" and any(_is_through(row.kind) for row in rows):
                self.answered.note_through(agent.host.name)
            # An answer that proves itself has no ICMP error whose sender would need a route.
            answers = [row for row in rows if row.kind.answer in PROVEN]
            fresh = [one for one in self._read_rows(part, number, answers) if one.proven]
            unchecked.extend(row for row in rows if _is_answered(row.kind))
            proven.extend(fresh)
            self.proven += fresh

        try:
            await self._teach_recorder(part)
            reply = await self._send_order(part, order, hear)
            own = await self._find_own(agent, part.task, reply)
            reader = self._make_reader(agent, part.protocol, part.task, own)
            found = list(read_reply(part, number, reader, reply))
        except asyncio.CancelledError:
            self._note_answers(part.task, [*proven, *self._read_rows(part, number, unchecked)])
            raise
        except Exception as error:
            lost = error if isinstance(error, AgentError) else agent.lose(error)
            return proven + _lose_rest(part, number, proven, lost)
        self._note_answers(part.task, found)
        self.chance.note_lost(sum(map(_count_lost, reply.rows)))
        return found

    def unchecked(self) -> Iterator[Observation]:
        """Give what came and is not proven; a later look at a port comes later."""
        for entry in self._unchecked:
            yield from self._read_rows(*entry)

    def _read_rows(self, part: Part, number: int, rows: list[PortOutcome]) -> Iterator[Observation]:
        agent = self._fleet.agent(part.task.source)
        own = self._fleet.own_addresses(agent.host)
        reader = self._make_reader(agent, part.protocol, part.task, own)
        return read_reply(part, number, reader, ProbeReply(rows))

    async def _send_order(
        self, part: Part, order: ProbeOrder | EchoOrder, hear: Callable[[list[PortOutcome]], None]
    ) -> ProbeReply:
        phase: Phase = "second looks" if order.id in self.asked_again else "probes"
        ends = f"from {part.task.source.name} to {part.task.wants[0].flow.destination.name}"
        with self._fleet.phases.during(phase, ends):
            async with self._paced if part.paced else nullcontext():
                return await self._fleet.agent(part.task.source).probe(order, hear)

    def _note_answers(self, task: Task, found: Iterable[Observation]) -> None:
        for one in found:
            if one.outcome is not None:
                self.answered.note_answer(task.source.name, task.address, one.outcome)
                if _is_through(one.outcome) and one.outcome.icmp is None:
                    self.chance.note_answered(port_sets.count(one.ports) or 1)

    async def _teach_recorder(self, part: Part) -> None:
        """Let the destination's recorder know datagrams that no listener of ours waits for."""
        there = self._fleet.agent(part.task.wants[0].flow.destination)
        if part.paced and there.records and part.template != EMPTY:
            with suppress(AgentError):
                await there.learn_templates()

    def choose_timing(self, part: Part) -> Timing:
        """Choose how long to look at a part first, and how often."""
        timing = self._settings.timing
        if part.paced:
            # Its packets are rationed: one look of three, and one more of what stayed silent.
            return timing._replace(looks=PACED_LOOKS)
        if part.one_way:
            # Nobody answers these packets, and the listener tells at once whether they came.
            short_ms = min(ONE_WAY_MS, timing.look_ms)
            return Timing(short_ms, short_ms, 1)
        return timing

    async def again(
        self,
        seen: Observation,
        timing: Timing | None = None,
        sport: int | None = None,
        *,
        patient: bool = True,
    ) -> list[Observation]:
        """Send the probes of one seen once more; ``timing`` None: one unhurried look. ``patient``:
        a look that a pause may have spoilt is repeated."""
        look_ms = self._settings.look_ms
        timing = timing or Timing(look_ms, look_ms, 1)
        part = seen.part.restrict(seen.task, seen.ports, seen.listener)
        ask = self.part(part, timing, sport) if patient else Prober.part(self, part, timing, sport)
        found = await ask
        return [replace(one, trail=seen.trail + one.trail, earlier=seen.orders) for one in found]

    async def ask(
        self,
        task: Task,
        protocol: str,
        ports: Ports,
        look_ms: int,
        *,
        min_ttl: int | None = None,
        ttl: int | None = None,
    ) -> list[tuple[Ports, Outcome]]:
        """Give one look of a task's source at its address, beside the plan. Raises AgentError.

        ``min_ttl`` and ``ttl`` are for TCP, as in ``ProbeOrder``.
        """
        agent = self._fleet.agent(task.source)
        mode = "connect" if protocol == "tcp" else "send"
        number, source = next(self._fleet.order_ids), source_address(task)
        blocks = [ProbeBlock(list(ports), mode, EMPTY)]
        timing = Timing(look_ms, look_ms, 1)
        order = probe_order(number, protocol, task.address, source, blocks, timing)
        if isinstance(order, ProbeOrder):
            order = order._replace(min_ttl=min_ttl, ttl=ttl)
        reply = await agent.probe(order)
        own = await self._find_own(agent, task, reply)
        reader = self._make_reader(agent, protocol_for(None), task, own)
        return [(row.ports, outcome) for row, outcome in reader.read(reply.rows)]

    async def _find_own(self, agent: AgentMethods, task: Task, reply: ProbeReply) -> frozenset[str]:
        """Find the source's own addresses, as far as the reply's ICMP errors need them."""
        own = self._fleet.own_addresses(agent.host)
        if not own | {task.address} >= set(reply.offenders()):
            route = await agent.route(task.address, source_address(task))
            own |= {route.source} if route.source else frozenset()
        return own

    def _make_reader(
        self, agent: AgentMethods, protocol: Protocol, task: Task, own: frozenset[str]
    ) -> Reader:
        return Reader(
            protocol,
            task.protocol.partition("/")[0],
            task.address,
            own,
            self._fleet.name_of,
            unasked=task.probe is None and task.protocol == "udp",
            blind=task.protocol == "tcp" and not agent.hears_tcp_errors,
        )


def _count_lost(row: PortOutcome) -> int:
    """Count the packets, or connects, that got lost before the one that was answered.

    Kernels make about one ICMP error a second: neither an error nor the silence before it tells of
    loss.
    """
    if not _is_through(row.kind) or row.kind.icmp is not None:
        return 0
    return (max(row.kind.packets or 0, row.looks) - 1) * (row.last - row.first + 1)


def _is_through(kind: OutcomeKind | Outcome) -> bool:
    return kind.answer is not None or kind.failure == "refused"


def _is_answered(kind: OutcomeKind) -> bool:
    """Tell whether anything came that a check may still doubt."""
    return kind.answer not in PROVEN and (_is_through(kind) or kind.icmp is not None)


def read_reply(part: Part, number: int, reader: Reader, reply: ProbeReply) -> Iterator[Observation]:
    """Read every outcome of an order, by the listener that it met."""
    for outcome, rows in join_rows(reader.read(reply.rows)).items():
        _, _, kind, rtt_us, looks = rows[0]
        protocol, icmp = part.task.protocol, outcome.icmp
        note = LookNote(protocol, part.mode, part.template, kind, rtt_us, looks, icmp)
        trail = (TrailEntry("probe", note=note),)
        for some, listener in part.listener(port_sets.union(row.ports for row in rows)):
            yield Observation(
                part.task, part, some, number, reply.own_port,
                outcome=outcome, listener=listener, trail=trail,
            )  # fmt: skip


def _lose_rest(
    part: Part, number: int, proven: list[Observation], error: AgentError
) -> list[Observation]:
    """Make what is not proven of an order untested, because its agent is gone."""
    rest = port_sets.subtract(part.ports, port_sets.union(one.ports for one in proven))
    if not rest and proven:
        return []
    listener, words = part.listeners[0][1], (error.reason, str(error))
    return [
        Observation(part.task, part, rest, number, outcome=None, listener=listener, untested=words)
    ]


def source_address(task: Task, family: int | None = None) -> str | None:
    """Give the address that the inventory wants the source to probe from; None: the kernel chooses.

    ``family`` is that of the address to reach, where it is not the task's.
    """
    return find_source_address(task.source, family or task.family)


def find_source_address(source: Host, family: int) -> str | None:
    """Give the address of this family from which the inventory wants a host to send."""
    usable = (one.text for one in source.source_addresses if one.family == family)
    return next(usable, None)

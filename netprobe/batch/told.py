"""What one host's results say, looked up by what is asked and not by ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from netprobe.agent.wire import answers, orders, parts
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.looks import HostLooks
from netprobe.batch.results import HostRecording
from netprobe.model import ports as port_sets
from netprobe.model.ports import Ports
from netprobe.probe.agents.outcome_rules import OutcomeRules
from netprobe.probe.agents.rules import ANSWERS_TO, check_answer

PROBES = (orders.ProbeOrder, orders.EchoOrder)


class HostTold:
    """One host's recording. Raises ResultsRefused where an answer breaks the rules of the wire.

    ``templates``: what the numbers in its script stand for.
    """

    def __init__(
        self, recording: HostRecording, templates: Mapping[int, parts.NumberedTemplate]
    ) -> None:
        self.recording = recording
        self.templates = templates
        self.looks = HostLooks()
        self._blocks: list[tuple[type[Any], parts.ListenBlock, parts.ListeningBlock]] = []
        self._stories: list[tuple[orders.StoryOrder, answers.StoryTold]] = []
        self._walks: list[tuple[orders.WalkOrder, answers.Walked]] = []
        self._single: dict[tuple[Any, ...], list[Any]] = {}
        self.seen: list[answers.Seen] = []
        for order in recording.orders:
            self._take_order(order, recording.answers.get(getattr(order, "id", -1), ()))

    def _take_order(self, order: Any, answers_to_id: tuple[Any, ...]) -> None:
        # A fault is no answer, and a round of listeners has the id of its end.
        found = tuple(one for one in answers_to_id if isinstance(one, ANSWERS_TO[type(order)]))
        try:
            self._check_answers(order, found)
        except ValueError as error:
            words = f"holds an answer that breaks the rules of the wire ({error})"
            raise ResultsRefused(self.recording.source, words, (self.recording.name,)) from None
        if isinstance(order, PROBES):
            self.looks.add(order, found, self.templates)
        for answer in found:
            self._take_answer(order, answer)

    def _check_answers(self, order: Any, found: tuple[Any, ...]) -> None:
        if isinstance(order, PROBES):
            rules = OutcomeRules(order)
            for answer in found:
                if isinstance(answer, answers.ProbeOutcomes | answers.EchoOutcomes):
                    rules.take(answer)
            return
        for answer in found:
            if isinstance(answer, answers.Seen):
                # The host lists what it has seen of any order.
                every = list({one.order for one in answer.orders})
                check_answer(order._replace(orders=every), answer)
            else:
                check_answer(order, answer)

    def _take_answer(self, order: Any, answer: Any) -> None:
        if isinstance(answer, answers.Listening):
            each = zip(order.blocks, answer.blocks, strict=True)
            self._blocks += [(type(order), block, told) for block, told in each]
        elif isinstance(answer, answers.Seen):
            self.seen.append(answer)
        elif isinstance(answer, answers.StoryTold):
            self._stories.append((order, answer))
        elif isinstance(answer, answers.Walked):
            self._walks.append((order, answer))
        elif not isinstance(order, PROBES):
            self._single.setdefault(_content_of(order), []).append(answer)

    def find_single(self, order: Any) -> Any | None:
        """Give the next answer to such an order, or the last one again; None: it was not asked."""
        known = self._single.get(_content_of(order))
        if not known:
            return None
        return known.pop(0) if len(known) > 1 else known[0]

    def find_walk(self, order: orders.WalkOrder) -> answers.Walked | None:
        """Give a walk to the same address by the same protocol, whatever the port was."""
        for asked, told in reversed(self._walks):
            same = (asked.proto, asked.dst, asked.src) == (order.proto, order.dst, order.src)
            if same and asked.max_ttl >= order.max_ttl:
                hops = told.hops[: order.max_ttl]
                reached = told.reached and len(hops) == len(told.hops)
                return told._replace(hops=hops, reached=reached)
        return None

    def find_block(
        self, kind: type[Any], wanted: parts.ListenBlock, request: bytes
    ) -> tuple[parts.ListeningBlock, Ports]:
        """Give what became of a block's ports, and those about which the host was not asked."""
        rest = port_sets.normalise(wanted.ports) or ((0, 0),)
        found: list[parts.ListeningBlock] = []
        for asked_as, block, told in self._blocks:
            known = self.templates.get(block.template)
            same = (asked_as, block.proto, block.address, block.number) == (
                kind, wanted.proto, wanted.address, wanted.number,
            )  # fmt: skip
            if not same or (known.request if known is not None else b"") != request:
                continue
            common = port_sets.intersect(rest, port_sets.normalise(block.ports) or ((0, 0),))
            if common:
                found.append(_cut_block(told, common, wanted.number))
                rest = port_sets.subtract(rest, common)
        return _join_blocks(found), rest

    def is_held(self, proto: str, address: str, port: int) -> bool:
        """Tell whether somebody else held a port when listeners were to be opened."""
        return any(
            (block.proto, block.address) == (proto, address)
            and any(held.first <= port <= held.last for held in told.held)
            for _, block, told in self._blocks
        )

    def arrivals(self) -> dict[int, list[parts.OrderArrivals]]:
        """Give what the listeners saw, by the orders' ids; later answers hold earlier ones."""
        found: dict[int, list[parts.OrderArrivals]] = {}
        for seen in self.seen:
            fresh: dict[int, list[parts.OrderArrivals]] = {}
            for item in seen.orders:
                fresh.setdefault(item.order, []).append(item)
            found.update(fresh)
        return found

    def has_requests(self, asker: str, target: str) -> bool:
        """Tell whether the recorder saw requests that came from this address to that one."""
        return any(
            (asked.asker, asked.target, asked.sent) == (asker, target, False)
            and any(run.requests for run in answer.runs)
            for asked, answer in self._stories
        )

    def find_story(self, order: orders.StoryOrder) -> tuple[answers.StoryTold | None, bool]:
        """Give what the recorder saw of these ports, and whether it was asked for all numbers.

        None where the host was not asked about one of the ports.
        """
        rest = port_sets.normalise(order.ports) or ((0, 0),)
        told: answers.StoryTold | None = None
        is_exact = True
        for asked, answer in reversed(self._stories):
            # Datagrams without a nonce are known by the port that they were sent from.
            if _describe_packets(asked) != _describe_packets(order) or not set(
                order.own_ports
            ) <= set(asked.own_ports):
                continue
            common = port_sets.intersect(rest, port_sets.normalise(asked.ports) or ((0, 0),))
            if not common:
                continue
            rest = port_sets.subtract(rest, common)
            is_exact = is_exact and set(order.numbers) <= set(asked.numbers)
            part = _cut_story(answer, common)
            told = part if told is None else _join_stories(told, part)
        return (None if rest else told), is_exact


def _content_of(order: Any) -> tuple[Any, ...]:
    return (type(order), *(tuple(one) if isinstance(one, list) else one for one in order[1:]))


def _describe_packets(order: orders.StoryOrder) -> tuple[Any, ...]:
    return (order.proto, order.number, order.asker, order.target, order.sent)


def _cut_ranges(ranges: parts.Ranges, ports: Ports) -> parts.Ranges:
    return list(port_sets.intersect(port_sets.normalise(ranges), ports)) if ranges else []


def _cut_held(held: list[parts.HeldPorts], ports: Ports) -> Iterator[parts.HeldPorts]:
    for one in held:
        for first, last in port_sets.intersect(((one.first, one.last),), ports):
            yield one._replace(first=first, last=last)


def _cut_block(
    told: parts.ListeningBlock, ports: Ports, number: int | None
) -> parts.ListeningBlock:
    if number is not None or ports == ((0, 0),):
        return told
    return told._replace(
        up=_cut_ranges(told.up, ports),
        held=list(_cut_held(told.held, ports)),
        beside=list(_cut_held(told.beside, ports)),
        denied=_cut_ranges(told.denied, ports),
        failed=[
            one._replace(first=first, last=last)
            for one in told.failed
            for first, last in port_sets.intersect(((one.first, one.last),), ports)
        ],
        skipped=_cut_ranges(told.skipped, ports),
    )


def _join_blocks(some: list[parts.ListeningBlock]) -> parts.ListeningBlock:
    return parts.ListeningBlock(
        up=[entry for one in some for entry in one.up],
        held=[entry for one in some for entry in one.held],
        beside=[entry for one in some for entry in one.beside],
        denied=[entry for one in some for entry in one.denied],
        failed=[entry for one in some for entry in one.failed],
        skipped=[entry for one in some for entry in one.skipped],
        nat=any(one.nat for one in some),
    )


def _cut_story(told: answers.StoryTold, ports: Ports) -> answers.StoryTold:
    if ports == ((0, 0),):
        return told
    runs = [run._replace(ports=common) for run in told.runs
            if (common := _cut_ranges(run.ports, ports))]  # fmt: skip
    errors = [one._replace(ports=common) for one in told.errors
              if (common := _cut_ranges(one.ports, ports))]  # fmt: skip
    return told._replace(runs=runs, errors=errors)


def _join_stories(one: answers.StoryTold, other: answers.StoryTold) -> answers.StoryTold:
    return one._replace(
        running=one.running and other.running,
        runs=one.runs + other.runs,
        errors=one.errors + other.errors,
        translated=one.translated + other.translated,
        heard=one.heard or other.heard,
        awake=one.awake or other.awake,
        lost=max(one.lost, other.lost),
        full=one.full or other.full,
    )

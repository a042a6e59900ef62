"""Asks name servers for the names of the installation, as the programs of the sources do.

Where no name is set, a server that must run already, and fails for what it knows by itself, is
asked for the root.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model.names import NameFacts, ServerTold
from netprobe.model.notes import NamesNote
from netprobe.model.plan import AskedName
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.name_questions import (
    DNS_PORT,
    ROOT,
    NameSurvey,
    choose_resolvers,
    make_stranger,
)
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.work import Task


class Names(Check):
    """Asks each source's name servers for names, where a server answered."""

    name = "names"

    def concerns(self, seen: Observation) -> bool:
        """A real name server answered, and names are set, or it failed for its own question."""
        outcome = seen.outcome
        return (
            outcome is not None
            and outcome.answer == "service"
            and seen.task.probe == "dns"
            and seen.ports == ((DNS_PORT, DNS_PORT),)
            and (_has_failed(seen) or bool(_list_names(seen.task)))
        )

    def group(self, seen: Observation) -> Hashable:
        """All sources of a server together: what it tells them is compared."""
        return (seen.task.address, seen.task.protocol)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give every flow what its server told, and what others tell the same source."""
        stranger = make_stranger(scene.fleet.key)
        found = await asyncio.gather(
            *(_ask_flow(seen, scene.fleet.agent(seen.task.source), stranger) for seen in group)
        )
        if _has_differences(found):
            # Before a difference is told: some servers answer otherwise each time.
            found = await asyncio.gather(
                *(
                    _ask_again(seen, facts, scene.fleet.agent(seen.task.source), stranger)
                    for seen, facts in zip(group, found, strict=True)
                )
            )
        # One source for each answer: a thousand sources mostly hear the same.
        alike: dict[Hashable, ServerTold] = {}
        for facts in found:
            if isinstance(facts, NameFacts):
                alike.setdefault(_list_answers(facts.own), facts.own)
        return [
            _note_facts(seen, facts, alike)
            if isinstance(facts, NameFacts)
            else _warn_unasked(seen, facts)
            for seen, facts in zip(group, found, strict=True)
        ]


def _has_failed(seen: Observation) -> bool:
    """Tell whether a server that must run already fails for the question of the probe."""
    said = seen.outcome.said if seen.outcome is not None else None
    return seen.task.existing and (said or "").startswith("SERVFAIL")


def _warn_unasked(seen: Observation, error: AgentError) -> Observation:
    if not _list_names(seen.task):
        return seen
    return replace(seen, warnings=(*seen.warnings, f"no name was asked for: {error}"))


def _list_names(task: Task) -> tuple[AskedName, ...]:
    names = (one for want in task.wants for one in want.flow.block.names)
    return tuple(dict.fromkeys(names))


def _note_facts(
    seen: Observation, facts: NameFacts, alike: Mapping[Hashable, ServerTold]
) -> Observation:
    own = _list_answers(facts.own)
    elsewhere = tuple(told for answers, told in alike.items() if answers != own)
    told = {one.name: list(one.addresses) or one.said for one in facts.own.told}
    if facts.own.root is not None:
        told[ROOT] = facts.own.root
    return replace(seen, names=replace(facts, elsewhere=elsewhere)).noting(
        Names.name, NamesNote(facts.own.server, told)
    )


def _has_differences(found: Iterable[NameFacts | AgentError]) -> bool:
    """Tell whether servers differ, or one server tells sources different things."""
    known = [facts for facts in found if isinstance(facts, NameFacts)]
    told = {_list_views(one) for facts in known for one in (facts.own, *facts.others)}
    return len(told) > 1


def _list_views(told: ServerTold) -> Hashable:
    return tuple((one.name, one.answer) for one in told.told if one.answer is not None)


def _list_answers(told: ServerTold) -> Hashable:
    return tuple((one.name, one.said, one.addresses) for one in told.told)


async def _ask_again(
    seen: Observation, facts: NameFacts | AgentError, agent: AgentMethods, stranger: str
) -> NameFacts | AgentError:
    """Ask all servers of a flow again, for what they answer otherwise then."""
    if isinstance(facts, AgentError):
        return facts
    survey = _make_survey(seen.task, facts.asked, stranger)
    as_programs = replace(survey, src=None)
    alive = [one for one in facts.others if one.alive]
    try:
        own, *others = await asyncio.gather(
            agent.names.find_varying(facts.own, survey),
            *(
                agent.names.find_varying(one, as_programs if one.resolver else survey)
                for one in alive
            ),
        )
    except AgentError as error:
        return error
    dead = [one for one in facts.others if not one.alive]
    return replace(facts, own=own, others=(*others, *dead))


def _make_survey(task: Task, asked: tuple[AskedName, ...], stranger: str) -> NameSurvey:
    return NameSurvey(
        tuple(dict.fromkeys(one.name for one in asked)),
        task.protocol,
        stranger,
        source_address(task),
    )


async def _ask_flow(
    seen: Observation, agent: AgentMethods, stranger: str
) -> NameFacts | AgentError:
    task = seen.task
    blocks = [want.flow.block for want in task.wants]
    asked = _list_names(task)
    siblings = {
        address.text
        for block in blocks
        for _, address in block.destinations
        if address.family == task.family
    } - {task.address}
    survey = _make_survey(task, asked, stranger)
    try:
        own = await agent.names.ask(task.address, survey)
        if not asked:
            return NameFacts((), own)
        resolvers = [
            one
            for one in choose_resolvers((await agent.nameservers()).servers)
            if one != task.address and one not in siblings
        ]
        # Programs leave the address to the kernel.
        as_programs = replace(survey, src=None)
        others = await asyncio.gather(
            *(agent.names.ask(one, survey) for one in sorted(siblings)),
            *(agent.names.ask(one, as_programs) for one in resolvers),
        )
    except AgentError as error:
        return error
    return NameFacts(
        asked, own, tuple(replace(one, resolver=one.server in resolvers) for one in others)
    )

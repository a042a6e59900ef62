"""Which addresses hosts have, and send from, beside those of the inventory. Agents are asked about
failed flows only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from netprobe.errors import AgentError
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.prober import Observation, source_address
from netprobe.probe.flows.room import gather_all
from netprobe.probe.flows.work import Task


async def find_own(observations: Iterable[Observation], agent: AgentMethods) -> set[str]:
    """Find the addresses that did not answer and that the agent's own host has."""
    asked = {one.task.address for one in observations if _has_failed(one)}
    found: set[str] = set()
    if asked and agent.alive:
        with contextlib.suppress(AgentError):
            for address in asked:
                if (await agent.route(address, None)).source == address:
                    found.add(address)
    return found


async def find_senders(
    observations: Iterable[Observation], fleet: Fleet
) -> dict[tuple[str, str], str]:
    """Find from which address a source sends to an address that did not answer it, where that is
    none of the inventory's: by source and address."""
    # Most refused flows pass, and a run may have many of them.
    asked = {
        one.task.pair: one.task
        for one in observations
        if _has_failed(one) and one.task.via is None and not _is_refused(one)
    }
    senders = await gather_all(_find_sender(task, fleet) for task in asked.values())
    return {pair: sender for pair, sender in zip(asked, senders, strict=True) if sender}


async def _find_sender(task: Task, fleet: Fleet) -> str | None:
    agent, listed = fleet.agent(task.source), task.source.listed_addresses
    if not agent.alive or agent.hello is None or source_address(task) is not None:
        return None
    if listed.isdisjoint(agent.hello.addresses):
        return None  # the inventory's is a translated one: which firewall sees which is unknown
    with contextlib.suppress(AgentError):
        sender = (await agent.route(task.address, None)).source
        if sender != task.address and sender not in listed:
            return sender
    return None


def _has_failed(seen: Observation) -> bool:
    return seen.outcome is not None and seen.outcome.answer is None and not seen.task.is_name


def _is_refused(seen: Observation) -> bool:
    outcome = seen.outcome
    return outcome is not None and outcome.failure == "refused" and outcome.icmp is None

"""Hosts that nothing can be found out of: their agents are gone. That is no outage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.judge.verdict import Rules, judge
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import Work

# Why nothing is known, by the name of the host: a reason word, and a sentence.
BlindHosts = dict[str, tuple[str, str]]
STARTING = ("agent-lost", "its agent is starting again")
_KNOWN = ("blocked", "exposed", "inconclusive")


async def find_blind(fleet: Fleet, reached: set[str]) -> BlindHosts:
    """Find the hosts that should have an agent and have none.

    ``reached``: those that had one in this watch, of which these are lost; hosts that have one now
    are added.
    """
    reached |= {agent.host.name for agent in fleet.agents() if agent.alive}
    return {
        agent.host.name: await _find_reason(agent, was_there=agent.host.name in reached)
        for agent in fleet.agents()
        if agent.host.vantage.kind != "none" and not agent.alive
    }


async def _find_reason(agent: AgentMethods, *, was_there: bool) -> tuple[str, str]:
    if not agent.settled.is_set():
        return STARTING
    try:
        await agent.wait_ready()
    except AgentError as error:
        return "agent-lost" if was_there else error.reason, str(error)
    return STARTING


async def find_dead(fleet: Fleet, hosts: Iterable[str], reached: set[str]) -> BlindHosts:
    """Find those of these hosts whose agents answer no beat that is sent now.

    A host that has just died is silent like a cable that is out: only its agent tells them apart.
    """
    named = {*hosts}
    agents = [one for one in fleet.agents() if one.host.name in named and one.alive]
    now = asyncio.get_running_loop().time()
    asked = (agent.count_lost(now, 0.0) for agent in agents)
    await asyncio.gather(*asked, return_exceptions=True)
    blind = await find_blind(fleet, reached)
    return {name: why for name, why in blind.items() if name in named}


def blind_results(plan: Plan, blind: BlindHosts, rules: Rules) -> Iterator[Result]:
    """Give the results of all flows from and to these hosts, not tested.

    Flows to names are left out: which addresses they have is not known.
    """
    work = Work(plan)
    for host in work.destinations if blind else ():
        for want in work.wants(host):
            name = _find_end(want.flow.source.name, host.name, blind)
            if name is not None and want.flow.address.family is not None:
                yield from judge(want.untested(blind[name]), want.order, rules)


def hide(results: Iterable[Result], blind: BlindHosts) -> Iterator[Result]:
    """Give results; failures of flows from and to blind hosts are not known to be any."""
    for one in results:
        name = _find_end(one.source, one.destination, blind)
        if name is None or one.verdict not in _KNOWN:
            yield one
            continue
        reason, words = blind[name]
        yield replace(
            one, verdict="not-tested", state="unknown", reason=reason, proof="none", where=(),
            rejected_by=None, last_hop=None, next_hop=None, because=words, holder=None, story=None,
        )  # fmt: skip


def blind_end(result: Result, blind: BlindHosts) -> str:
    """Give the host because of which nothing is known of a flow."""
    return _find_end(result.source, result.destination, blind) or result.source


def _find_end(source: str, destination: str, blind: BlindHosts) -> str | None:
    return next((name for name in (source, destination) if name in blind), None)

"""The name servers that hosts are configured with: does any of them resolve names?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from netprobe.errors import AgentError
from netprobe.model.names import ResolverFacts
from netprobe.model.plan import HostFlow
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.name_questions import (
    WILDCARD,
    NameSurvey,
    choose_resolvers,
    make_stranger,
)

# What a resolver library asks where resolv.conf names no server (resolv.conf(5)).
LOCAL_SERVER = "127.0.0.1"


async def look_at_resolvers(
    lookups: Iterable[HostFlow], fleet: Fleet
) -> list[tuple[HostFlow, ResolverFacts]]:
    """Ask the configured name servers of every host that has an agent and names to look up.

    Hosts that resolve all of their names, or that have a server which answers, are left out.
    """

    async def look(lookup: HostFlow) -> ResolverFacts | None:
        agent = fleet.agent(lookup.flow.source)
        try:
            return await _look_at_host(lookup, agent, fleet) if agent.alive else None
        except AgentError:
            return None

    some = list(lookups)
    with fleet.phases.during("second looks", "at the name servers of hosts"):
        found = await asyncio.gather(*map(look, some))
    return [(one, facts) for one, facts in zip(some, found, strict=True) if facts is not None]


async def _look_at_host(
    lookup: HostFlow, agent: AgentMethods, fleet: Fleet
) -> ResolverFacts | None:
    """Ask one host. What it resolves by its own means, such as /etc/hosts, needs no server."""
    unresolved = await _find_unresolved(lookup.ends, agent, fleet)
    names = lookup.asked or unresolved
    if not names:
        return None
    servers = choose_resolvers((await agent.nameservers()).servers) or [LOCAL_SERVER]
    survey = NameSurvey(names, "udp", make_stranger(fleet.key))
    told = await asyncio.gather(*(agent.names.ask(one, survey) for one in servers))
    if any(one.resolves for one in told):
        return None
    # Any name may be meant by a wildcard.
    plain = [name for name in lookup.asked if not name.startswith(WILDCARD)]
    unresolved += await _find_unresolved(plain, agent, fleet) if plain else lookup.asked
    silent = not any(one.alive for one in told)
    gateway = (await agent.route(servers[0], None)).gateway if silent else None
    return ResolverFacts(tuple(told), tuple(dict.fromkeys(unresolved)), gateway)


async def _find_unresolved(
    names: Sequence[str], agent: AgentMethods, fleet: Fleet
) -> tuple[str, ...]:
    """List the names for which programs on the host get no address."""
    found = await asyncio.gather(*(fleet.lookups.resolve(agent, name) for name in names))
    return tuple(name for name, told in zip(names, found, strict=True) if not told.addresses)

"""Names that hosts resolve: once in a run, for all who wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from netprobe.agent.wire.host_messages import (
    Nameservers,
    NameserversOrder,
    Resolved,
    ResolveOrder,
)
from netprobe.errors import AgentError
from netprobe.model.names import NameTold, ServerTold
from netprobe.model.plan import HostFlow
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.lookups import LOOKUPS_AT_ONCE
from netprobe.probe.agents.name_questions import NameQuestions, NameSurvey
from netprobe.probe.flows.names import resolve_names
from netprobe.probe.resolvers import look_at_resolvers
from tests.probe.builders import NAMED, SOURCE, TARGET, make_want
from tests.probe.fakes import FakeAgent, FakeFleet

NAME = "b.example.com"
NOTHING = Resolved(1, [], "name-not-resolved", "no answer in 10 s")


async def test_a_name_is_asked_once_for_all_who_wait() -> None:
    """Who stops waiting does not stop the others, and a new run asks anew."""
    agent = FakeAgent(SOURCE, {ResolveOrder: lambda order: NOTHING})
    fleet = FakeFleet([agent])
    first, second = (asyncio.create_task(fleet.lookups.resolve(agent, NAME)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert await second is await fleet.lookups.resolve(agent, NAME) is NOTHING
    assert agent.asked == [ResolveOrder(0, NAME)]
    fleet.begin_run()
    await fleet.lookups.resolve(agent, NAME)
    assert agent.asked == [ResolveOrder(0, NAME)] * 2


async def test_what_the_agent_could_not_ask_is_asked_anew() -> None:
    """A host that has no thread left has one later."""
    agent = FakeAgent(SOURCE)
    fleet = FakeFleet([agent])

    def fail(order: ResolveOrder) -> Any:
        raise AgentError("agent-fault", "no thread left")

    agent.scripts[ResolveOrder] = fail
    with pytest.raises(AgentError):
        await fleet.lookups.resolve(agent, NAME)
    agent.scripts[ResolveOrder] = lambda order: NOTHING

    assert await fleet.lookups.resolve(agent, NAME) is NOTHING


async def test_no_name_waits_within_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time there begins when it is told, and not when a thread has taken it."""
    agent = FakeAgent(SOURCE)
    fleet = FakeFleet([agent])
    gate = asyncio.Event()
    asked: list[str] = []

    async def resolve(self: AgentMethods, name: str) -> Resolved:
        asked.append(name)
        await gate.wait()
        return NOTHING

    monkeypatch.setattr(FakeAgent, "resolve", resolve)
    names = [f"{number}.example.com" for number in range(LOOKUPS_AT_ONCE + 1)]
    looking = asyncio.gather(*(fleet.lookups.resolve(agent, name) for name in names))
    await asyncio.sleep(1)

    assert asked == names[:-1]
    gate.set()
    await looking
    assert asked == names


async def test_a_dead_name_server_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at the host's servers knows what the run has asked; it only asks the servers."""
    agent = FakeAgent(SOURCE, {ResolveOrder: lambda order: NOTHING})
    fleet = FakeFleet([agent, FakeAgent(TARGET)])
    want = make_want(target=NAMED)

    async def tell_servers(self: AgentMethods) -> Any:
        raise AgentError("agent-lost", "enough is known")

    monkeypatch.setattr(FakeAgent, "nameservers", tell_servers)
    await resolve_names([want], fleet)
    await look_at_resolvers([HostFlow(want.flow, want.order, ends=(NAME,))], fleet)

    assert agent.asked == [ResolveOrder(0, NAME)]


async def test_a_name_of_a_setting_and_of_a_host_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ignition's name is a destination of the workers, and a name of the installation, too."""
    scripts = {
        ResolveOrder: lambda order: NOTHING,
        NameserversOrder: lambda order: Nameservers(1, ["10.0.0.53"]),
    }
    agent = FakeAgent(SOURCE, scripts)
    want = make_want(target=NAMED)

    async def ask(self: NameQuestions, server: str, survey: NameSurvey) -> ServerTold:
        return ServerTold("a", server, (NameTold(NAME, "SERVFAIL"),), resolves=False)

    monkeypatch.setattr(NameQuestions, "ask", ask)
    both = HostFlow(want.flow, want.order, ends=(NAME,), asked=(NAME,))
    ((_, facts),) = await look_at_resolvers([both], FakeFleet([agent]))

    assert facts.unresolved == (NAME,)

"""Names, resolved where the probes start."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    Resolved,
    ResolveOrder,
)
from netprobe.model.evidence import Outcome
from netprobe.model.inventory import Address, Host
from netprobe.probe.flows.names import ResolvedNames, resolve_names
from netprobe.probe.flows.work import Via, Want, addresses
from tests.probe.builders import NAMED, SOURCE, TARGET, make_want
from tests.probe.fakes import FakeAgent, FakeFleet, host

NAME = "b.example.com"
BOTH = ["192.0.2.1", "2001:db8::1"]


def want(source: Host = SOURCE, target: Host = NAMED, **more: Any) -> Want:
    return make_want(source=source, target=target, **more)


def agent(
    *addresses: str, words: str = "", source: Host = SOURCE, failure: str | None = None
) -> FakeAgent:
    """A source whose resolver says this."""
    answer = Resolved(1, list(addresses), failure, words)
    return FakeAgent(source, {ResolveOrder: lambda order: answer})


async def resolve(source: FakeAgent, *wants: Want) -> ResolvedNames:
    return await resolve_names(wants, FakeFleet([source, FakeAgent(TARGET)]))


@pytest.mark.parametrize(
    ("own", "usable"),
    [
        (["10.0.0.1"], ["192.0.2.1"]),
        (["fd00::1"], ["2001:db8::1"]),
        (["10.0.0.1", "fd00::1"], BOTH),
        # An inventory may know the source by its name only.
        ([], BOTH),
    ],
)
async def test_a_source_uses_the_families_that_it_lists(own: list[str], usable: list[str]) -> None:
    """A host without IPv6 does not go to an address of it."""
    source = replace(host("a", *own), addresses=host("a", *own).addresses or (Address("a", None),))

    found = await resolve(agent(*BOTH, source=source), want(source))

    assert found.addresses == {("a", NAME): tuple(usable)}
    assert found.failed == {}
    assert found.evidence(want(source)) == []


async def test_every_source_is_asked_once_for_a_name() -> None:
    """Requirements share the answer; two sources may get different ones."""
    first, second = agent("192.0.2.1"), agent("192.0.2.2", source=host("c", "10.0.0.3"))
    wants = [want(), want(ports=((80, 80),)), want(second.host)]

    found = await resolve_names(wants, FakeFleet([first, second]))

    assert found.addresses == {("a", NAME): ("192.0.2.1",), ("c", NAME): ("192.0.2.2",)}
    assert first.asked == second.asked == [ResolveOrder(0, NAME)]


async def test_addresses_and_proxied_names_need_no_resolver() -> None:
    """Only the proxy resolves what goes through it."""
    source = agent("192.0.2.1")
    proxied = replace(want(), via=Via("http://proxy", "http://proxy"))

    found = await resolve(source, want(target=TARGET), proxied)

    assert (found.addresses, source.asked) == ({}, [])
    assert found.evidence(proxied) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (agent(words="Name or service not known", failure="no-name"), "Name or service not known"),
        (
            agent("2001:db8::1"),
            "the name has no address of a family that the source lists",
        ),
    ],
)
async def test_a_name_without_a_usable_address_is_an_outcome(source: FakeAgent, words: str) -> None:
    """The resolver did its work: the flow is tested, and fails here."""
    flow = want(ports=((443, 444),))

    found = await resolve(source, flow)

    (evidence,) = found.evidence(flow)
    assert evidence.outcome == Outcome("resolve", "name-not-resolved", said=words)
    assert (evidence.address, evidence.ports, evidence.untested) == (NAME, ((443, 444),), None)
    assert [entry.name for entry in evidence.trail] == ["name"]


async def test_where_the_source_is_lost_its_names_are_untested() -> None:
    """Nobody asked a resolver."""
    source = agent("192.0.2.1")
    source.lost = True

    found = await resolve(source, want())

    (evidence,) = found.evidence(want())
    assert evidence.outcome is None
    assert evidence.untested == ("agent-lost", "the agent of a was lost")
    assert found.entries(want()) == ()


@pytest.mark.parametrize(
    ("source", "status"), [(agent("192.0.2.1"), "ok"), (agent(words="no such name"), "bad")]
)
async def test_the_trail_says_what_the_resolver_answered(source: FakeAgent, status: str) -> None:
    """Flows to addresses have no such entry."""
    found = await resolve(source, want())

    (entry,) = found.entries(want())
    assert (entry.name, entry.status) == ("name", status)
    assert isinstance(entry.note, Resolved)
    assert entry.note.addresses == (["192.0.2.1"] if status == "ok" else [])
    assert found.entries(want(target=TARGET)) == ()


@pytest.mark.parametrize(
    ("resolved", "probed"),
    [(BOTH, ["2001:db8::1"]), (["192.0.2.1"], [])],
)
async def test_a_row_about_one_family_uses_the_names_addresses_of_it(
    resolved: list[str], probed: list[str]
) -> None:
    """A name that has none of them says nothing of the network: nobody could look."""
    source = replace(host("a", "10.0.0.1", "fd00::1"))
    one, other = want(source), want(source, family=6)

    found = await resolve(agent(*resolved, source=source), one, other)

    assert list(addresses(one, found.addresses)) == resolved
    assert list(addresses(other, found.addresses)) == probed
    untested = [evidence.untested for evidence in found.evidence(other)]
    assert untested == ([] if probed else [("other-family", f"{NAME} has no IPv6 address")])

"""From which address sources send, where the inventory does not have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.model.evidence import Outcome
from netprobe.model.inventory import Host
from netprobe.probe.flows.senders import find_own, find_senders
from tests.probe.builders import SOURCE, TARGET, make_observation, make_task
from tests.probe.fakes import HELLO, FakeAgent, FakeFleet, host, routed

SILENT = Outcome("connect", "no-answer")
REFUSED = Outcome("connect", "refused")
ANSWERED = Outcome("answer", None, answer="nonce")
OTHER = "10.9.0.9"


async def find(
    outcome: Outcome, route: Callable[[Any], Any] | None = None, source: Host = SOURCE, **more: Any
) -> tuple[dict[tuple[str, str], str], int]:
    """What is found, and how many questions it took."""
    script = route or routed(source=OTHER)
    more.setdefault("hello", HELLO._replace(addresses=["10.0.0.1", OTHER]))
    asked = FakeAgent(source, {RouteOrder: script}, **more)
    seen = make_observation(outcome, make_task(source=source))
    found = await find_senders([seen, seen], FakeFleet([asked, FakeAgent(TARGET)]))
    return found, len(asked.orders(RouteOrder))


async def test_a_kernel_that_sends_from_another_address_is_found() -> None:
    """Once for each pair."""
    assert await find(SILENT) == ({("a", "10.0.0.2"): OTHER}, 1)


@pytest.mark.parametrize("sender", ["10.0.0.1", "10.0.0.2", None])
async def test_an_address_of_the_inventory_is_none(sender: str | None) -> None:
    """Nor is that of a host that asks itself, or no route."""
    assert await find(SILENT, routed(source=sender)) == ({}, 1)


@pytest.mark.parametrize("outcome", [ANSWERED, REFUSED])
async def test_only_failures_are_asked_of(outcome: Outcome) -> None:
    """Of thousands of flows that pass nobody needs to know."""
    assert await find(outcome) == ({}, 0)


async def test_an_address_that_the_inventory_chooses_is_used() -> None:
    """The kernel does not choose then. A source without an agent is not asked."""
    chosen = replace(SOURCE, source_addresses=SOURCE.addresses)
    assert await find(SILENT, source=chosen) == ({}, 0)
    assert await find(SILENT, hello=None) == ({}, 0)


async def test_of_a_host_that_is_known_by_a_translated_address_nothing_is_said() -> None:
    """As a virtual machine by its public one: firewalls may see either."""
    assert await find(SILENT, hello=HELLO._replace(addresses=[OTHER])) == ({}, 0)


async def test_addresses_that_the_destination_has_itself_are_found() -> None:
    """Of those that did not answer."""
    target = host("b", "10.0.0.2")
    agent = FakeAgent(target, {RouteOrder: lambda order: routed(source=order.dst)(order)})
    assert await find_own([make_observation(SILENT)], agent) == {"10.0.0.2"}
    assert await find_own([make_observation(ANSWERED)], agent) == set()

"""A worker that stood still while it asked its resolvers says nothing of them."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.host_messages import Nameservers, NameserversOrder, Resolved, ResolveOrder
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.konnectivity.dialling import look_up
from netprobe.konnectivity.findings import Log
from tests.probe.builders import SOURCE
from tests.probe.fakes import FakeAgent, Script, kind, reply


@pytest.mark.parametrize(
    ("failure", "code"),
    [("stood-still", "NAME_NOT_RESOLVED"), ("no-answer", "NAME_SERVERS_SILENT")],
)
async def test_resolvers_of_a_worker_that_stood_still_are_not_silent(
    failure: str, code: str
) -> None:
    """Silence that it could hear is theirs."""
    scripts: dict[type[Any], Script] = {
        NameserversOrder: lambda order: Nameservers(order.id, ["10.0.0.2"]),
        ResolveOrder: lambda order: Resolved(order.id, [], None, "no address"),
        ProbeOrder: lambda order: reply(order, kind(op="answer", failure=failure)),
    }
    _, conclusion = await look_up(FakeAgent(SOURCE, scripts), "api.x.test", Log())
    assert conclusion is not None
    assert conclusion.code == code

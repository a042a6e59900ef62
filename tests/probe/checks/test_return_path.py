"""The destination's own way back, as its kernel says it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import ReturnPath, ReturnPathOrder, RouteOrder
from netprobe.model.evidence import Listener, Outcome
from netprobe.probe.checks.return_path import ReturnPathLook
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene
from tests.probe.fakes import FakeAgent, routed

SILENT = Outcome("connect", "no-answer", left_host=True)


@pytest.mark.parametrize(("nat", "told"), [(False, "network-unreachable"), (True, None)])
async def test_no_way_from_an_address_of_somebody_else_says_nothing(
    nat: bool, told: str | None
) -> None:
    """A floating address is translated on the way; the kernel cannot answer from it."""
    back = ReturnPath(1, None, None, None, None, [], "network-unreachable")
    target = FakeAgent(TARGET, {ReturnPathOrder: lambda order: back._replace(id=order.id)})
    source = FakeAgent(SOURCE, {RouteOrder: routed(source="10.0.0.1")})
    seen = replace(make_observation(SILENT, listener="ours"), listener=Listener("ours", nat=nat))

    (found,) = await look(ReturnPathLook(), make_scene(source, target), seen)

    assert (found.witness and found.witness.reply_failure) == told

"""The destination's own way back, as its kernel says it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import ReturnPath, ReturnPathOrder, RouteOrder
from netprobe.model.evidence import Listener, Outcome, Witness
from netprobe.probe.checks.return_path import ReturnPathLook
from tests.probe.builders import (
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
)
from tests.probe.fakes import FakeAgent, host, routed

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


NO_ROUTE = ReturnPath(1, None, None, None, None, [], "network-unreachable")
ANSWERED = Outcome("answer", None, answer="nonce")


@pytest.mark.parametrize(
    ("seen_from", "socket", "told"),
    [
        (None, False, "network-unreachable"),
        ("10.0.0.254", False, None),
        # Its own packets came as they were sent.
        ("10.0.0.254", True, "network-unreachable"),
    ],
)
async def test_no_way_back_to_a_source_that_may_be_translated_says_nothing(
    seen_from: str | None, socket: bool, told: str | None
) -> None:
    """As another one is: what comes from the router's address can be answered."""
    target = FakeAgent(TARGET, {ReturnPathOrder: lambda order: NO_ROUTE._replace(id=order.id)})
    source = FakeAgent(SOURCE, {RouteOrder: routed(source="10.0.0.1")})
    other = host("c", "10.0.1.1")
    scene = make_scene(source, target, FakeAgent(other))
    silent = make_observation(SILENT, listener="ours", witness=Witness(socket=socket))
    answered = make_observation(
        ANSWERED, make_task(source=other), listener="ours",
        witness=Witness(socket=True, seen_from=seen_from),
    )  # fmt: skip

    (found, _) = await look(ReturnPathLook(), scene, silent, answered)

    assert (found.witness and found.witness.reply_failure) == told

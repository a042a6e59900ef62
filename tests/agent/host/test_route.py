"""The kernel's answer to "how would you get there", without a subprocess."""

from __future__ import annotations

import pytest

from netprobe.agent.host.route import tell_hops, tell_route
from netprobe.agent.wire.host_messages import (
    HopsOrder,
    HopsTold,
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.parts import NextHop
from tests.agent.rig import Agent


def ask(destination: str, source: str | None = None) -> Routed:
    """The answer to one order."""
    agent = Agent()
    tell_route(agent, RouteOrder(3, destination, source))
    (answer,) = agent.sent(Routed)
    assert isinstance(answer, Routed)
    return answer


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_host_reaches_itself_over_loopback(address: str) -> None:
    """Device, source and the device's MTU; the test of other routes needs namespaces."""
    assert ask(address) == Routed(
        3, source=address, dev="lo", mtu=65536, dev_mtu=65536, gateway=None, failure=None
    )


def test_a_given_source_is_kept() -> None:
    """The address that the probe starts from is the user's choice."""
    answer = ask("127.0.0.1", "127.0.0.2")
    assert (answer.source, answer.failure) == ("127.0.0.2", None)


def test_a_source_that_is_not_ours_fails() -> None:
    """It has a failure name and is no exception."""
    assert ask("127.0.0.1", "192.0.2.1").failure is not None


def test_next_hops_are_told_once_for_all_that_have_them() -> None:
    """In the order of the question; an address without a route has none."""
    agent = Agent()
    targets = [("127.0.0.1", None), ("127.0.0.1", "192.0.2.1"), ("127.0.0.2", None), ("::1", None)]
    tell_hops(agent, HopsOrder(3, targets))
    assert agent.sent(HopsTold) == [
        HopsTold(3, [NextHop(None, "lo"), NextHop(None, None)], [0, 1, 0, 0])
    ]

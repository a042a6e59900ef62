"""A coordinator that does not read: the agent waits, loses nothing, and says everything once."""

from __future__ import annotations

import socket
from collections import Counter

import pytest

from bench.agent import AgentProcess, port_order
from netprobe.agent.wire.orders import ProbeOrder

ORDERS = 8000


def _connect(number: int, port: int) -> ProbeOrder:
    return port_order(number, "tcp", "127.0.0.1", (port, port), "connect")


@pytest.mark.slow
@pytest.mark.full
def test_an_agent_nobody_listens_to_loses_nothing() -> None:
    """Far more outcomes than pipe and queue hold are all there, once, when they are read."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        open_port = held.getsockname()[1]
        orders = [_connect(number, 1) for number in range(1, ORDERS + 1)]
        orders[-1] = _connect(ORDERS, open_port)
        agent = AgentProcess([])
        try:
            # Every order is written before the first answer is read: only an agent that never
            # blocks on its output takes them all.
            found = Counter(
                (order.id, outcomes.kinds[run.kind].failure)
                for order, outcomes in agent.probe(orders)
                for run in outcomes.runs
            )
        finally:
            agent.stop()

    assert set(found.values()) == {1}
    assert len(found) == ORDERS
    assert found[ORDERS, None] == 1

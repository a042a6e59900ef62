"""A coordinator that does not read: the agent waits, loses nothing, and says everything once."""

from __future__ import annotations

import socket
from collections import Counter

from bench.agent import AgentProcess, tcp_order

ORDERS = 8000


def test_an_agent_nobody_listens_to_loses_nothing() -> None:
    """Far more outcomes than pipe and queue hold are all there, once, when they are read."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        open_port = held.getsockname()[1]
        orders = [tcp_order(number, "127.0.0.1", [[1, 1]]) for number in range(1, ORDERS + 1)]
        orders[-1] = tcp_order(ORDERS, "127.0.0.1", [[open_port, open_port]])
        agent = AgentProcess([])
        try:
            # Every order is written before the first answer is read: only an agent that never
            # blocks on its output takes them all.
            found = Counter(
                (order["id"], frame["kinds"][run[2]]["failure"])
                for order, frame in agent.probe(orders)
                for run in frame["runs"]
            )
        finally:
            agent.stop()

    assert set(found.values()) == {1}
    assert len(found) == ORDERS
    assert found[ORDERS, None] == 1

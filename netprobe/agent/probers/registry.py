"""The engine of each protocol; its module is imported when its first order comes."""

from importlib import import_module

from ..core.agent import AgentCore
from ..wire.orders import ProbeOrder
from .reports import OrderReport

# Module and class. Echo orders are messages of their own and have their engine in main.py.
ENGINES = {
    "tcp": (".tcp.engine", "TcpEngine"),
    "udp": (".datagram.udp", "UdpEngine"),
    "ipproto": (".datagram.rawip", "RawEngine"),
}


def submit_probe(agent: AgentCore, order: ProbeOrder) -> None:
    """Start a probe order; its outcomes and ``Done`` follow."""
    module, name = ENGINES[order.proto]
    engine = agent.part(getattr(import_module(module, __package__), name))
    report = OrderReport(agent, order.id, 1 + len(order.more))
    engine.submit(order, report)
    for place, other in enumerate(order.more, 2):
        blocks = other.blocks or order.blocks
        one = order._replace(id=other.number, dst=other.dst, host=other.host, blocks=blocks)
        engine.submit(one, report, place)

"""The engine of each protocol; its module is imported when its first order comes."""

from importlib import import_module

from ..core.agent import AgentCore
from ..wire.orders import ProbeOrder, list_singles
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
    singles = list_singles(order)
    report = OrderReport(agent, order.id, len(singles))
    for place, one in enumerate(singles, 1):
        engine.submit(one, report, place)

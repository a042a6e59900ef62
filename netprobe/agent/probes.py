"""Every kind of probe order: one engine each."""

from .echo import EchoEngine
from .rawip import RawEngine
from .tcp import TcpEngine
from .udp import UdpEngine

PROBES = {"tcp": TcpEngine, "udp": UdpEngine, "icmp": EchoEngine, "ipproto": RawEngine}

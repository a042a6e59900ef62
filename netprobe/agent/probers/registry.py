"""Every kind of probe order: one engine each, compiled when its first order comes."""

from typing import Any


def _tcp() -> Any:
    from .tcp.engine import TcpEngine

    return TcpEngine


def _udp() -> Any:
    from .datagram.udp import UdpEngine

    return UdpEngine


def _icmp() -> Any:
    from .echo.engine import EchoEngine

    return EchoEngine


def _ipproto() -> Any:
    from .datagram.rawip import RawEngine

    return RawEngine


# Each gives the class of an engine.
PROBES = {"tcp": _tcp, "udp": _udp, "icmp": _icmp, "ipproto": _ipproto}

"""Every kind of probe order: one engine each, compiled when its first order comes."""

from typing import Any


def _tcp():
    # type: () -> Any
    from .tcp import TcpEngine

    return TcpEngine


def _udp():
    # type: () -> Any
    from .udp import UdpEngine

    return UdpEngine


def _icmp():
    # type: () -> Any
    from .echo import EchoEngine

    return EchoEngine


def _ipproto():
    # type: () -> Any
    from .rawip import RawEngine

    return RawEngine


# Each gives the class of an engine.
PROBES = {"tcp": _tcp, "udp": _udp, "icmp": _icmp, "ipproto": _ipproto}

"""Decides whether a source's software goes directly or through the proxy of the inventory."""

from __future__ import annotations

from dataclasses import replace

from netprobe.model import ports as port_sets
from netprobe.model.inventory import Proxy
from netprobe.model.ports import PortRange
from netprobe.probe.flows.work import Via, Want
from netprobe.protocols.services.no_proxy import decide
from netprobe.protocols.services.proxy_url import parse_proxy
from netprobe.protocols.services.services import service_for

ProxyWay = tuple[Via | None, str | None]


def ways(want: Want) -> list[Want]:
    """Give the want, cut by way where NO_PROXY tells its ports apart."""
    service = service_for(want.service)
    proxy = want.flow.source.proxy_for(want.service)
    if proxy is None or service is None:
        return [want]
    found: dict[ProxyWay, list[PortRange]] = {}
    for port in port_sets.each(want.flow.block.ports):
        found.setdefault(_choose_way(want, proxy, service.speaks_tls(port), port), []).append(
            (port, port)
        )
    if len(found) == 1:
        ((way, _),) = found.items()
        return [_take_way(want, way)]
    return [_take_way(_narrow_flow(want, ranges), way) for way, ranges in found.items()]


def dialled(want: Want) -> str:
    """Give the host that the software is told to dial: its name where one is known."""
    return want.server_name or want.flow.address.text


def _choose_way(want: Want, proxy: Proxy, tls: bool, port: int) -> ProxyWay:
    """Choose the proxy or None, and what decided. Go's rules; HTTP has a variable of its own."""
    variable, url = ("https_proxy", proxy.https_proxy) if tls else ("http_proxy", proxy.http_proxy)
    if not url:
        return None, None
    host = dialled(want)
    decision = decide(host, port, proxy.no_proxy)
    if not decision.proxied:
        return None, f"it goes directly, not through the proxy (no_proxy: {decision.entry})"
    shown = parse_proxy(url, variable)
    said = f"it goes through the proxy {shown} ({variable}; no entry of no_proxy matches {host})"
    return Via(url, str(shown)), said


def _take_way(want: Want, way: ProxyWay) -> Want:
    via, said = way
    return replace(want, via=via, notes=() if said is None else (said,))


def _narrow_flow(want: Want, ranges: list[PortRange]) -> Want:
    """Give the want with these of its ports only."""
    block = want.flow.block
    ports = port_sets.intersect(block.ports, port_sets.normalise(ranges))
    return replace(want, flow=replace(want.flow, block=replace(block, ports=ports)))

"""The request of ``diagnose konnectivity``, checked before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from netprobe.errors import RequestError
from netprobe.model.inventory import Host
from netprobe.protocols.base import is_address
from netprobe.protocols.services.proxy_url import ProxyUrl, decide, parse_proxy, split
from netprobe.protocols.services.tls import Identity, check_files

Publishing = Literal["route", "nodeport", "loadbalancer"]
Flavour = Literal["hypershift", "k0s"]

ROUTE_PORT = 443
AGENT_PORTS = {"k0s": 8132}
AGENT_PORT = 8091
# What kube-apiserver gives to Services unless --service-node-port-range says otherwise.
NODE_PORTS = range(30000, 32768)
# grpc-go closes a handshake that is not finished after exactly 120 s.
MOST_HOLD_S = 115
# With a finished handshake the server keeps the connection; this is for the user's own good.
MOST_HOLD_AUTHENTICATED_S = 3600
DEFAULT_REPEAT = 4

_NAME = re.compile(r"(?!-)[A-Za-z0-9_.-]{1,253}")
_SERVER = re.compile(
    rf"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<host>{_NAME.pattern}))(?::(?P<port>[0-9]{{1,9}}))?"
)


class ProxyRoute(Struct, frozen=True):
    """The way of one worker: ``proxy`` None is direct; ``said`` names the setting that decided.

    ``passed`` is a proxy that is not used, because this ``entry`` of NO_PROXY says so.
    """

    proxy: ProxyUrl | None
    said: str
    passed: ProxyUrl | None = None
    entry: str = ""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """Where the tunnel goes and with what. ``sni`` None: no server name is sent, as Go does it."""

    host: str
    port: int
    publishing: Publishing
    flavour: Flavour | None = None
    sni: str | None = None
    ca: str | None = None
    identity: Identity | None = field(default=None, repr=False)
    repeat: int = DEFAULT_REPEAT
    hold_s: float = 0.0


class TunnelOptions(Struct, frozen=True):
    """The options as they were given."""

    server: str
    publishing: Publishing
    flavour: Flavour | None = None
    hostname: str | None = None
    ca: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    repeat: int = DEFAULT_REPEAT
    hold_s: float = 0.0


def make_tunnel(options: TunnelOptions) -> Tunnel:
    """Check the options. Raises RequestError with the reason."""
    host, port = split_server(options.server)
    certificate, key = options.client_cert, options.client_key
    if (certificate is None) != (key is None):
        raise RequestError("--client-cert and --client-key belong together: give both or neither")
    identity = Identity(certificate, key) if certificate is not None and key is not None else None
    check_files(options.ca, identity)
    sni = options.hostname or (None if is_address(host) else host)
    if options.publishing == "route" and sni is None:
        raise RequestError(
            f"--server {options.server}: a route is found by the server name in the ClientHello, "
            "and for an IP address no name is sent (Go sends none either), so the router can never "
            "route it; give the route's host name as --server, or add --hostname NAME"
        )
    if sni is not None and (is_address(sni) or not _NAME.fullmatch(sni)):
        raise RequestError(f"--hostname {sni}: expected a DNS name")
    return Tunnel(
        host=host,
        port=_choose_port(port, options),
        publishing=options.publishing,
        flavour=options.flavour,
        sni=sni,
        ca=options.ca,
        identity=identity,
        repeat=options.repeat,
        hold_s=_hold_s(options, identity),
    )


def split_server(text: str) -> tuple[str, int | None]:
    """``HOST[:PORT]``; an IPv6 address with a port stands in brackets."""
    wrong = RequestError(f"--server {text}: expected HOST, HOST:PORT or [IPV6]:PORT")
    if is_address(text):
        return text, None
    found = _SERVER.fullmatch(text)
    if found is None:
        raise wrong
    host, port = found["literal"] or found["host"], found["port"]
    if found["literal"] and not is_address(host):
        raise wrong
    if port is not None and not 1 <= int(port) <= 65535:
        raise RequestError(f"--server {text}: port {port}: expected 1 to 65535")
    return host, None if port is None else int(port)


def warn_of_port(tunnel: Tunnel) -> tuple[str, ...]:
    """Warn of a port that no Service has as its nodePort by default; at most one warning."""
    if tunnel.publishing != "nodeport" or tunnel.port in NODE_PORTS:
        return ()
    pods = (AGENT_PORT, *AGENT_PORTS.values())
    whose = (
        f"{tunnel.port} is the port of the pod, which no worker dials, and "
        if (tunnel.port in pods)
        else ""
    )
    return (
        f"port {tunnel.port} with nodeport: {whose}nodePorts are {NODE_PORTS[0]}-{NODE_PORTS[-1]} "
        "by default (a cluster's --service-node-port-range may differ): compare with the Service "
        "konnectivity-server",
    )


def _choose_port(port: int | None, options: TunnelOptions) -> int:
    if port is not None:
        return port
    if options.publishing == "nodeport":
        raise RequestError(
            f"--server {options.server}: --publishing nodeport needs HOST:PORT. 8091 is the port "
            "of the pod, which no worker dials; give the nodePort (30000-32767) of the Service "
            "konnectivity-server, or --proxy-server-port of the DaemonSet konnectivity-agent"
        )
    if options.publishing == "route":
        return ROUTE_PORT
    return AGENT_PORTS.get(options.flavour or "", AGENT_PORT)


def _hold_s(options: TunnelOptions, identity: Identity | None) -> float:
    if identity is None and options.flavour != "k0s" and options.hold_s > MOST_HOLD_S:
        raise RequestError(
            f"--hold {options.hold_s:g}: without a client certificate the hold happens in the "
            "middle of a handshake, which the server itself ends after 120 s; give at most "
            f"{MOST_HOLD_S}, or --client-cert and --client-key"
        )
    if options.hold_s > MOST_HOLD_AUTHENTICATED_S:
        raise RequestError(f"--hold {options.hold_s:g}: at most {MOST_HOLD_AUTHENTICATED_S}")
    return options.hold_s


def choose_via(
    tunnel: Tunnel, wanted: str, host: Host, environment: Mapping[str, str]
) -> ProxyRoute:
    """Tell how a worker gets there, by Go's rules: HTTPS_PROXY and NO_PROXY only.

    ``wanted`` is ``none``, ``env`` or a URL. ``env``: for a host of the inventory its ``proxy:``,
    for this machine the environment of this process.
    """
    if wanted == "none":
        return ProxyRoute(None, "direct (--proxy none)")
    if wanted != "env":
        proxy = parse_proxy(wanted, "--proxy")
        return _decide_route(tunnel, proxy, (), "--proxy")
    if host.proxy is not None:
        given = host.proxy.https_proxy
        if not given:
            return ProxyRoute(None, "direct (the inventory's proxy has no https_proxy)")
        proxy = parse_proxy(given, f"{host.name}: proxy.https_proxy")
        return _decide_route(tunnel, proxy, host.proxy.no_proxy, "https_proxy of the inventory")
    if host.vantage.kind != "local":
        return ProxyRoute(None, "direct (the inventory names no proxy)")
    given = environment.get("HTTPS_PROXY") or environment.get("https_proxy")
    if not given:
        return ProxyRoute(None, "direct (HTTPS_PROXY is not set)")
    entries = split(environment.get("NO_PROXY") or environment.get("no_proxy") or "")
    return _decide_route(tunnel, parse_proxy(given, "HTTPS_PROXY"), entries, "HTTPS_PROXY")


def _decide_route(
    tunnel: Tunnel, proxy: ProxyUrl, entries: tuple[str, ...], what: str
) -> ProxyRoute:
    decision = decide(tunnel.host, tunnel.port, entries)
    if decision.proxied:
        return ProxyRoute(proxy, f"proxy {proxy} ({what})")
    entry = decision.entry or ""
    passed = proxy if entry in entries else None
    return ProxyRoute(None, f"direct (NO_PROXY: {entry})", passed, entry)

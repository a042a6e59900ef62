"""What a reader of a diagnosis may ask about its stages and verdicts; the pages print it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What each stage does, and where it fails, in the order of ``STAGES``.
STAGE_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "clock": (
        "netprobe compares the worker's clock with this machine's",
        "(never: more than 60 s apart is a warning)",
    ),
    "names": (
        "the worker's own resolver; if that fails, every resolver by itself, A and AAAA, UDP and "
        "TCP",
        "the name does not exist, a resolver fails or is silent",
    ),
    "route": ("the worker's routing table", "no route"),
    "tcp": (
        "three connects to every address (with a proxy: to the proxy)",
        "dropped, refused, rejected by ICMP (and by whom), lost now and then",
    ),
    "proxy": (
        "`CONNECT`, as grpc-go does it: HTTPS_PROXY and NO_PROXY only, by Go's rules",
        "407, 403, 5xx, silence; 405 and 501: a web server, no proxy",
    ),
    "tls-small": (
        "a ClientHello of about 517 bytes, one segment",
        "reset, dropped, silent, closed at once, after 3 s, later",
    ),
    "tls-agent-size": (
        "one as large as the real agent's (two segments: its key is post-quantum)",
        "a path that only takes small packets, a box that only reads one segment",
    ),
    "mtu": (
        "only if bytes got lost: the largest segment that passes; needs no ICMP and no root",
        "a black hole inwards or outwards",
    ),
    "identity": (
        "certificate, certificate request, ALPN, the first words after the handshake",
        "the router's default certificate, the kube-apiserver, interception, a wrong port",
    ),
    "control-sni": (
        "the same address with a name that nobody routes",
        "(never: it tells whether the name decides)",
    ),
    "http2": (
        "with `--client-cert`, or where tokens are used: settings, and a call of a method that "
        "does not exist",
        "HTTP/2 ends at a proxy, answers are held back, the certificate is rejected",
    ),
    "fan-out": (
        "`--repeat` further connections get the same answer",
        "one of several back ends is dead, or somebody else",
    ),
    "hold": (
        "with `--hold`: two idle connections are kept, and must still work",
        "idle timers of proxies, forgotten state of firewalls",
    ),
}

# Behind a verdict, what its other words do not say.
NOTES: Final[Mapping[str, str]] = {
    "PACKET_LOSS": "it comes before all other causes, because loss looks like each of them in "
    "turn. Where a connection had to send something again, netprobe makes 40 more connects and "
    "small ClientHellos within a second. What was sent again and then answered was lost, and no "
    "rule stops it. From 10 % the verdict is this one; less is a warning. netprobe names a dead "
    "back end only where this count found no loss.",
    "SNI_NOT_ROUTED_DEFAULT_CERT": "TLS_INTERCEPTED has the same line in the agent's log: "
    "compare the issuer.",
    "TLS_INTERCEPTED": "SNI_NOT_ROUTED_DEFAULT_CERT has the same line in the agent's log: "
    "compare the issuer.",
    "WRONG_SERVICE": "the certificate is for other names, so it was not made for the tunnel, "
    "and it is no interception. Where a self-signed one covers the name, *seen* says what else "
    "tells.",
    "KONN_WRONG_PORT_FRONTEND": "in gRPC mode this port has the same certificate, and "
    "`ProxyService`.",
    "H2_ENDS_AT_PROXY": "the proxy ends TLS and encrypts again, so it cannot show the agent's "
    "certificate to the server.",
    "CERT_UNTRUSTED": "with `--ca` a server whose chain does not verify is a fault, whatever "
    "its subject is, and the verdict names the issuer: this one where nothing else is known of "
    "the server, or where it says that it is Konnectivity; else the verdict of what it is, with "
    "the chain in *seen*. A firewall that inspects signs with a CA of its own, perhaps with the "
    "server's subject; with `konnectivity-signer` as the issuer it is more likely another hosted "
    "cluster, or a renewed CA.",
    "EDGE_BACKEND_REFUSED": "a balancer that tries its target three times, a second apart, "
    "closes after 3 s.",
    "EDGE_CLOSED_IMMEDIATELY": "a router without an endpoint does so, or the server itself.",
    "EDGE_BACKEND_TIMEOUT": "the balancer gives up within 9 s, or the same address answers "
    "another server name, as a router does. One that gives up later and has one answer for all "
    "names looks like a silent server, SERVER_SILENT; `--hold 40` waits for its close.",
    "RST_AFTER_CLIENTHELLO": "one more connection, on which netprobe sends nothing, stays open. "
    "If that ends as well, the verdict is EDGE_CLOSED_IMMEDIATELY. Nothing tells apart whether "
    "the path or the destination resets.",
    "HOLD_CUT_FIN": "tunnels die in quiet hours, as with the other `HOLD_` verdicts; `--hold "
    "60` shows it. Without a client certificate a hold ends at 115 s, because the server ends an "
    "unfinished handshake at 120 s.",
    "FANOUT_ADDRESS_FAILS": "where one of several addresses is dead, the agent connects by the "
    "others, so this is a warning, and the exit status is 0. It costs time: a silent address "
    "that comes first takes its part of 20 s, one whose host is down 3 s; the agent tries the "
    "other family after 0.3 s. Behind TCP the agent does not go on: an address that leads "
    "elsewhere is this fault.",
    "NAME_NOT_RESOLVED": "where a worker only resolves the name differently from others (its "
    "own `/etc/hosts`), a warning names both answers, and *to do* begins with the name.",
    "CERT_INVALID_BY_CLOCK": "the agent's TLS library judges certificates by the clock of its "
    "own host; the server judges that of `--client-cert`.",
    "NO_PROXY_TOO_WIDE": "the direct way fails, NO_PROXY chose it, and the proxy opens a tunnel "
    "(nothing is sent through it). Where the proxy fails too, the direct way's verdict stays, "
    "and names NO_PROXY.",
}

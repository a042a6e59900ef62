"""Every verdict about a Konnectivity tunnel: what it means, what to do, what the agent logs.

``title``, ``because`` and ``remedy`` are filled from the evidence; a word that is missing there is
a bug that the tests find. ``{to}`` is ADDRESS:PORT, or what stands there with a proxy between.
"""

from __future__ import annotations

from dataclasses import dataclass

from netprobe.model.konnectivity import FaultKind, TunnelOutcome


@dataclass(frozen=True, slots=True)
class TunnelVerdict:
    """One verdict. ``stage`` is where it is found, None for a tunnel that is fine."""

    outcome: TunnelOutcome
    kind: FaultKind
    stage: str | None
    title: str
    remedy: str
    logs: str = ""


_DEADLINE = "authentication handshake failed: context deadline exceeded"
_EOF = "authentication handshake failed: EOF"
_UNKNOWN_CA = "x509: certificate signed by unknown authority"

VERDICTS: dict[str, TunnelVerdict] = {
    # The tunnel is fine, as far as it could be seen.
    "KONN_REACHED_MTLS": TunnelVerdict("ok", "none", None,
        "the Konnectivity server answers and asks for the agent's certificate",
        "nothing to do in the network; if agents still do not connect, look at their certificate "
        "(secret konnectivity-agent): it is missing, expired or of another signer",
        "error reading server preface: remote error: tls: certificate required"),
    "KONN_H2_OK": TunnelVerdict("ok", "none", None,
        "the Konnectivity server takes the client certificate and answers gRPC",
        "nothing to do"),
    "KONN_REACHED_TOKEN": TunnelVerdict("ok", "none", None,
        "the Konnectivity server answers gRPC; agents identify themselves by token",
        "nothing to do in the network"),
    # Names.
    "NAME_NOT_FOUND": TunnelVerdict("fault", "names", "names",
        "{host} does not exist for the worker's resolvers",
        "create the DNS record, or associate the private zone with the workers' network; a name "
        "below .hypershift.local exists only in the private zone of the hosted cluster",
        "dial tcp: lookup {host}: no such host"),
    "NAME_SERVER_FAILURE": TunnelVerdict("fault", "names", "names",
        "the worker's resolvers fail to look up {host}",
        "repair the resolver or its upstream: it answers, and says that it cannot",
        "dial tcp: lookup {host}: server misbehaving"),
    "NAME_SERVERS_SILENT": TunnelVerdict("fault", "names", "names",
        "the worker's resolvers do not answer",
        "open UDP and TCP 53 from the worker to its resolvers ({servers}), or correct its "
        "/etc/resolv.conf",
        "dial tcp: lookup {host}: i/o timeout"),
    "NAME_NOT_RESOLVED": TunnelVerdict("fault", "names", "names",
        "{host} gives the worker no address",
        "look at the DNS record and at the worker's /etc/resolv.conf, /etc/hosts and nsswitch.conf",
        "dial tcp: lookup {host}: no such host"),
    # The way there.
    "NO_ROUTE": TunnelVerdict("fault", "routing", "route",
        "the worker has no route to {address}",
        "add a route (or a default route) for {address} on the worker",
        "connect: network is unreachable"),
    "LOCAL_FIREWALL": TunnelVerdict("fault", "firewall", "tcp",
        "the worker's own firewall stops connections to {to}",
        "allow TCP to {to} in the worker's own OUTPUT rules (nft list ruleset)",
        "dial tcp {to}: i/o timeout"),
    "TCP_FILTERED": TunnelVerdict("fault", "firewall", "tcp",
        "connections to {to} are dropped",
        "allow TCP from the workers' network to {to} (security group, network ACL, firewall); with "
        "NodePort the port is the nodePort, not 8091",
        "dial tcp {to}: i/o timeout"),
    "TCP_REFUSED": TunnelVerdict("fault", "server", "tcp",
        "{to} refuses connections: nothing listens there, or a firewall answers for it",
        "look at the endpoints of the Service, at the nodePort, and whether the load balancer has "
        "a healthy target",
        "dial tcp {to}: connect: connection refused"),
    "ICMP_REJECT": TunnelVerdict("fault", "firewall", "tcp",
        "{offender} rejects connections to {to} by ICMP",
        "open TCP port {port} in the firewall of {offender} (firewalld and iptables REJECT answer "
        "like this)",
        "dial tcp {to}: connect: no route to host"),
    "ROUTER_HAS_NO_ROUTE": TunnelVerdict("fault", "routing", "tcp",
        "the router {offender} has no route to {address}",
        "add the route there, or correct the address; some firewalls reject with the same words",
        "dial tcp {to}: connect: network is unreachable"),
    "HOST_UNREACHABLE": TunnelVerdict("fault", "routing", "tcp",
        "{address} is down or not on its network",
        "is the machine up, and is the address right? {offender} finds no such neighbour",
        "dial tcp {to}: connect: no route to host"),
    # Between the worker and its proxy.
    "PROXY_NAME_NOT_RESOLVED": TunnelVerdict("fault", "proxy", "names",
        "the proxy's name {host} gives the worker no address",
        "correct the proxy URL or the worker's DNS",
        "dial tcp: lookup {host}: no such host"),
    "PROXY_UNREACHABLE": TunnelVerdict("fault", "proxy", "tcp",
        "the proxy {to} cannot be reached",
        "allow TCP from the worker to {to}, start the proxy, or correct the URL; the server itself "
        "was not looked at",
        "dial tcp {to}: (the address in the log is the proxy's)"),
    "PROXY_407": TunnelVerdict("fault", "proxy", "proxy",
        "the proxy wants credentials (HTTP 407)",
        "put user and password into the proxy URL (only Basic works: the agent speaks neither NTLM "
        "nor Negotiate), or add {host} to NO_PROXY",
        'failed to do connect handshake, response: "HTTP/1.1 407'),
    "PROXY_403": TunnelVerdict("fault", "proxy", "proxy",
        "the proxy does not allow CONNECT to {host}:{port} (HTTP 403)",
        "allow CONNECT to port {port} in the proxy (SSL_ports, ConnectPort), publish the server by "
        "a route on 443, or add {host} to NO_PROXY",
        'failed to do connect handshake, response: "HTTP/1.1 403'),
    "PROXY_5XX": TunnelVerdict("fault", "proxy", "proxy",
        "the proxy cannot reach {host}:{port} (HTTP {status})",
        "the proxy resolves the name and dials itself: look from there; a private name "
        "(.hypershift.local) belongs into NO_PROXY",
        'failed to do connect handshake, response: "HTTP/1.1 {status}'),
    "PROXY_REFUSED": TunnelVerdict("fault", "proxy", "proxy",
        "the proxy answers CONNECT with HTTP {status}",
        "is this address a proxy? It answers HTTP, but does not open a tunnel",
        'failed to do connect handshake, response: "HTTP/1.1 {status}'),
    "PROXY_NOT_HTTP": TunnelVerdict("fault", "proxy", "proxy",
        "what listens at the proxy's address does not speak HTTP",
        "correct the proxy's port; a port that takes TLS only cannot be used: the agent sends a "
        "plain CONNECT even where the URL says https://"),
    "PROXY_SILENT": TunnelVerdict("fault", "proxy", "proxy",
        "the proxy does not answer CONNECT to {host}:{port}",
        "the proxy waits for the server, or for a name; look at its log, and at its own way to "
        "{host}:{port}; a private name belongs into NO_PROXY"),
    # The ClientHello.
    "RST_AFTER_CLIENTHELLO": TunnelVerdict("fault", "inspection", "tls-small",
        "connections to {to} are reset as soon as the ClientHello is seen",
        "a firewall with inspection does this: exempt {sni} (application 'grpc' or 'unknown-tls') "
        "from inspection",
        "authentication handshake failed: read: connection reset by peer"),
    "CLIENTHELLO_DROPPED": TunnelVerdict("fault", "inspection", "tls-small",
        "the ClientHello to {to} is dropped, whatever its size",
        "TCP opens and data does not pass: exempt {sni} from inspection on the firewalls between; "
        "it is no MTU problem, small segments are lost too", _DEADLINE),
    "REJECTED_AFTER_OPEN": TunnelVerdict("fault", "firewall", "tls-small",
        "{offender} rejects data to {to} by ICMP after the connection has opened",
        "look at the rules of {offender}: it lets the handshake of TCP pass and rejects what "
        "follows", _DEADLINE),
    "PMTU_BLACKHOLE_IN": TunnelVerdict("fault", "mtu", "mtu",
        "packets above {largest} bytes from {address} to the worker are lost",
        "clamp the MSS to {mss} or less on the way (nft: tcp option maxseg size set rt mtu), allow "
        "ICMP fragmentation-needed (IPv6: packet-too-big), or lower the MTU to {largest}",
        _DEADLINE),
    "PMTU_BLACKHOLE_OUT": TunnelVerdict("fault", "mtu", "mtu",
        "ClientHello above {largest} bytes is lost towards {address}",
        "allow ICMP fragmentation-needed (IPv6: packet-too-big) or clamp the MSS to {mss} or less "
        "(nft: tcp option maxseg size set rt mtu), or lower the worker's MTU to {largest}",
        _DEADLINE),
    "LARGE_CLIENTHELLO_FAILS": TunnelVerdict("fault", "inspection", "tls-agent-size",
        "a ClientHello of the agent's size does not pass to {to}, in small segments neither",
        "a box between cannot read a ClientHello of two segments (the agent's has a post-quantum "
        "key): update it, or start the agent with GODEBUG=tlsmlkem=0 (Go 1.23: tlskyber=0)",
        _DEADLINE),
    "SNI_LOST_FRAGMENTED_HELLO": TunnelVerdict("fault", "edge", "tls-agent-size",
        "the router loses the server name when the ClientHello arrives in pieces",
        "the second segment comes later than the router's inspect delay (5 s), or in another TLS "
        "record: repair loss and MTU on the way, or raise ROUTER_INSPECT_DELAY",
        f"{_UNKNOWN_CA} (now and then)"),
    "ANSWER_LOST": TunnelVerdict("fault", "firewall", "tls-small",
        "the server's answer from {to} does not arrive whole, in small segments neither",
        "something between drops packets of the answer: look at loss on the way back", _DEADLINE),
    "SERVER_SILENT": TunnelVerdict("fault", "edge", "tls-small",
        "{to} takes the ClientHello and never answers",
        "the host in front is alive (it acknowledges) and what is behind it is not: look at the "
        "load balancer's back ends and their health checks", _DEADLINE),
    "NOT_TLS": TunnelVerdict("fault", "server", "tls-small",
        "what listens at {to} does not speak TLS",
        "correct host and port: the agent port speaks TLS with HTTP/2",
        "authentication handshake failed: tls: first record does not look like a TLS handshake"),
    "EDGE_CLOSED_IMMEDIATELY": TunnelVerdict("fault", "edge", "tls-small",
        "{to} closes the connection as soon as it has read the ClientHello",
        "the router knows the name but has no endpoint for it, or its allow-list lacks the worker: "
        "look at the route's endpoints (kube-apiserver pods ready?), at ip_allowlist and at "
        "AllowedCIDRBlocks", _EOF),
    "EDGE_BACKEND_REFUSED": TunnelVerdict("fault", "edge", "tls-small",
        "{to} accepts, and closes after about 3 s: its back end refuses",
        "repair the load balancer's pool: the target port, the nodePort, the health check", _EOF),
    "EDGE_BACKEND_TIMEOUT": TunnelVerdict("fault", "edge", "tls-small",
        "{to} accepts, and gives up after {first_s} s: its back end does not answer",
        "allow the load balancer to reach its targets (security group from the balancer to the "
        "nodePort), and turn its health checks on", _EOF),
    # Who answered.
    "SNI_NOT_ROUTED_DEFAULT_CERT": TunnelVerdict("fault", "edge", "identity",
        "the router does not know {sni}: it answers with its default certificate",
        "create the route, correct the host name, or give the right one; an IP address as server "
        "can never be routed", _UNKNOWN_CA),
    "SNI_FELL_THROUGH_TO_KAS": TunnelVerdict("fault", "edge", "identity",
        "the router does not know {sni} and hands the connection to the kube-apiserver",
        "the route lacks the label of the hosted cluster's router, or the host name in "
        "--proxy-server-host is wrong",
        "x509: certificate is valid for kubernetes, ..., not {sni}"),
    "TLS_INTERCEPTED": TunnelVerdict("fault", "inspection", "identity",
        "somebody else's certificate answers for {sni}: TLS is intercepted, or ends before the "
        "server",
        "exempt {sni} from TLS inspection, or use passthrough; the agent's certificate cannot "
        "survive interception, even where the CA is trusted", _UNKNOWN_CA),
    "ALPN_H2_REFUSED": TunnelVerdict("fault", "edge", "identity",
        "TLS ends at {to} without HTTP/2: ALPN h2 is not agreed",
        "use a passthrough or TCP listener, or enable h2 where TLS ends",
        "cannot check peer: missing selected ALPN property"),
    "KONN_WRONG_PORT_FRONTEND": TunnelVerdict("fault", "request", "identity",
        "{to} leads to the front-end port (8090) of the Konnectivity server, not to its agent port",
        "point the Service, route or load balancer at the agent port: 8091",
        "cannot check peer: missing selected ALPN property"),
    "WRONG_SERVICE": TunnelVerdict("fault", "request", "identity",
        "another service answers at {to}: {who}",
        "correct host name and port; for a route look at which Service it points to"),
    "CERT_WRONG_NAME": TunnelVerdict("fault", "certificate", "identity",
        "the Konnectivity server's certificate is not valid for {sni}",
        "correct the publishing host name and have the certificate made again, or this is another "
        "hosted cluster; the certificate names {names}",
        "x509: certificate is valid for konnectivity-server, ..., not {sni}"),
    "CERT_EXPIRED": TunnelVerdict("fault", "certificate", "identity",
        "the Konnectivity server's certificate is not valid now",
        "renew the certificate, or correct the clocks; it is valid from {not_before} to "
        "{not_after}",
        "x509: certificate has expired or is not yet valid"),
    "CERT_UNTRUSTED": TunnelVerdict("fault", "certificate", "identity",
        "the server's certificate does not lead to the CA that was given",
        "is this another hosted cluster, or was its CA renewed? Compare --ca with the CA of the "
        "agent", _UNKNOWN_CA),
    "KONN_CLIENT_CERT_REJECTED": TunnelVerdict("fault", "credentials", "http2",
        "the Konnectivity server rejects the client certificate",
        "the network is fine; renew the agent's certificate: it must be signed by the signer that "
        "the server asks for ({authorities})",
        "error reading server preface: remote error: tls: certificate required"),
    "TLS_REFUSED": TunnelVerdict("fault", "server", "identity",
        "the server refuses the handshake (TLS alert {alert})",
        "compare TLS versions and ciphers of both sides; what answers may be another service",
        "authentication handshake failed: remote error: tls"),
    # Behind TLS.
    "H2_ENDS_AT_PROXY": TunnelVerdict("fault", "edge", "http2",
        "HTTP/2 ends before the Konnectivity server: a proxy answers the call (HTTP {status})",
        "use passthrough: a proxy that ends TLS and HTTP/2 cannot carry the agent's certificate",
        'cannot connect once err="expected one server ID in the context, got []"'),
    "H2_ANSWER_WITHHELD": TunnelVerdict("fault", "edge", "http2",
        "HTTP/2 opens, and the answer to a call never comes",
        "a box between holds response headers back: take it out of the way; the agent would wait "
        "for ever",
        "(nothing more is logged)"),
    "NOT_KONNECTIVITY": TunnelVerdict("fault", "request", "http2",
        "a gRPC server that is not Konnectivity answers at {to}",
        "correct host name and port"),
    "H2_ENDED": TunnelVerdict("fault", "server", "http2",
        "TLS is agreed, and HTTP/2 does not begin",
        "look at what ends TLS at {to}: it agreed on h2 and does not speak it"),
    # Several tries, several addresses.
    "FANOUT_SOME_FAIL": TunnelVerdict("fault", "edge", "fan-out",
        "some connections to {to} fail, others do not",
        "one of several back ends is dead and still gets connections: turn on health checks of the "
        "load balancer and compare its pool with the ready kube-apiserver pods",
        "cannot connect once ... EOF, in turn with 'duplicate server'"),
    "FANOUT_ADDRESS_FAILS": TunnelVerdict("fault", "edge", "fan-out",
        "{host} has {count} addresses, and not all of them work: {bad}",
        "repair or withdraw {bad}; agents that pick it do not connect"),
    "UNSTEADY": TunnelVerdict("unsure", "edge", "fan-out",
        "tries at {to} do not agree",
        "run again with --repeat 30: loss and a dead back end look alike in few tries"),
    # Hold.
    "HOLD_CUT_FIN": TunnelVerdict("fault", "edge", "hold",
        "an idle connection to {to} is closed after {held} s",
        "a proxy's idle timer: raise it (timeout tunnel, client, server) above the agent's "
        "keepalive (HyperShift 30 s, k0s 1 h), or lower the keepalive",
        "could not read stream ... error reading from server: EOF"),
    "HOLD_CUT_RESET": TunnelVerdict("fault", "edge", "hold",
        "an idle connection to {to} is reset after {held} s",
        "a load balancer or a stateful firewall ends idle connections: raise its idle timeout "
        "above the agent's keepalive (HyperShift 30 s, k0s 1 h)",
        "could not read stream ... connection reset by peer"),
    "HOLD_CUT_SILENTLY": TunnelVerdict("fault", "firewall", "hold",
        "a connection to {to} that was idle for {held} s is dead, and nobody said so",
        "a stateful firewall, NAT or load balancer forgot the connection: raise its state timeout, "
        "or turn on its reset for idle connections; a new connection works",
        "keepalive ping failed to receive ACK within timeout"),
    "HOLD_GOAWAY": TunnelVerdict("fault", "server", "hold",
        "the server ends the held connection itself (GOAWAY {goaway})",
        "no fault of the network: the server's own policy; a keepalive below 30 s is refused as "
        "too_many_pings",
        "received prior goaway"),
    # Cases without a conclusion.
    "INCONSISTENT": TunnelVerdict("unsure", "server", "tls-small",
        "tries at {to} fail in different ways",
        "run again with --repeat 30; what was seen is in the evidence"),
    "UNEXPLAINED": TunnelVerdict("unsure", "server", "identity",
        "what answers at {to} fits no known picture",
        "the evidence holds what was seen; give --flavour and --ca for a narrower answer"),
    "NOT_TESTED": TunnelVerdict("not-tested", "none", None,
        "the worker could not be looked from",
        "{fix}"),
}  # fmt: skip

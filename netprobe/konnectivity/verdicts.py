"""Every verdict about a Konnectivity tunnel: what it means, what to do, what the agent logs.

``title``, ``because`` and ``remedy`` are filled from the evidence; a word that is missing there is
a bug that the tests find. ``{to}`` is ADDRESS:PORT, or what stands there with a proxy between.

``logs`` stand only where a real agent wrote them: konnectivity-agent 0.36 (grpc-go 1.83) in the
situations of tests/lab/konnectivity, whose agent_lines.txt has its words; those about the agent's
certificate, ``no application protocol`` and the front-end port against the real server 0.36.
``...`` leaves out what is the agent's own. A line with a word that nobody measured is left out.
"""

from __future__ import annotations

from msgspec import Struct

from netprobe.model.konnectivity import FaultKind, TunnelOutcome, TunnelPlace


class TunnelVerdict(Struct, frozen=True):
    """One verdict. ``stage`` is where it is found, None for a tunnel that is fine."""

    outcome: TunnelOutcome
    kind: FaultKind
    where: TunnelPlace | None
    stage: str | None
    title: str
    remedy: str
    logs: str = ""
    # Nobody answers: ``netprobe explain`` tells on which hop.
    silent: bool = False


_TLS = "authentication handshake failed: "
_DEADLINE = f"{_TLS}context deadline exceeded"
_EOF = f"{_TLS}EOF"
_RESET = f"{_TLS}read tcp ...: read: connection reset by peer"
_X509 = f"{_TLS}tls: failed to verify certificate: x509: {{x509}}"
_DIAL = "dial tcp {to}: {dial_error}"
_LOOKUP = "dial tcp: lookup {host} on ...: no such host"
_CONNECT = 'failed to do connect handshake, response: "HTTP/1.1 {status} ...'
NO_ID = "expected one server ID in the context, got []"
_NO_CERTIFICATE = (
    "error reading server preface: remote error: tls: certificate required (or: write tcp ...: "
    "write: broken pipe, or connection reset by peer)"
)
# What the agent's own hello, which is a large one, ends with; by ``HelloSymptom``.
LARGE_HELLO_LOGS = {
    **dict.fromkeys(("closed", "late-3s", "late"), _EOF),
    **dict.fromkeys(("lost", "mute", "rejected"), _DEADLINE),
    "reset": _RESET,
    "foreign": f"{_TLS}tls: first record does not look like a TLS handshake",
}
# The words of Go for what connect() said; by names of agent/wire/failures.py.
DIAL_ERRORS = {
    "refused": "connect: connection refused",
    "host-unreachable": "connect: no route to host",
    "network-unreachable": "connect: network is unreachable",
    "access-denied": "connect: permission denied",
    "no-answer": "i/o timeout",
}
# The words of grpc-go where ALPN gives no h2.
NO_ALPN = f"{_TLS}credentials: cannot check peer: missing selected ALPN property"
ALPN_REFUSED = f"{_TLS}remote error: tls: no application protocol"

# Added to what else is wrong, where a chain does not lead to the CA that was given.
INSPECTION = (
    "a firewall that inspects TLS looks like this, too: a CA of its own signs a certificate for "
    "whatever is asked; is {issuer} such a CA, of a company or of a firewall's vendor?"
)
VERDICTS: dict[str, TunnelVerdict] = {
    # The tunnel is fine, as far as it could be seen.
    "KONN_REACHED_MTLS": TunnelVerdict("ok", "none", None, None,
        "the Konnectivity server answers and asks for the agent's certificate",
        "nothing to do in the network; if agents still do not connect, look at their certificate "
        "(secret konnectivity-agent): it is missing, expired or of another signer; with 'expected "
        "one server ID' in their log, at the port: the front-end port looks alike without "
        "--client-cert",
        _NO_CERTIFICATE),
    "KONN_H2_OK": TunnelVerdict("ok", "none", None, None,
        "the Konnectivity server takes the client certificate and answers gRPC",
        "nothing to do"),
    "KONN_REACHED_TOKEN": TunnelVerdict("ok", "none", None, None,
        "the Konnectivity server answers gRPC; agents identify themselves by token",
        "nothing to do in the network"),
    # Names.
    "NAME_NOT_FOUND": TunnelVerdict("fault", "names", "name service", "names",
        "{host} does not exist for the worker's resolvers",
        "create the DNS record, or associate the private zone with the workers' network; a name "
        "below .hypershift.local exists only in the private zone of the hosted cluster", _LOOKUP),
    "NAME_SERVER_FAILURE": TunnelVerdict("fault", "names", "name service", "names",
        "the worker's resolvers fail to look up {host}",
        "repair the resolver or its upstream: it answers, and says that it cannot",
        "dial tcp: lookup {host} on ...: server misbehaving"),
    "NAME_SERVERS_SILENT": TunnelVerdict("fault", "names", "name service", "names",
        "the worker's resolvers do not answer",
        "open UDP and TCP 53 from the worker to its resolvers ({servers}), or correct its "
        "/etc/resolv.conf",
        "dial tcp: lookup {host} on ...: read udp ...: i/o timeout", silent=True),
    "NAME_NOT_RESOLVED": TunnelVerdict("fault", "names", "name service", "names",
        "{host} gives the worker no address",
        "look at the DNS record and the worker's /etc/resolv.conf, /etc/hosts and nsswitch.conf"),
    # The way there.
    "NO_ROUTE": TunnelVerdict("fault", "routing", "worker", "route",
        "the worker has no route to {address}",
        "add a route (or a default route) for {address} on the worker", _DIAL),
    "LOCAL_FIREWALL": TunnelVerdict("fault", "firewall", "worker", "tcp",
        "the worker's own firewall stops connections to {to}",
        "allow TCP to {to} in the worker's own OUTPUT rules (nft list ruleset)",
        _DIAL, silent=True),
    "TCP_FILTERED": TunnelVerdict("fault", "firewall", "path or destination", "tcp",
        "connections to {to} are dropped",
        "allow TCP from the workers' network to {to} (security group, network ACL, firewall); with "
        "NodePort the port is the nodePort, not 8091", _DIAL, silent=True),
    "TCP_REFUSED": TunnelVerdict("fault", "server", "destination", "tcp",
        "{to} refuses connections: nothing listens there, or a firewall answers for it",
        "look at the endpoints of the Service, at the nodePort, and whether the load balancer has "
        "a healthy target", _DIAL),
    "ICMP_REJECT": TunnelVerdict("fault", "firewall", "path", "tcp",
        "{offender} rejects connections to {to} by ICMP",
        "open TCP port {port} in the firewall of {offender} (firewalld and iptables REJECT answer "
        "like this)", _DIAL),
    "ROUTER_HAS_NO_ROUTE": TunnelVerdict("fault", "routing", "path", "tcp",
        "the router {offender} has no route to {address}",
        "add the route there, or correct the address; some firewalls reject with the same words",
        _DIAL),
    "HOST_UNREACHABLE": TunnelVerdict("fault", "routing", "destination", "tcp",
        "{address} is down or not on its network",
        "is the machine up, and is the address right? {offender} finds no such neighbour", _DIAL),
    "PACKET_LOSS": TunnelVerdict("fault", "loss", "path", "tcp",
        "some packets between the worker and {to} are lost, and others are not",
        "look for the loss on the way: a bad link, duplex, a queue that overflows, a limit of "
        "packets or of new connections; what else is wrong can be told once it is repaired: run "
        "again then"),
    # Between the worker and its proxy.
    "PROXY_NAME_NOT_RESOLVED": TunnelVerdict("fault", "proxy", "proxy", "names",
        "the proxy's name {host} gives the worker no address",
        "correct the proxy URL or the worker's DNS", _LOOKUP),
    "PROXY_UNREACHABLE": TunnelVerdict("fault", "proxy", "proxy", "tcp",
        "the proxy {to} cannot be reached",
        "allow TCP from the worker to {to}, start the proxy, or correct the URL; the server itself "
        "was not looked at", _DIAL),
    "PROXY_407": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy wants credentials (HTTP 407)",
        "put user and password into the proxy URL (only Basic works: the agent speaks neither NTLM "
        "nor Negotiate), or add {host} to NO_PROXY", _CONNECT),
    "PROXY_403": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy does not allow CONNECT to {host}:{port} (HTTP 403)",
        "allow CONNECT to port {port} in the proxy (SSL_ports, ConnectPort), publish the server by "
        "a route on 443, or add {host} to NO_PROXY", _CONNECT),
    "PROXY_5XX": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy cannot reach {host}:{port} (HTTP {status})",
        "the proxy resolves the name and dials itself: look from there; a private name "
        "(.hypershift.local) belongs into NO_PROXY", _CONNECT),
    "PROXY_REFUSED": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy answers CONNECT with HTTP {status}",
        "is this address a proxy? It answers HTTP, but does not open a tunnel", _CONNECT),
    "PROXY_NOT_HTTP": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "what listens at the proxy's address does not speak HTTP",
        "correct the proxy's port; a port that takes TLS only cannot be used: the agent sends a "
        "plain CONNECT even where the URL says https://"),
    "PROXY_SILENT": TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy does not answer CONNECT to {host}:{port}",
        "the proxy waits for the server, or for a name; look at its log, and at its own way to "
        "{host}:{port}; a private name belongs into NO_PROXY", silent=True),
    "NO_PROXY_TOO_WIDE": TunnelVerdict("fault", "proxy", "worker", "tcp",
        "NO_PROXY entry {entry} sends the agent past its proxy, and directly {host}:{port} is not "
        "reached",
        "take {entry} out of NO_PROXY or narrow it, so that it does not cover {host}: through the "
        "proxy {proxy} the server is reached; or open the direct way: {direct_remedy}",
        "{direct_log}"),
    # The ClientHello.
    "RST_AFTER_CLIENTHELLO": TunnelVerdict("fault", "inspection", "path or destination",
        "tls-small",
        "connections to {to} are reset as soon as the ClientHello is sent",
        "a firewall with inspection does this: exempt {sni} (application 'grpc' or 'unknown-tls') "
        "from inspection; so does a server or load balancer that closes without having read the "
        "ClientHello: look at what listens there, and whether another worker gets further", _RESET),
    "CLIENTHELLO_DROPPED": TunnelVerdict("fault", "inspection", "path", "tls-small",
        "the ClientHello to {to} is dropped, whatever its size",
        "TCP opens and data does not pass: exempt {sni} from inspection on the firewalls between; "
        "it is no MTU problem, small segments are lost too", _DEADLINE, silent=True),
    "REJECTED_AFTER_OPEN": TunnelVerdict("fault", "firewall", "path", "tls-small",
        "{offender} rejects data to {to} by ICMP after the connection has opened",
        "look at the rules of {offender}: it lets the handshake of TCP pass and rejects what "
        "follows", _DEADLINE),
    "PMTU_BLACKHOLE_IN": TunnelVerdict("fault", "mtu", "path", "mtu",
        "packets above {largest} bytes from {address} to the worker are lost",
        "clamp the MSS to {mss} or less on the way (nft: tcp option maxseg size set rt mtu), allow "
        "ICMP fragmentation-needed (IPv6: packet-too-big), or lower the MTU to {largest}",
        _DEADLINE, silent=True),
    "PMTU_BLACKHOLE_OUT": TunnelVerdict("fault", "mtu", "path", "mtu",
        "ClientHello above {largest} bytes is lost towards {address}",
        "allow ICMP fragmentation-needed (IPv6: packet-too-big) or clamp the MSS to {mss} or less "
        "(nft: tcp option maxseg size set rt mtu), or lower the worker's MTU to {largest}",
        _DEADLINE, silent=True),
    "LARGE_CLIENTHELLO_FAILS": TunnelVerdict("fault", "inspection", "path or load balancer",
        "tls-agent-size",
        "a ClientHello of the agent's size does not pass to {to}, a small one does",
        "a box between cannot read a ClientHello of two segments (the agent's has a post-quantum "
        "key): update it, or start the agent with GODEBUG=tlsmlkem=0 (Go 1.23: tlskyber=0)",
        "{large_log}"),
    "SNI_LOST_FRAGMENTED_HELLO": TunnelVerdict("fault", "edge", "load balancer", "tls-agent-size",
        "the router loses the server name when the ClientHello arrives in pieces",
        "the second segment comes later than the router's inspect delay (5 s), or in another TLS "
        "record: repair loss and MTU on the way, or raise ROUTER_INSPECT_DELAY"),
    "ANSWER_LOST": TunnelVerdict("fault", "firewall", "path", "tls-small",
        "the server's answer from {to} does not arrive whole, in small segments neither",
        "something between drops packets of the answer: look at loss on the way back", silent=True),
    "SERVER_SILENT": TunnelVerdict("fault", "edge", "load balancer or server", "tls-small",
        "{to} takes the ClientHello and never answers",
        "the host in front is alive (it acknowledges) and what is behind it is not: look at the "
        "load balancer's back ends and their health checks", _DEADLINE, silent=True),
    "NOT_TLS": TunnelVerdict("fault", "server", "destination", "tls-small",
        "what listens at {to} does not speak TLS",
        "correct host and port: the agent port speaks TLS with HTTP/2",
        f"{_TLS}tls: first record does not look like a TLS handshake"),
    "EDGE_CLOSED_IMMEDIATELY": TunnelVerdict("fault", "edge", "load balancer", "tls-small",
        "{to} closes the connection as soon as it has read the ClientHello",
        "the router knows the name but has no endpoint for it, or its allow-list lacks the worker: "
        "look at the route's endpoints (kube-apiserver pods ready?), at ip_allowlist and at "
        "AllowedCIDRBlocks", _EOF),
    "EDGE_BACKEND_REFUSED": TunnelVerdict("fault", "edge", "load balancer", "tls-small",
        "{to} accepts, and closes after about 3 s: its back end refuses",
        "repair the load balancer's pool: the target port, the nodePort, the health check", _EOF),
    "EDGE_BACKEND_TIMEOUT": TunnelVerdict("fault", "edge", "load balancer", "tls-small",
        "{to} accepts, and gives up after {first_s} s: its back end does not answer",
        "allow the load balancer to reach its targets (security group from the balancer to the "
        "nodePort), and turn its health checks on", _EOF),
    # Who answered.
    "SNI_NOT_ROUTED_DEFAULT_CERT": TunnelVerdict("fault", "edge", "load balancer", "identity",
        "the router does not know {sni}: it answers with its default certificate",
        "create the route, correct the host name, or give the right one; an IP address as server "
        "can never be routed", _X509),
    "SNI_FELL_THROUGH_TO_KAS": TunnelVerdict("fault", "edge", "load balancer", "identity",
        "the router does not know {sni} and hands the connection to the kube-apiserver",
        "the route lacks the label of the hosted cluster's router, or the host name in "
        "--proxy-server-host is wrong", _X509),
    "TLS_INTERCEPTED": TunnelVerdict("fault", "inspection", "path", "identity",
        "somebody else's certificate answers for {sni}: TLS is intercepted, or ends before the "
        "server",
        "a firewall that inspects TLS looks like this: a CA of its own, of a company or of the "
        "firewall's vendor, signs a certificate for whatever is asked (here {issuer}); exempt "
        "{sni} from TLS inspection, or use passthrough; the agent's certificate cannot survive "
        "interception, even where the CA is trusted", _X509),
    "ALPN_H2_REFUSED": TunnelVerdict("fault", "edge", "load balancer", "identity",
        "TLS ends at {to} without HTTP/2: ALPN h2 is not agreed",
        "use a passthrough or TCP listener, or enable h2 where TLS ends", "{alpn_log}"),
    "KONN_WRONG_PORT_FRONTEND": TunnelVerdict("fault", "request", "server", "identity",
        "{to} leads to the front-end port (8090) of the Konnectivity server, not to its agent port",
        "point the Service, route or load balancer at the agent port: 8091 (k0s: 8132)",
        "{alpn_log}"),
    "WRONG_SERVICE": TunnelVerdict("fault", "request", "destination", "identity",
        "another service answers at {to}: {who}",
        "correct host name and port; for a route look at which Service it points to; {inspection}",
        _X509),
    "CERT_WRONG_NAME": TunnelVerdict("fault", "certificate", "server", "identity",
        "the Konnectivity server's certificate is not valid for {sni}",
        "correct the publishing host name and have the certificate made again, or this is another "
        "hosted cluster; the certificate names {names}", _X509),
    "CERT_EXPIRED": TunnelVerdict("fault", "certificate", "server", "identity",
        "the Konnectivity server's certificate is not valid now",
        "renew the certificate, or correct the clocks; it is valid from {not_before} to "
        "{not_after}", _X509),
    "CERT_INVALID_BY_CLOCK": TunnelVerdict("fault", "clock", "worker", "identity",
        "by the worker's clock the server's certificate is {invalidity}",
        "set the worker's clock (NTP); if it is this machine's that is wrong, renew the "
        "certificate: it is valid from {not_before} to {not_after}",
        _X509),
    "CERT_UNTRUSTED": TunnelVerdict("fault", "certificate", "server", "identity",
        "the server's certificate, issued by {issuer}, does not lead to the CA that was given",
        "is this another hosted cluster, or was its CA renewed? Compare the CA that was given with "
        "that of the agent; a firewall that inspects TLS looks alike, with a CA of its own as "
        "issuer", _X509),
    "KONN_CLIENT_CERT_REJECTED": TunnelVerdict("fault", "credentials", "worker", "http2",
        "the Konnectivity server rejects the client certificate",
        "the network is fine; renew the agent's certificate: it must be signed by the signer that "
        "the server asks for ({authorities})", _NO_CERTIFICATE),
    "TLS_REFUSED": TunnelVerdict("fault", "server", "server", "identity",
        "the server refuses the handshake (TLS alert {alert})",
        "compare TLS versions and ciphers of both sides; what answers may be another service"),
    # Behind TLS.
    "H2_ENDS_AT_PROXY": TunnelVerdict("fault", "edge", "load balancer", "http2",
        "HTTP/2 ends before the Konnectivity server: a proxy answers the call",
        "use passthrough: a proxy that ends TLS and HTTP/2 cannot carry the agent's certificate",
        NO_ID),
    "H2_ANSWER_WITHHELD": TunnelVerdict("fault", "edge", "path or load balancer", "http2",
        "HTTP/2 opens, and the answer to a call never comes",
        "a box between holds response headers back: take it out of the way; the agent would wait "
        "for ever",
        "(nothing more is logged)"),
    "NOT_KONNECTIVITY": TunnelVerdict("fault", "request", "destination", "http2",
        "a gRPC server that is not Konnectivity answers at {to}",
        "correct host name and port", NO_ID),
    "H2_ENDED": TunnelVerdict("fault", "server", "destination", "http2",
        "TLS is agreed, and HTTP/2 does not begin",
        "look at what ends TLS at {to}: it agreed on h2 and does not speak it",
        "error reading server preface: EOF"),
    # Several tries, several addresses.
    "FANOUT_SOME_FAIL": TunnelVerdict("fault", "edge", "load balancer", "fan-out",
        "some connections to {to} fail, others do not",
        "one of several back ends is dead and still gets connections: turn on health checks of the "
        "load balancer and compare its pool with the ready kube-apiserver pods"),
    "FANOUT_ADDRESS_FAILS": TunnelVerdict("fault", "edge", "destination", "fan-out",
        "{host} has {count} addresses, and not all of them lead to Konnectivity: {bad}",
        "repair or withdraw {bad}; an agent that picks it does not connect"),
    "UNSTEADY": TunnelVerdict("unsure", "edge", "path or load balancer", "fan-out",
        "tries at {to} do not agree",
        "{again}: loss and a dead back end look alike in few tries"),
    # Hold.
    "HOLD_CUT_FIN": TunnelVerdict("fault", "edge", "load balancer", "hold",
        "an idle connection to {to} is closed after {held} s",
        "a proxy's idle timer: raise it (timeout tunnel, client, server) above the agent's "
        "keepalive (HyperShift 30 s, k0s 1 h), or lower the keepalive",
        "could not read stream: ... error reading from server: EOF"),
    "HOLD_CUT_RESET": TunnelVerdict("fault", "edge", "path or load balancer", "hold",
        "an idle connection to {to} is reset after {held} s",
        "a load balancer or a stateful firewall ends idle connections: raise its idle timeout "
        "above the agent's keepalive (HyperShift 30 s, k0s 1 h)"),
    "HOLD_CUT_SILENTLY": TunnelVerdict("fault", "firewall", "path", "hold",
        "a connection to {to} that was idle for {held} s is dead, and nobody said so",
        "a stateful firewall, NAT or load balancer forgot the connection: raise its state timeout, "
        "or turn on its reset for idle connections; a new connection works", silent=True),
    "HOLD_GOAWAY": TunnelVerdict("fault", "server", "server", "hold",
        "the server ends the held connection itself (GOAWAY {goaway})",
        "no fault of the network: the server's own policy; a keepalive below 30 s is refused as "
        "too_many_pings"),
    # Cases without a conclusion.
    "INCONSISTENT": TunnelVerdict("unsure", "server", "path or destination", "tls-small",
        "tries at {to} fail in different ways",
        "{again}; what was seen is in the evidence"),
    "UNEXPLAINED": TunnelVerdict("unsure", "server", "destination", "identity",
        "what answers at {to} fits no known picture",
        "compare what was seen with the server's own certificate; {narrower}"),
    "NOT_TESTED": TunnelVerdict("not-tested", "none", None, None,
        "the worker could not be looked from",
        "{fix}"),
}  # fmt: skip

_NO_CONNECT = TunnelVerdict("fault", "proxy", "proxy", "proxy",
    "what answers at {proxy} is no proxy for CONNECT (HTTP {status})",
    "it speaks HTTP and takes no CONNECT: a web server, or a proxy where CONNECT is switched off; "
    "correct host and port of the proxy URL, or switch CONNECT on there", _CONNECT)  # fmt: skip

# The same code in other words, where more is known: by code and by ``variant`` of the evidence.
VARIANTS: dict[tuple[str, str], TunnelVerdict] = {
    ("PROXY_407", "rejected"): TunnelVerdict("fault", "proxy", "proxy", "proxy",
        "the proxy rejects the credentials of its URL (HTTP 407)",
        "correct user and password in the proxy URL (only Basic works: the agent speaks neither "
        "NTLM nor Negotiate), or add {host} to NO_PROXY", _CONNECT),
    ("PROXY_5XX", "no-connect"): _NO_CONNECT,
    ("PROXY_REFUSED", "no-connect"): _NO_CONNECT,
    ("RST_AFTER_CLIENTHELLO", "local"): TunnelVerdict("fault", "server", "destination", "tls-small",
        "what listens at {to} resets connections as soon as the ClientHello is sent",
        "the worker reaches {to} without leaving itself: look at what listens there (ss -ltnp), or "
        "at the pod where NAT leads to one; it closes without having read the ClientHello",
        _RESET),
    ("EDGE_BACKEND_TIMEOUT", "by-name"): TunnelVerdict("fault", "edge", "load balancer",
        "tls-small",
        "{to} answers for other names, and never for {sni}: its back end does not answer",
        "look at the endpoints behind {sni}, and allow the load balancer or router to reach them "
        "(security group, nodePort); turn its health checks on",
        f"{_EOF} (or: context deadline exceeded)"),
    ("CERT_UNTRUSTED", "another-ca"): TunnelVerdict("fault", "inspection", "path or destination",
        "identity",
        "{issuer} signed the certificate for {sni}, and not the CA that was given: TLS is "
        "inspected on the way, or another server answers",
        "a firewall that inspects TLS looks like this: a CA of its own signs a certificate for "
        "whatever is asked; if {issuer} is a CA of a company or of a firewall's vendor, exempt "
        "{sni} from inspection: the agent's certificate cannot survive it; if it is the cluster's "
        "own, the CA that was given is of another cluster or has been renewed: compare it with the "
        "agent's", _X509),
    ("EDGE_CLOSED_IMMEDIATELY", "at-once"): TunnelVerdict("fault", "server",
        "load balancer or server", "tls-small",
        "{to} accepts connections and ends them at once, without a byte",
        "the server itself does this, or a load balancer that has no target or whose allow-list "
        "lacks the worker: look at what listens there, and at the pods and endpoints behind it",
        f"{_EOF} (or: read tcp ...: read: connection reset by peer)"),
}  # fmt: skip

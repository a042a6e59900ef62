"""What can go wrong between a worker and the Konnectivity server, and the verdict it must get.

``rows`` are the rows of the table of 24 situations that a situation reproduces; one without a row
is a failure beside that table. ``{edge}`` is the edge's address of the family in its URL form.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.lab.konnectivity.world import EDGE4, NAME, PASSWORD

LB = ("--publishing", "loadbalancer")
NODE = ("--publishing", "nodeport")
ROUTE = ("--publishing", "route", "--hostname", NAME)
K0S = ("--publishing", "loadbalancer", "--flavour", "k0s")
BOTH = (4, 6)
CERT = ("--client-cert", "{folder}/agent.pem", "--client-key", "{folder}/agent.pem")
NEIGHBOUR = ("--client-cert", "{folder}/neighbour.pem", "--client-key", "{folder}/neighbour.pem")
STRANGER = ("--client-cert", "{folder}/stranger.pem", "--client-key", "{folder}/stranger.pem")


@dataclass(frozen=True)
class Situation:
    """One situation. ``families`` empty: names decide. ``quick``: in every test run.

    ``says``: in the JSON of the worker. ``proxy``: of the worker in its inventory.
    """

    name: str
    rows: tuple[int, ...]
    words: tuple[str, ...]
    code: str
    status: int = 1
    families: tuple[int, ...] = BOTH
    host: str = "worker"
    quick: bool = False
    says: str = ""
    proxy: dict[str, object] | None = None


def _at(port: int) -> tuple[str, str]:
    return ("--server", f"{{edge}}:{port}")


SITUATIONS = (
    Situation("healthy, direct", (1,), (*_at(8091), *NODE), "KONN_REACHED_MTLS", 0, quick=True),
    Situation("healthy, OpenShift router", (1,), (*_at(443), *ROUTE), "KONN_REACHED_MTLS", 0),
    Situation("healthy, HCP router", (1,), (*_at(8443), *ROUTE), "KONN_REACHED_MTLS", 0),
    Situation("healthy, name of both families", (1,), ("--server", NAME, "--publishing", "route"),
              "KONN_REACHED_MTLS", 0, (), quick=True),
    Situation("healthy, TLS 1.2 only", (1,), (*_at(8191), *NODE), "KONN_REACHED_MTLS", 0),
    Situation("healthy, with its CA", (1,), (*_at(8091), *NODE, "--ca", "{folder}/signer.crt"),
              "KONN_REACHED_MTLS", 0),
    Situation("client certificate of another signer", (2,), (*_at(8091), *NODE, *STRANGER),
              "KONN_CLIENT_CERT_REJECTED", says="alert 48", quick=True),
    Situation("client certificate of another cluster", (2,), (*_at(8091), *NODE, *NEIGHBOUR),
              "KONN_CLIENT_CERT_REJECTED"),
    Situation("valid client certificate", (3,), (*_at(8091), *NODE, *CERT), "KONN_H2_OK", 0,
              says="unknown method", quick=True),
    Situation("k0s", (4,), (*_at(8132), *K0S), "KONN_REACHED_TOKEN", 0, says="unknown method",
              quick=True),
    Situation("k0s, flavour not given", (4,), (*_at(8132), *LB), "KONN_REACHED_TOKEN", 0),
    Situation("front-end port 8090", (5,), (*_at(8090), *LB), "KONN_WRONG_PORT_FRONTEND"),
    Situation("server without ALPN", (6,), (*_at(8194), *LB), "ALPN_H2_REFUSED"),
    Situation("SYN dropped", (7,), (*_at(20001), *NODE), "TCP_FILTERED", quick=True),
    Situation("reset by a firewall", (8,), (*_at(20002), *NODE), "TCP_REFUSED"),
    Situation("closed port", (8,), (*_at(19999), *NODE), "TCP_REFUSED", quick=True),
    Situation("rejected, administratively", (9,), (*_at(20003), *NODE), "ICMP_REJECT", quick=True),
    Situation("rejected, host unreachable", (9,), (*_at(20004), *NODE), "ICMP_REJECT"),
    Situation("rejected by the server itself", (9,), (*_at(20018), *NODE), "ICMP_REJECT"),
    Situation("the worker's own firewall", (), (*_at(20019), *NODE), "LOCAL_FIREWALL"),
    Situation("reset after the ClientHello", (10,), (*_at(20005), *NODE), "RST_AFTER_CLIENTHELLO",
              quick=True),
    Situation("ClientHello dropped", (11,), (*_at(20006), *NODE), "CLIENTHELLO_DROPPED"),
    Situation("ClientHello rejected by ICMP", (), (*_at(20007), *NODE), "REJECTED_AFTER_OPEN"),
    Situation("MTU black hole inwards, 1,000", (12,), (*_at(20008), *NODE), "PMTU_BLACKHOLE_IN",
              says="packets of 1,000 bytes pass", quick=True),
    Situation("MTU black hole inwards, 1,400", (12,), (*_at(20010), *NODE), "PMTU_BLACKHOLE_IN",
              says="packets of 1,400 bytes pass"),
    Situation("MTU black hole outwards, 1,000", (13,), (*_at(20011), *NODE), "PMTU_BLACKHOLE_OUT",
              says="packets of 1,000 bytes pass"),
    Situation("MTU black hole outwards, 1,400", (13,), (*_at(20009), *NODE), "PMTU_BLACKHOLE_OUT",
              says="packets of 1,400 bytes pass"),
    Situation("answer lost, whatever its size", (), (*_at(20017), *NODE), "SERVER_SILENT"),
    Situation("route without endpoints", (14,),
              (*_at(443), "--publishing", "route", "--hostname", "empty.apps.lab.test"),
              "EDGE_CLOSED_IMMEDIATELY", quick=True),
    Situation("HCP router without KAS route", (14,),
              (*_at(8444), "--publishing", "route", "--hostname", "nobody.apps.lab.test"),
              "EDGE_CLOSED_IMMEDIATELY"),
    Situation("shared ingress, no match", (14,),
              (*_at(8445), "--publishing", "route", "--hostname", "nobody.apps.lab.test"),
              "EDGE_CLOSED_IMMEDIATELY"),
    Situation("back end refuses", (15,), (*_at(18092), *LB), "EDGE_BACKEND_REFUSED", quick=True),
    Situation("back end black-holed", (16,), (*_at(18093), *LB), "EDGE_BACKEND_TIMEOUT"),
    Situation("back end silent", (), (*_at(18095), *LB), "SERVER_SILENT"),
    Situation("name not routed, default certificate", (17,),
              (*_at(443), "--publishing", "route", "--hostname", "nobody.apps.lab.test"),
              "SNI_NOT_ROUTED_DEFAULT_CERT", quick=True),
    Situation("name not routed, company's default certificate", (17,),
              (*_at(444), "--publishing", "route", "--hostname", "nobody.apps.lab.test"),
              "SNI_NOT_ROUTED_DEFAULT_CERT"),
    Situation("address at a router, no name sent", (17,), (*_at(443), *LB),
              "SNI_NOT_ROUTED_DEFAULT_CERT"),
    Situation("name unmatched on the HCP router", (18,),
              (*_at(8443), "--publishing", "route", "--hostname", "nobody.apps.lab.test"),
              "SNI_FELL_THROUGH_TO_KAS", quick=True),
    Situation("name of the ignition route", (),
              (*_at(8443), "--publishing", "route", "--hostname", "ignition.apps.lab.test"),
              "WRONG_SERVICE"),
    Situation("second segment later than the router waits", (19,), (*_at(20443), *ROUTE),
              "SNI_LOST_FRAGMENTED_HELLO"),
    Situation("intercepted, http/1.1", (20,), (*_at(18096), *ROUTE), "TLS_INTERCEPTED", quick=True),
    Situation("intercepted, no ALPN", (20, 21), (*_at(18097), *ROUTE), "TLS_INTERCEPTED"),
    Situation("intercepted, h2 encrypted again", (20,), (*_at(18098), *ROUTE), "TLS_INTERCEPTED"),
    Situation("an application's own certificate", (), (*_at(18107), *ROUTE), "WRONG_SERVICE",
              quick=True),
    Situation("self-signed for the asked name", (), (*_at(18108), *ROUTE), "WRONG_SERVICE"),
    Situation("TLS ends with the right certificate, no h2", (21,), (*_at(18099), *LB),
              "ALPN_H2_REFUSED", quick=True),
    Situation("HTTP/2 ends at a proxy", (), (*_at(18100), *LB), "H2_ENDS_AT_PROXY"),
    Situation("another gRPC server", (), (*_at(18101), *LB), "NOT_KONNECTIVITY"),
    Situation("answer to the call withheld", (), (*_at(18102), *LB), "H2_ANSWER_WITHHELD"),
    Situation("certificate for another name", (), (*_at(8192), *LB), "CERT_WRONG_NAME"),
    Situation("certificate expired", (), (*_at(8193), *LB), "CERT_EXPIRED"),
    Situation("certificate of another cluster", (),
              (*_at(8091), *LB, "--ca", "{folder}/other.crt"), "CERT_UNTRUSTED"),
    Situation("proxy lets it through", (22,),
              (*_at(443), *ROUTE, "--proxy", "http://{edge}:8888"), "KONN_REACHED_MTLS", 0,
              quick=True),
    Situation("proxy with credentials", (22,),
              (*_at(443), *ROUTE, "--proxy", f"http://agent:{PASSWORD}@{{edge}}:3128"),
              "KONN_REACHED_MTLS", 0),
    Situation("proxy wants credentials", (22,),
              (*_at(443), *ROUTE, "--proxy", "http://{edge}:3128"), "PROXY_407", quick=True),
    Situation("proxy rejects the credentials", (22,),
              (*_at(443), *ROUTE, "--proxy", f"http://agent:not-{PASSWORD}@{{edge}}:3128"),
              "PROXY_407"),
    Situation("proxy forbids the port", (22,),
              (*_at(8091), *LB, "--proxy", "http://{edge}:8888"), "PROXY_403"),
    Situation("proxy cannot resolve", (22,),
              ("--server", "missing.lab.test", "--publishing", "route", "--proxy",
               f"http://agent:{PASSWORD}@{{edge}}:3128"), "PROXY_5XX"),
    Situation("proxy is down", (22,),
              (*_at(443), *ROUTE, "--proxy", "http://{edge}:3129"), "PROXY_UNREACHABLE"),
    Situation("proxy port takes TLS only", (22,),
              (*_at(443), *ROUTE, "--proxy", "https://{edge}:8091"), "PROXY_NOT_HTTP"),
    Situation("proxy never answers", (22,),
              (*_at(443), *ROUTE, "--proxy", "http://{edge}:50052"), "PROXY_SILENT"),
    Situation("plain HTTP on the port", (23,), (*_at(18080), *LB), "NOT_TLS"),
    Situation("one of two back ends dead", (), (*_at(18091), *LB), "FANOUT_SOME_FAIL"),
    Situation("one of two back ends is another service", (), (*_at(18106), *LB),
              "FANOUT_SOME_FAIL"),
    Situation("ClientHello of the agent's size refused", (), (*_at(18105), *LB),
              "LARGE_CLIENTHELLO_FAILS"),
    # The agent's dialler goes on to the next address, so it connects: a warning with its cost.
    Situation("one of two addresses dead", (),
              ("--server", "two.apps.lab.test:8091", "--publishing", "loadbalancer"),
              "KONN_REACHED_MTLS", 0, (), says="each connect takes about 3 s longer"),
    Situation("IPv6 address dead", (),
              ("--server", "half.apps.lab.test:8091", "--publishing", "loadbalancer"),
              "KONN_REACHED_MTLS", 0, (), says="the other family after 0.3 s"),
    Situation("IPv6 dropped on the way", (),
              ("--server", f"{NAME}:20022", "--publishing", "loadbalancer"),
              "KONN_REACHED_MTLS", 0, (), says="the other family after 0.3 s", quick=True),
    # Behind TCP the agent does not go on to the next address.
    Situation("one address leads elsewhere", (),
              ("--server", f"{NAME}:20024", "--publishing", "loadbalancer"),
              "FANOUT_ADDRESS_FAILS", families=()),
    Situation("front-end port 8090 in gRPC mode, with a certificate", (), (*_at(18109), *LB, *CERT),
              "KONN_WRONG_PORT_FRONTEND", says="has ProxyService", quick=True),
    Situation("front-end port 8090 in gRPC mode, certificate and CA", (),
              (*_at(18109), *LB, *CERT, "--ca", "{folder}/signer.crt"), "KONN_WRONG_PORT_FRONTEND"),
    Situation("front-end port, k0s", (), (*_at(18110), *K0S), "KONN_WRONG_PORT_FRONTEND"),
    Situation("front-end port, k0s with its CA", (),
              (*_at(18110), *K0S, "--ca", "{folder}/k0s.crt"), "KONN_WRONG_PORT_FRONTEND"),
    Situation("front-end port without a certificate looks alike", (), (*_at(18109), *LB),
              "KONN_REACHED_MTLS", 0, says="looks like its agent port"),
    Situation("unknown service, Konnectivity's certificate", (), (*_at(18111), *LB),
              "NOT_KONNECTIVITY", says="unknown service AgentService"),
    Situation("unknown service, k0s names", (), (*_at(18112), *K0S), "NOT_KONNECTIVITY"),
    Situation("unknown service, k0s names and CA", (),
              (*_at(18112), *K0S, "--ca", "{folder}/k0s.crt"), "NOT_KONNECTIVITY"),
    Situation("unknown service, a stranger's certificate", (), (*_at(18113), *LB),
              "NOT_KONNECTIVITY"),
    Situation("unknown service behind a client certificate", (), (*_at(18117), *LB, *CERT),
              "NOT_KONNECTIVITY"),
    Situation("proxy encrypts again", (), (*_at(18114), *LB), "H2_ENDS_AT_PROXY",
              says="after SETTINGS", quick=True),
    Situation("proxy encrypts again, with CA", (),
              (*_at(18114), *LB, "--ca", "{folder}/signer.crt"), "H2_ENDS_AT_PROXY"),
    Situation("trusted interceptor", (), (*_at(18098), *ROUTE, "--ca", "{folder}/company.crt"),
              "H2_ENDS_AT_PROXY"),
    Situation("another service, one certificate for each pod", (), (*_at(18115), *ROUTE),
              "WRONG_SERVICE"),
    Situation("another service of a known CA", (),
              (*_at(18118), *ROUTE, "--ca", "{folder}/shops.crt"), "WRONG_SERVICE"),
    Situation("another service that asks for certificates", (), (*_at(18119), *ROUTE),
              "WRONG_SERVICE"),
    Situation("TLS ends, then nothing", (), (*_at(18116), *LB), "H2_ENDED",
              says="error reading server preface: EOF"),
    Situation("rejected, port unreachable", (), (*_at(20020), *NODE), "ICMP_REJECT",
              says="connect: connection refused"),
    Situation("rejected, no route there", (), (*_at(20023), *NODE), "ROUTER_HAS_NO_ROUTE",
              says="connect: network is unreachable"),
    Situation("ClientHello of the agent's size reset", (), (*_at(20021), *NODE),
              "LARGE_CLIENTHELLO_FAILS", says="read: connection reset by peer"),
    Situation("address that no certificate names", (), (*_at(8192), *NODE), "CERT_WRONG_NAME",
              says="because it doesn't contain any IP SANs"),
    Situation("NO_PROXY is too wide", (),
              ("--server", f"{NAME}:20001", "--publishing", "loadbalancer"), "NO_PROXY_TOO_WIDE",
              families=(), says="take .lab.test out of NO_PROXY",
              proxy={"https_proxy": f"http://agent:{PASSWORD}@{EDGE4}:3128",
                     "no_proxy": ".lab.test"}),
    Situation("NO_PROXY decides, and the proxy fails too", (),
              ("--server", f"{NAME}:20003", "--publishing", "loadbalancer"), "ICMP_REJECT",
              families=(), says="or narrow NO_PROXY (.lab.test)",
              proxy={"https_proxy": f"http://{EDGE4}:8888", "no_proxy": ".lab.test"}),
    Situation("held in mid-handshake", (24,), (*_at(8091), *NODE, "--hold", "8"),
              "KONN_REACHED_MTLS", 0, says="hold"),
    Situation("proxy's idle timer of 6 s", (24,), (*_at(18094), *LB, "--hold", "12"),
              "HOLD_CUT_FIN", says="6"),
    Situation("idle timer of 6 s, k0s", (), (*_at(18104), *K0S, "--hold", "31"), "HOLD_CUT_FIN"),
    Situation("idle state forgotten silently", (), (*_at(20015), *LB, "--hold", "15"),
              "HOLD_CUT_SILENTLY"),
    Situation("idle state forgotten, reset", (), (*_at(20016), *LB, "--hold", "15"),
              "HOLD_CUT_RESET"),
    Situation("server ends the held connection", (), (*_at(18103), *K0S, "--hold", "1"),
              "HOLD_GOAWAY"),
    Situation("name does not exist", (),
              ("--server", "missing.lab.test", "--publishing", "route"), "NAME_NOT_FOUND",
              families=(), quick=True),
    Situation("resolver's upstream is dead", (),
              ("--server", "x.broken.test", "--publishing", "route"), "NAME_SERVER_FAILURE",
              families=()),
    Situation("resolver does not answer", (), ("--server", NAME, "--publishing", "route"),
              "NAME_SERVERS_SILENT", families=(), host="deaf"),
    Situation("no route", (), ("--server", "{nowhere}:8091", "--publishing", "nodeport"),
              "NO_ROUTE"),
    Situation("server's host is down", (), ("--server", "{dead}:8091", "--publishing", "nodeport"),
              "HOST_UNREACHABLE"),
)  # fmt: skip

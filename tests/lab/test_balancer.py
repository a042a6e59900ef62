"""Balancers in front of an API, and what ``--rehearse=balancer`` says of them.

HAProxy's own statistics say which servers it has, and how many connections each of them got.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.balancers import (
    BALANCER,
    CLIENT,
    FRONT,
    HOSTS,
    HTTPS_CHECK,
    PORT,
    STRANGER,
    BalancedHosts,
    BalancedSixes,
    pools,
)
from tests.lab.cli import COMMAND, Finished, environment, netprobe
from tests.lab.konnectivity.pki import authority, issue
from tests.lab.netlab import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("haproxy")]

TWO = [HOSTS["cp1"], HOSTS["cp2"]]
CHECKED = "check check-ssl verify none inter 1s"
REHEARSE = ("--rehearse=balancer", "-o", "json")
SOURCES = {"client", *HOSTS}
# A server of its own, in Python: whatever asks gets an answer in TLS by a certificate of its own.
FOREIGN = """
import http.server, socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
handler = http.server.SimpleHTTPRequestHandler
kind = http.server.ThreadingHTTPServer
kind.address_family = socket.AF_INET6 if ":" in sys.argv[3] else socket.AF_INET
server = kind((sys.argv[3], int(sys.argv[2])), handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture(
    params=[
        pytest.param(BalancedHosts, id="ipv4"),
        pytest.param(BalancedSixes, id="ipv6", marks=pytest.mark.full),
    ]
)
def lab(request: pytest.FixtureRequest) -> Iterator[BalancedHosts]:
    with request.param() as made:
        yield made


def rehearse(lab: BalancedHosts, **balancer: Any) -> dict[str, dict[str, Any]]:
    """The results by the source; the row itself passes."""
    return _read(lab.run(*REHEARSE, balancer=balancer))


def _read(done: Finished) -> dict[str, dict[str, Any]]:
    rows = [one["verdict"] for one in done.results if one["requirement"] == "api"]
    assert rows == ["pass"], done.stdout
    return _list_all(done)


def _list_all(done: Finished) -> dict[str, dict[str, Any]]:
    found = pools(done)
    assert set(found) == SOURCES
    return found


def reasons(found: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["verdict"], one["reason"]) for one in found.values()}


def make_certificate(lab: BalancedHosts, name: str) -> str:
    """A certificate and its key in one file."""
    issue(lab.folder, "lb.pem", authority(CN="lab"), [name], CN=name)
    return str(lab.folder / "lb.pem")


def start_stranger(lab: BalancedHosts) -> None:
    """Something else that speaks TLS at the port, at a host of its own."""
    address = lab.write_address(STRANGER)
    words = ("-c", FOREIGN, make_certificate(lab, "somebody.lab"), str(PORT), address)
    stranger = lab["stranger"]
    stranger.spawn(sys.executable, *words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for(lambda: any(one.endswith(f":{PORT}") for one in stranger.listening()), "a stranger")


def test_one_that_ends_tls(lab: BalancedHosts) -> None:
    """It shows its own certificate, and the request arrives all the same: that is said, once for
    all sources, and no back end counts as missing."""
    crt = make_certificate(lab, "lb.lab")
    lab.start_haproxy(options="ssl verify none", bind=f"ssl crt {crt}")
    done = lab.run(*REHEARSE)
    found = _read(done)
    assert reasons(found) == {("blocked", "balancer-ends-tls")}
    assert all("the certificate of lb.lab" in one["because"] for one in found.values())
    assert all(one["warnings"] == [] for one in found.values())
    assert min(lab.count_connections().values()) > 0
    (finding,) = done.document["findings"]
    assert finding["title"].startswith("lb ends TLS on tcp 6443")
    assert done.status == 1


@pytest.mark.full
def test_one_that_does_all_right(lab: BalancedHosts) -> None:
    """Each source reaches each back end, and HAProxy counts as many; its checks are named."""
    lab.start_haproxy(HTTPS_CHECK, options=CHECKED)
    done = lab.run(*REHEARSE, balancer={"health": "/readyz"})
    found = _read(done)
    assert reasons(found) == {("pass", "balancer-pool")}
    assert {one["proof"] for one in found.values()} == {"nonce"}
    assert all("/readyz over HTTPS at TCP port 6443" in one["because"] for one in found.values())
    assert min(lab.count_connections().values()) >= len(SOURCES) / len(HOSTS)
    assert done.status == 0


@pytest.mark.full
@pytest.mark.parametrize("check", ["", "check inter 500ms"])
def test_a_server_that_is_not_there(lab: BalancedHosts, check: str) -> None:
    """A fourth one gets its share of the connections, as HAProxy counts, unless its check takes it
    out: then all is well."""
    lab.start_haproxy(servers=[*HOSTS.values(), STRANGER], own={"s4": check})
    if check:
        wait_for(lambda: lab.read_states()["s4"].startswith("DOWN"), "s4 down")
    before = lab.count_connections()["s4"]
    found = reasons(rehearse(lab))
    is_tried = lab.count_connections()["s4"] > before
    assert is_tried is not bool(check)
    assert found == {("blocked", "balancer-loses") if is_tried else ("pass", "balancer-pool")}


@pytest.mark.full
def test_a_client_that_the_balancer_refuses(lab: BalancedHosts) -> None:
    """All others reach every back end: its result alone is a fault."""
    client = lab.write_address(CLIENT)
    lab.start_haproxy(front=f"{FRONT}\n  tcp-request content reject if {{ src {client} }}")
    found = rehearse(lab)
    one = found.pop("client")
    assert (one["verdict"], one["reason"]) == ("blocked", "balancer-loses")
    assert one["where"] == ["service", "path"]
    assert reasons(found) == {("pass", "balancer-pool")}


@pytest.mark.full
def test_an_agent_that_dies_is_no_fault_of_the_balancer(lab: BalancedHosts) -> None:
    """The port of its back end has closed with it."""
    lab.start_haproxy(options="check inter 500ms")
    command = [*COMMAND, "run", *REHEARSE, *lab.write_files()]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        wait_for(lambda: any(f":{PORT}" in one for one in lab["cp2"].listening()), "a back end")
        for pid in lab["cp2"].pids():
            os.kill(pid, signal.SIGKILL)
        assert running.stdout is not None
        printed = running.stdout.read()
    found = pools(Finished(running.returncode, printed, ""))
    assert {one["verdict"] for one in found.values()} == {"not-tested"}


@pytest.mark.full
def test_a_back_end_that_is_missing(lab: BalancedHosts) -> None:
    """It is named, from every source; those that are there are, too."""
    lab.start_haproxy(servers=TWO)
    done = lab.run(*REHEARSE)
    found = _read(done)
    assert reasons(found) == {("blocked", "balancer-lacks")}
    assert all("reached cp3 in" in one["because"] for one in found.values())
    assert set(lab.count_connections()) == {"s1", "s2"}
    (finding,) = done.document["findings"]
    port = "tcp 6443" if lab.family == 4 else "tcp 6443 (IPv6)"
    assert finding["title"] == f"lb hands {port} on to less than all of its back ends (4 flows)"


@pytest.mark.full
@pytest.mark.parametrize("back", ["ssl verify none", ""], ids=["tls", "plain"])
def test_one_that_ends_tls_does_not_hide_a_missing_back_end(lab: BalancedHosts, back: str) -> None:
    """The graver fault is the reason, and the missing back end a warning, whether the balancer
    speaks TLS to those that it has or not."""
    crt = make_certificate(lab, "lb.lab")
    lab.start_haproxy(servers=TWO, options=back, bind=f"ssl crt {crt}")
    found = rehearse(lab)
    assert reasons(found) == {("blocked", "balancer-ends-tls")}
    for one in found.values():
        (warning,) = one["warnings"]
        assert warning.startswith("balancer-lacks, too: no connection")
        assert "reached cp3 in" in warning


@pytest.mark.full
def test_a_stranger_in_the_pool(lab: BalancedHosts) -> None:
    """What answers and is no back end is named by its certificate."""
    start_stranger(lab)
    lab.start_haproxy(servers=[*HOSTS.values(), STRANGER])
    found = rehearse(lab)
    foreign = [one for one in found.values() if one["reason"] == "balancer-foreign"]
    # A source that reached all back ends before the stranger knows nothing of it.
    assert foreign
    assert reasons(found) <= {("blocked", "balancer-foreign"), ("pass", "balancer-pool")}
    assert all("the certificate of somebody.lab" in one["because"] for one in foreign)


@pytest.mark.full
def test_the_proxy_protocol(lab: BalancedHosts) -> None:
    """A header before TLS is a fault of its own, of either version; all back ends are reached."""
    lab.start_haproxy(options="send-proxy-v2")
    assert reasons(rehearse(lab)) == {("blocked", "balancer-proxy-header")}
    assert min(lab.count_connections().values()) > 0


@pytest.mark.full
def test_clients_that_stick(lab: BalancedHosts) -> None:
    """HAProxy's ``balance source`` keeps each client on one back end: a fault where the document of
    the row forbids it. Elsewhere it is a warning, and the flow passes if the sources' addresses
    lead to all back ends."""
    lab.start_haproxy("balance source")
    forbidden = lab.run(*REHEARSE, row={"persistence": "none"})
    assert reasons(_read(forbidden)) == {("blocked", "balancer-sticks")}
    (finding,) = forbidden.document["findings"]
    assert finding["title"].startswith("lb keeps clients on one back end on tcp 6443")
    used = sum(1 for one in lab.count_connections().values() if one)
    allowed = lab.run(*REHEARSE)
    found = _read(allowed)
    passes = used == len(HOSTS)
    expected = ("pass", "balancer-pool") if passes else ("inconclusive", "balancer-lacks")
    assert (used > 1, reasons(found)) == (True, {expected})
    for one in found.values():
        (warning,) = one["warnings"]
        assert warning.startswith("all ")
        assert warning.endswith("no document of this row forbids it")
    assert (forbidden.status, allowed.status) == (1, 0 if passes else 3)


@pytest.mark.full
def test_a_check_that_knows_another_authority(lab: BalancedHosts) -> None:
    """Checks that refuse our certificates keep all back ends out: nothing is concluded, and what
    was asked is said."""
    make_certificate(lab, "lb.lab")
    ca = lab.folder / "lb.pem"
    lab.start_haproxy(HTTPS_CHECK, options=f"check check-ssl verify required ca-file {ca} inter 1s")
    lab.wait_until_down()
    found = rehearse(lab, health="/readyz")
    assert reasons(found) == {("inconclusive", "balancer-lacks")}
    assert all("a TLS handshake at TCP port 6443" in one["because"] for one in found.values())
    assert sum(lab.count_connections().values()) == 0


@pytest.mark.full
def test_a_health_port_of_its_own(lab: BalancedHosts) -> None:
    """Agents listen there, too, and answer over HTTP."""
    lab.start_haproxy("option httpchk GET /readyz", options="check port 6080 inter 1s")
    health = {PORT: {"http": "/readyz", "port": 6080}}
    found = rehearse(lab, health=health)
    assert reasons(found) == {("pass", "balancer-pool")}
    assert all("/readyz over HTTP at TCP port 6080" in one["because"] for one in found.values())


def start_translation(lab: BalancedHosts, *more: str) -> None:
    """Balance in the kernel: each new connection gets one of three back ends."""
    ip = "ip" if lab.family == 4 else "ip6"
    hosts = enumerate(map(lab.write_address, HOSTS.values()))
    pairs = ", ".join(f"{at} : {one}" for at, one in hosts)
    front = lab.write_address(BALANCER)
    lines = "\n".join((
        "chain pre { type nat hook prerouting priority dstnat;",
        f"{ip} daddr {front} tcp dport {PORT} dnat to numgen inc mod 3 map {{ {pairs} }}",
        "}",
        "chain post { type nat hook postrouting priority srcnat;", *more, "}",
    ))  # fmt: skip
    setting = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}[lab.family]
    lab["lb"].run("sysctl", "-qw", f"{setting}=1")
    lab["lb"].nft(f"table {ip} lab {{\n{lines}\n}}")


@pytest.mark.full
def test_back_ends_that_do_not_reach_themselves(lab: BalancedHosts) -> None:
    """A connection of a back end to itself that keeps its source is dropped by its own kernel.
    Translation of all sources is the healthy twin. What the row says is left
    open: behind such a balancer netprobe's own listeners answer while they are there."""
    ip = "ip" if lab.family == 4 else "ip6"
    addresses = map(lab.write_address, HOSTS.values())
    own = (f"{ip} saddr {one} {ip} daddr {one} accept" for one in addresses)
    start_translation(lab, *own, "masquerade")
    found = _list_all(lab.run(*REHEARSE))
    assert {name: one["reason"] for name, one in found.items()} == {
        "client": "balancer-pool", **dict.fromkeys(HOSTS, "balancer-hairpin"),
    }  # fmt: skip
    lab["lb"].nft("flush ruleset")
    start_translation(lab, "masquerade")
    assert reasons(_list_all(lab.run(*REHEARSE))) == {("pass", "balancer-pool")}


def hold_port(lab: BalancedHosts, name: str) -> None:
    """A server of somebody else at the port of a host."""
    start = (sys.executable, "-m", "http.server", "-b", lab.write_address(HOSTS[name]), str(PORT))
    lab[name].spawn(*start, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for(lambda: any(f":{PORT}" in one for one in lab[name].listening()), "a server")


@pytest.mark.full
def test_a_port_that_is_in_use(lab: BalancedHosts) -> None:
    """After the installation nothing is played: the host and the port are named."""
    lab.start_haproxy()
    hold_port(lab, "cp2")
    found = pools(lab.run(*REHEARSE))
    assert reasons(found) == {("not-tested", "port-held")}
    assert all("TCP port 6443 of cp2 is in use" in one["because"] for one in found.values())


@pytest.mark.full
def test_a_matrix_without_a_role_for_balancers(lab: BalancedHosts) -> None:
    """The balancer stands in for the role behind it at the ports of its ``health``, and is in no
    other row; ``explain`` shows the way to it."""
    lab.start_haproxy(HTTPS_CHECK, options=CHECKED)
    keys = {"roles": [], "health": {PORT: {"https": "/readyz"}}}
    done = lab.run(*REHEARSE, balancer=keys)
    to_it = {(one["requirement"], one["verdict"]) for one in done.results
             if one["destination"] == "lb"}  # fmt: skip
    assert to_it == {("own/balancer", "pass")}
    way = ("client", lab.write_address(BALANCER), f"tcp/{PORT}")
    told = netprobe("explain", "--rehearse=balancer", *way, *lab.write_files(keys)).stdout
    for name in ("client", *HOSTS):
        assert f"PASS: tcp {PORT} from {name} to lb" in told


@pytest.mark.full
def test_the_explanation_of_a_balancer(lab: BalancedHosts) -> None:
    """``explain --rehearse`` says first what back ends open, and shows the pool as a flow of its
    own from the client and from each back end."""
    lab.start_haproxy(HTTPS_CHECK, options=CHECKED)
    way = ("client", lab.write_address(BALANCER), f"tcp/{PORT}")
    done = netprobe("explain", "--rehearse=balancer", *way, *lab.write_files())
    assert "cp1, cp2, cp3 open TCP port 6443" in done.stderr
    for name in ("client", *HOSTS):
        assert f"PASS: tcp {PORT} from {name} to lb" in done.stdout
    assert done.status == 0


@pytest.mark.full
def test_what_hosts_lack(lab: BalancedHosts) -> None:
    """``check --hosts`` tries the ports of back ends."""
    hold_port(lab, "cp2")
    words = ("--hosts", "--rehearse=balancer", "-o", "json", *lab.write_files())
    hosts = {one["name"]: " ".join(one["cost"])
             for one in netprobe("check", *words).document["hosts"]}  # fmt: skip
    assert "api/balancer cannot be rehearsed: TCP port 6443 of cp2 is in use" in hosts["cp2"]
    assert not any("rehearsed" in text for name, text in hosts.items() if name != "cp2")

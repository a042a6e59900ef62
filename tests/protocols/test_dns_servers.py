"""Real DNS servers, each of them with an upstream that never answers: all answer our query."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import dns.message
import pytest

from netprobe.protocols import PROTOCOLS
from tests.lab.netlab import Namespace
from tests.needs import require
from tests.protocols.conftest import ask, exchange
from tests.protocols.test_templates import HOST, KEY, NONCE, PORT

pytestmark = [pytest.mark.lab, pytest.mark.slow]

UPSTREAM = 5399
Start = Callable[[Namespace, Path, int], None]


def start_dnsmasq(host: Namespace, folder: Path, port: int, *options: str) -> None:
    """dnsmasq that forwards everything to the silent upstream and reads no hosts file."""
    host.spawn(
        "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
        f"--port={port}", f"--server=127.0.0.1#{UPSTREAM}", "--pid-file=",
        "--log-facility=-", "--listen-address=127.0.0.1", "--bind-interfaces", *options,
    )  # fmt: skip


def start_dnsmasq_without_identity(host: Namespace, folder: Path, port: int) -> None:
    """The same, told not to say what it is."""
    start_dnsmasq(host, folder, port, "--no-ident")


def _start_named(host: Namespace, folder: Path, port: int, words: str) -> None:
    config = folder / f"named-{port}.conf"
    config.write_text(
        f'options {{ directory "{folder}"; pid-file "{folder}/named-{port}.pid";'
        f" session-keyfile none; listen-on port {port} {{ 127.0.0.1; }};"
        f" listen-on-v6 {{ none; }}; {words} }}; controls {{ }};"
    )
    host.spawn("named", "-f", "-c", str(config))


def start_named_forwarding(host: Namespace, folder: Path, port: int) -> None:
    """BIND that forwards everything and hides version, name and id."""
    _start_named(
        host, folder, port,
        "recursion yes; version none; hostname none; server-id none; forward only;"
        f" forwarders {{ 127.0.0.1 port {UPSTREAM}; }};",
    )  # fmt: skip


def start_named_closed(host: Namespace, folder: Path, port: int) -> None:
    """BIND that serves somebody else only."""
    _start_named(host, folder, port, "allow-query { 192.0.2.7; };")


def start_named_authoritative(host: Namespace, folder: Path, port: int) -> None:
    """BIND that resolves for nobody."""
    _start_named(host, folder, port, "recursion no;")


def start_unbound(host: Namespace, folder: Path, port: int) -> None:
    """Unbound that forwards everything and hides version and identity."""
    config = folder / f"unbound-{port}.conf"
    config.write_text(
        f'server:\n do-daemonize: no\n interface: 127.0.0.1@{port}\n username: ""\n chroot: ""\n'
        f' pidfile: ""\n directory: {folder}\n use-syslog: no\n hide-version: yes\n'
        " hide-identity: yes\n do-not-query-localhost: no\n"
        f'forward-zone:\n name: "."\n forward-addr: 127.0.0.1@{UPSTREAM}\n'
    )
    host.spawn("unbound", "-d", "-c", str(config))


def start_pdns_recursor(host: Namespace, folder: Path, port: int) -> None:
    """PowerDNS Recursor that forwards everything."""
    host.spawn(
        "pdns_recursor", "--config-dir=/nonexistent", "--socket-dir=.", "--daemon=no",
        "--local-address=127.0.0.1", f"--local-port={port}", "--threads=1", "--setuid=",
        "--setgid=", f"--forward-zones-recurse=.=127.0.0.1:{UPSTREAM}", cwd=folder,
    )  # fmt: skip


SERVERS: dict[str, tuple[str, Start]] = {
    "dnsmasq": ("dnsmasq", start_dnsmasq),
    "dnsmasq-no-ident": ("dnsmasq", start_dnsmasq_without_identity),
    "bind-forwarding": ("named", start_named_forwarding),
    "bind-closed": ("named", start_named_closed),
    "bind-authoritative": ("named", start_named_authoritative),
    "unbound": ("unbound", start_unbound),
    "pdns-recursor": ("pdns_recursor", start_pdns_recursor),
}


@pytest.fixture(scope="module")
def upstream(host: Namespace) -> Iterator[None]:
    """A socket that takes queries and answers none: the internet before an installation."""
    with closing(host.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(("127.0.0.1", UPSTREAM))
        yield


@pytest.fixture(scope="module", params=sorted(SERVERS))
def server(
    request: pytest.FixtureRequest,
    host: Namespace,
    upstream: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> int:
    """One server, started on a port of its own."""
    name: str = request.param
    program, start = SERVERS[name]
    require(program)
    port = 5301 + sorted(SERVERS).index(name)
    start(host, tmp_path_factory.mktemp(name), port)
    host.wait_until_listening(f"udp 127.0.0.1:{port}", f"tcp 127.0.0.1:{port}")
    return port


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_the_server_answers_at_once(host: Namespace, server: int, transport: str) -> None:
    """The server is recognised although it can resolve nothing, whatever code it answers."""
    reading = ask(host, "dns", transport, server)
    assert reading.recognised
    code, _, asked = reading.said.partition(" to id.server. TXT CH")
    assert code in ("NOERROR", "NOTIMP", "REFUSED", "SERVFAIL")
    assert bool(asked) is (code != "NOERROR")


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_the_probe_for_our_listener_is_a_query_too(
    host: Namespace, server: int, transport: str
) -> None:
    """A server that gets our cookies by mistake answers them, and is not taken for our listener."""
    template = PROTOCOLS["dns"].template(transport, 4)
    data = exchange(host, transport, server, template.fill(KEY, NONCE))
    assert data is not None
    assert PROTOCOLS["dns"].read(transport, data).recognised
    assert template.answering_host(KEY, NONCE, data) is None


def test_the_answer_that_we_give_is_taken_by_a_resolver() -> None:
    """dnspython's own client code accepts our listener's answer as the one to the query."""
    template = PROTOCOLS["dns"].template("udp", 4)
    request = template.fill(KEY, NONCE)
    query = dns.message.from_wire(request)
    answer = dns.message.from_wire(template.reply(KEY, NONCE, HOST, PORT, request))
    assert query.is_response(answer)

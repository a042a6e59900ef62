"""Servers of this host that are no Konnectivity, and what the command says of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.lab.cli import netprobe

pytestmark = pytest.mark.slow

# Loopback never goes through a proxy, as in Go; nothing is sent to this one but by the proxy.
BEHIND = "192.0.2.1"

Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve) -> Iterator[int]:
    """Serve each connection in a thread of its own; gives the port."""

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(sock,), daemon=True).start()

    def handle(sock: socket.socket) -> None:
        with sock, suppress(OSError):
            serve(sock)

    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def diagnose(port: int, *words: str, host: str = "127.0.0.1") -> dict[str, Any]:
    """Give the verdict about this port, published as a nodePort unless said otherwise."""
    given = ("--server", f"{host}:{port}", "--publishing", "nodeport", *words, "-o", "json")
    (worker,) = netprobe("diagnose", "konnectivity", *given).document["workers"]
    return dict(worker)


@pytest.mark.parametrize(
    ("status", "code"), [(501, "PROXY_5XX"), (405, "PROXY_REFUSED"), (502, "PROXY_5XX")]
)
def test_a_web_server_is_no_proxy(status: int, code: str) -> None:
    """It does not know CONNECT; whether it could reach the server was never the question."""

    def answer(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())

    with server(answer) as port:
        worker = diagnose(31234, "--proxy", f"http://127.0.0.1:{port}", host=BEHIND)
    assert (worker["code"], worker["where"]) == (code, "proxy")
    if status == 502:
        assert f"cannot reach {BEHIND}:31234 (HTTP 502)" in worker["title"]
    else:
        said = f"what answers at http://127.0.0.1:{port} is no proxy for CONNECT (HTTP {status})"
        assert worker["title"] == said
        assert "reach" not in worker["title"] + worker["remedy"]


@pytest.mark.parametrize(("user", "says"), [("", "put user and"), ("u:pw@", "correct user and")])
def test_who_gave_credentials_is_not_asked_for_them(user: str, says: str) -> None:
    """The proxy wants some, or rejects those of its URL."""

    def answer(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

    with server(answer) as port:
        worker = diagnose(31234, "--proxy", f"http://{user}127.0.0.1:{port}", host=BEHIND)
    assert worker["code"] == "PROXY_407"
    assert worker["remedy"].startswith(f"{says} password")


def close_at_once(_sock: socket.socket) -> None:
    """Close before the ClientHello comes: an end."""


def close_soon(_sock: socket.socket) -> None:
    """Close with the ClientHello unread, for whatever reason: a reset."""
    time.sleep(0.02)


def close_half_read(sock: socket.socket) -> None:
    """Close with unread bytes: Linux sends a reset."""
    sock.recv(1)


def close_when_read(sock: socket.socket) -> None:
    """Close after the whole ClientHello."""
    sock.recv(65536)


@pytest.mark.parametrize(
    ("serve", "code", "where", "says"),
    [
        (close_at_once, "EDGE_CLOSED_IMMEDIATELY", "load balancer or server",
         "nothing is sent is ended at once, too"),
        (close_soon, "EDGE_CLOSED_IMMEDIATELY", "load balancer or server",
         "nothing is sent is ended at once, too"),
        (close_half_read, "RST_AFTER_CLIENTHELLO", "destination", "nothing is sent stays open"),
        (close_when_read, "EDGE_CLOSED_IMMEDIATELY", "load balancer or server",
         "nothing is sent stays open"),
    ],
)  # fmt: skip
def test_an_application_that_closes_gets_one_answer(
    serve: Serve, code: str, where: str, says: str
) -> None:
    """On loopback no firewall is named, and of an address no route of a router."""
    with server(serve) as port:
        worker = diagnose(port)
    assert (worker["code"], worker["where"], worker["kind"]) == (code, where, "server")
    assert says in worker["because"]
    words = " ".join(worker[name] for name in ("title", "because", "remedy"))
    for word in ("firewall", "inspection", "router", "knows the name"):
        assert word not in words


def test_an_echo_is_no_tls() -> None:
    """What came back are our own bytes, so there is no certificate to speak of."""

    def echo(sock: socket.socket) -> None:
        while data := sock.recv(65536):
            sock.sendall(data)

    with server(echo) as port:
        worker = diagnose(port)
    assert (worker["code"], worker["outcome"]) == ("NOT_TLS", "fault")
    assert worker["because"] == "the ClientHello is answered by: our own ClientHello, sent back"
    (small,) = (one for one in worker["stages"] if one["name"] == "tls-small")
    assert small["status"] == "fail"

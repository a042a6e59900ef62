"""A hosted control plane as the network sees it: API server, Konnectivity, health page, registry.

Standard library and the openssl command only; keys and certificates are made at every start.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "api.hc1.lab.example"
# A client that has not finished the TLS handshake by then is gone.
HANDSHAKE_S = 10
# HTTP/2 SETTINGS with MAX_FRAME_SIZE 16384: a Go gRPC server sends it right after the handshake.
SETTINGS = bytes.fromhex("000006040000000000" + "000500004000")


def main() -> None:
    """Serve until the container stops."""
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), "root-ca", "openshift")
        signer = Authority(Path(folder), "konnectivity-signer", "kubernetes")
        api = _context(*authority.issue("kubernetes"))
        # An API server asks for a client certificate, and also answers who has none.
        api.verify_mode = ssl.CERT_OPTIONAL
        api.load_verify_locations(authority.certificate)
        konnectivity = _context(*signer.issue("konnectivity-server"))
        konnectivity.verify_mode = ssl.CERT_REQUIRED
        konnectivity.load_verify_locations(signer.certificate)
        konnectivity.set_alpn_protocols(["h2"])
        services: list[Callable[[], None]] = [
            lambda: Pages(6443, API_PAGES, api).serve_forever(),
            lambda: Pages(
                443, REGISTRY_PAGES, _context(*authority.issue("registry"))
            ).serve_forever(),
            lambda: Pages(8081, HEALTH_PAGES, None).serve_forever(),
            lambda: serve_konnectivity(8091, konnectivity),
        ]
        threads = [threading.Thread(target=service) for service in services]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Authority:
    """A certificate authority of this start."""

    def __init__(self, folder: Path, name: str, unit: str) -> None:
        self.folder = folder
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        _openssl("req", "-x509", *_new_key(self.key), "-days", "30", "-out", self.certificate,
                 "-subj", f"/OU={unit}/CN={name}")  # fmt: skip

    def issue(self, name: str) -> tuple[Path, Path]:
        """Certificate and key of a server that is reached as NAME."""
        key, request, extra, certificate = (
            self.folder / f"{name}.{kind}" for kind in ("key", "csr", "ext", "crt")
        )
        extra.write_text(f"subjectAltName=DNS:{NAME},DNS:{name}\nextendedKeyUsage=serverAuth\n")
        _openssl("req", *_new_key(key), "-out", request, "-subj", f"/O=kubernetes/CN={name}")
        signer = ["-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "30"]
        _openssl("x509", "-req", "-in", request, *signer, "-extfile", extra, "-out", certificate)
        return certificate, key


def _new_key(path: Path) -> list[str | Path]:
    return ["-newkey", "rsa:2048", "-nodes", "-keyout", path]


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, stderr=subprocess.DEVNULL)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


# path: (status, content type, body). What has no page gets that of "*".
Page = tuple[int, str, str]
API_PAGES: dict[str, Page] = {
    "/healthz": (200, "text/plain", "ok"),
    "/livez": (200, "text/plain", "ok"),
    "/readyz": (200, "text/plain", "ok"),
    "/version": (
        200,
        "application/json",
        json.dumps({"major": "1", "minor": "33", "gitVersion": "v1.33.0"}),
    ),
    "*": (
        403,
        "application/json",
        json.dumps(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "Forbidden",
                "message": 'User "system:anonymous" cannot do this',
                "code": 403,
            }
        ),
    ),
}
REGISTRY_PAGES: dict[str, Page] = {
    "/v2/": (401, "application/json", '{"errors": [{"code": "UNAUTHORIZED"}]}'),
    "*": (404, "text/plain", "not found"),
}
HEALTH_PAGES: dict[str, Page] = {
    "/healthz": (200, "text/plain", "ok"),
    "/readyz": (200, "text/plain", "ok"),
    "*": (404, "text/plain", "not found"),
}


class Pages(ThreadingHTTPServer):
    """Fixed pages over HTTP, or over TLS where a context is given."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, pages: dict[str, Page], context: ssl.SSLContext | None) -> None:
        self.pages = pages
        self.context = context
        super().__init__(("", port), _Answer)

    def finish_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:
        """Shake hands in the connection's own thread, so that one slow client stops nobody."""
        if self.context is not None:
            request.settimeout(HANDSHAKE_S)
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is no error of this server."""


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        pages: dict[str, Page] = self.server.pages  # type: ignore[attr-defined]
        status, kind, text = pages.get(self.path.partition("?")[0], pages["*"])
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the lab's output is netprobe's."""


def serve_konnectivity(port: int, context: ssl.SSLContext) -> None:
    """Accept TLS clients that have a certificate of the signer, as Konnectivity's server does."""
    with socket.create_server(("", port), backlog=256) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_greet, args=(client, context), daemon=True).start()


def _greet(client: socket.socket, context: ssl.SSLContext) -> None:
    try:
        with client:
            client.settimeout(HANDSHAKE_S)
            with context.wrap_socket(client, server_side=True) as stream:
                stream.sendall(SETTINGS)
                stream.recv(4096)
    except OSError:
        return  # no certificate, no TLS, or gone: the next one is served


if __name__ == "__main__":
    main()

"""What exists before the installation, for the demo: a DNS server, a time server and a registry.

    python services.py 192.0.2.10

They answer as little as such services may: DNS says REFUSED, NTP tells this machine's time, the
registry (without TLS, which spares the demo a certificate) wants a token.
"""

from __future__ import annotations

import struct
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import (
    BaseRequestHandler,
    TCPServer,
    ThreadingTCPServer,
    ThreadingUDPServer,
)
from threading import Thread

DNS_PORT, NTP_PORT, REGISTRY_PORT = 53, 123, 443
SECONDS_1900_TO_1970 = 2_208_988_800
PLACES = (("udp", DNS_PORT), ("tcp", DNS_PORT), ("udp", NTP_PORT), ("tcp", REGISTRY_PORT))


def _refuse(query: bytes) -> bytes:
    """The query with the bits of an answer that says REFUSED."""
    return query[:2] + bytes((query[2] | 0x80, 0x05)) + query[4:]


class DnsDatagrams(BaseRequestHandler):
    """DNS over UDP."""

    def handle(self) -> None:
        """Refuse one query."""
        query, sock = self.request
        if len(query) >= 12:
            sock.sendto(_refuse(query), self.client_address)


class DnsStreams(BaseRequestHandler):
    """DNS over TCP: two bytes of length before each message."""

    def handle(self) -> None:
        """Refuse one query."""
        message = self.request.recv(4096)
        if len(message) >= 14:
            self.request.sendall(message[:2] + _refuse(message[2:]))


def _ntp_timestamp() -> bytes:
    """Give the time as NTP writes it: seconds since 1900 and their fraction (RFC 5905)."""
    seconds = time.time() + SECONDS_1900_TO_1970
    return struct.pack("!II", int(seconds) & 0xFFFFFFFF, int(seconds % 1 * 2**32))


class Ntp(BaseRequestHandler):
    """A time server of stratum 2 with this machine's clock."""

    def handle(self) -> None:
        """Tell the time, with the client's own timestamp sent back."""
        request, sock = self.request
        if len(request) >= 48:
            now = _ntp_timestamp()
            head = bytes((4 << 3 | 4, 2, 6, 0xEC)) + bytes(8) + bytes((192, 0, 2, 1))
            sock.sendto(head + now + request[40:48] + now + now, self.client_address)


class Registry(BaseHTTPRequestHandler):
    """A container registry that knows nobody."""

    def do_GET(self) -> None:
        """Ask for a token."""
        known = self.path == "/v2/"
        self.send_response(401 if known else 404)
        if known:
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("WWW-Authenticate", 'Bearer realm="https://auth.example.com/token"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the demo's own words are enough."""


def serve(address: str) -> None:
    """Answer on an address until the process is ended."""
    # The usual queue is for five: of more that connect at once a busy machine drops some.
    TCPServer.request_queue_size = 256
    servers = (
        ThreadingUDPServer((address, DNS_PORT), DnsDatagrams),
        ThreadingTCPServer((address, DNS_PORT), DnsStreams),
        ThreadingUDPServer((address, NTP_PORT), Ntp),
        ThreadingHTTPServer((address, REGISTRY_PORT), Registry),
    )
    threads = [Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    serve(sys.argv[1])

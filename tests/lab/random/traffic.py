"""Real clients and servers with tokens; runs inside a namespace, standard library only.

    traffic.py serve NAME '[["tcp", "10.0.0.1", 80], ...]'     prints "ready", serves until killed
    traffic.py relay HERE THERE PORT                            a proxy that forwards to THERE
    traffic.py ask TRIES TIMEOUT_S '[["tcp", "10.0.0.1", 80], ...]'     prints one JSON list

A request is ``Q`` and 15 hex digits, its answer ``A``, the same digits, and who answered. After
that a TCP client sends ``B`` and its digits many times, 4 kB, and gets as much with ``C``: that
much fits no packet, so it shows whether full-sized segments pass.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

BIG = 256  # times 16 bytes
GAP_S = 0.25


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _bound(kind: int, address: str, port: int) -> socket.socket:
    made = socket.socket(_family(address), kind)
    if kind == socket.SOCK_STREAM:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND: a dead device has lost its addresses
    made.bind((address, port))
    return made


def _read(stream: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        some = stream.recv(65536)
        if not some:
            raise ConnectionError("closed")
        got += some
    return got


def _serve_stream(stream: socket.socket, name: str) -> None:
    try:
        with stream:
            stream.settimeout(10)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                port = stream.getsockname()[1]
                token = _read(stream, 16)[1:]
                stream.sendall(b"A" + token + b" %s %d\n" % (name.encode(), port))
                _read(stream, 16 * BIG)
                stream.sendall((b"C" + token) * BIG)
    except OSError:
        pass


def _accept(listener: socket.socket, name: str) -> None:
    while True:
        stream = listener.accept()[0]
        threading.Thread(target=_serve_stream, args=(stream, name), daemon=True).start()


def _echo(sock: socket.socket, name: str) -> None:
    while True:
        try:
            data, sender = sock.recvfrom(4096)
            # Foreign datagrams get an answer too: a service that somebody else knows nothing of.
            digits = data[1:16] if data[:1] == b"Q" else b"-"
            said = b"A" + digits + b" %s %d\n" % (name.encode(), sock.getsockname()[1])
            sock.sendto(said, sender)
        except OSError:
            pass


def serve(name: str, places: list[tuple[str, str, int]]) -> None:
    """Serve until killed."""
    threads = []
    for protocol, address, port in places:
        if protocol == "tcp":
            sock = _bound(socket.SOCK_STREAM, address, port)
            sock.listen(256)
        else:
            sock = _bound(socket.SOCK_DGRAM, address, port)
        work = _accept if protocol == "tcp" else _echo
        threads.append(threading.Thread(target=work, args=(sock, name), daemon=True))
        threads[-1].start()
    print("ready", flush=True)
    threading.Event().wait()


def relay(here: str, there: str, port: int) -> None:
    """Forward every connection until killed; what cannot be forwarded is reset."""
    listener = _bound(socket.SOCK_STREAM, here, port)
    listener.listen(256)
    print("ready", flush=True)
    while True:
        near = listener.accept()[0]
        threading.Thread(target=_forward, args=(near, there, port), daemon=True).start()


def _forward(near: socket.socket, there: str, port: int) -> None:
    # Closed without a word, like a proxy whose other side fails.
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        with near, socket.create_connection((there, port), 10) as far:
            far.settimeout(None)
            back = threading.Thread(target=_copy, args=(far, near), daemon=True)
            back.start()
            _copy(near, far)
            back.join()
    except OSError:
        pass


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while some := source.recv(65536):
            target.sendall(some)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Try:
    """One try at a flow; ``said`` is what the client got, ``port`` its own."""

    def __init__(self, flow: tuple[str, str, int], timeout_s: float) -> None:
        self.protocol, self.address, self.port = flow
        self.timeout_s = timeout_s
        self.token = os.urandom(8).hex()[:15]
        self.sport = 0
        self.began = time.time()
        self.said = ""
        self.big = False

    def run(self) -> None:
        """Try it; whatever fails is said in ``said``."""
        self.began = time.time()
        work = {"tcp": self._tcp, "udp": self._udp, "icmp": self._icmp}[self.protocol]
        try:
            work()
        except OSError as problem:
            self.said = self.said or f"{type(problem).__name__} {problem.errno}"

    def _tcp(self) -> None:
        end = time.monotonic() + self.timeout_s
        with socket.socket(_family(self.address), socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.bind(("", 0))
            self.sport = sock.getsockname()[1]
            sock.settimeout(self.timeout_s)
            sock.connect((self.address, self.port))
            sock.sendall(b"Q" + self.token.encode())
            sock.settimeout(max(0.05, end - time.monotonic()))
            self.said = self._answer(sock.recv(4096))
            sock.sendall((b"B" + self.token.encode()) * BIG)
            sock.settimeout(max(0.3, end - time.monotonic()))
            self.big = _read(sock, 16 * BIG) == (b"C" + self.token.encode()) * BIG

    def _udp(self) -> None:
        with socket.socket(_family(self.address), socket.SOCK_DGRAM) as sock:
            sock.settimeout(self.timeout_s)
            sock.connect((self.address, self.port))
            self.sport = sock.getsockname()[1]
            sock.send(b"Q" + self.token.encode())
            self.said = self._answer(sock.recv(4096))
            self.big = True

    def _icmp(self) -> None:
        pattern = (b"Q" + self.token.encode()).hex()
        wait = str(max(1, round(self.timeout_s)))
        argv = ["ping", "-n", "-q", "-c", "1", "-W", wait, "-p", pattern, self.address]
        done = subprocess.run(
            argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.said = "reply" if done.returncode == 0 else "no reply"
        self.big = done.returncode == 0

    def _answer(self, got: bytes) -> str:
        head = b"A" + self.token.encode() + b" "
        return got[len(head) :].decode().strip() if got.startswith(head) else "foreign"


def ask(tries: int, timeout_s: float, flows: list[tuple[str, str, int]]) -> None:
    """Try every flow ``tries`` times, all flows side by side, and print what came."""
    threads, made = [], []
    for number in range(tries):
        begin = time.monotonic()
        for flow in flows:
            made.append(Try(flow, timeout_s))
            threads.append(threading.Thread(target=made[-1].run))
            threads[-1].start()
        if number + 1 < tries:
            time.sleep(max(0.0, GAP_S - (time.monotonic() - begin)))
    for thread in threads:
        thread.join()
    rows = [(t.protocol, t.address, t.port, t.token, t.sport, t.began, t.said, t.big) for t in made]
    print(json.dumps(rows))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], json.loads(sys.argv[3]))
    elif sys.argv[1] == "relay":
        relay(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        ask(int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4]))

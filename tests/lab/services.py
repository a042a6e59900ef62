"""Real services inside lab namespaces: sshd, dnsmasq, chronyd and an HTTPS server."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lab.netlab import Lab, Namespace, run

_HTTPS_SERVER = """
import http.server, socket, ssl, sys
address, port, certificate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/v2/"
        self.send_response(401 if known else 404)
        if known:
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("WWW-Authenticate", 'Bearer realm="https://auth.lab.test/token"')
        self.send_header("Content-Length", "0")
        self.end_headers()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server = Server((address, port), Registry)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
"""

_SSHD_CONFIG = """
ListenAddress {address}
Port 22
HostKey {key}
AuthorizedKeysFile {authorized}
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
Banner {banner}
"""


# The program of the labs' own services, for a row's ``process:``.
PYTHON = Path(sys.executable).resolve().name


def place(protocol: str, address: str, port: int) -> str:
    """A socket as ``Namespace.listening`` names it."""
    return f"{protocol} [{address}]:{port}" if ":" in address else f"{protocol} {address}:{port}"


def shift_clock(offset: str) -> tuple[str, ...]:
    """Give the words before a command whose wall clock is to be off: ``+420s``, ``-1h``, ``+400d``.

    The library alone: the program ``faketime`` does not start where one that was killed has left a
    semaphore with its process id.
    """
    library = "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1"
    return ("env", library, "FAKETIME_DONT_FAKE_MONOTONIC=1", f"FAKETIME={offset}")


def start_dns(host: Namespace, records: dict[str, str]) -> None:
    """dnsmasq on port 53 of every address of a host, answering these names and no others."""
    names = [f"--address=/{name}/{address}" for name, address in records.items()]
    listen = [f"--listen-address={address}" for address in host.addresses]
    options = ["--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces"]
    host.spawn_daemon(
        "dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", "--log-facility=-",
        *options, *listen, *names, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    host.wait_until_listening(
        *(place(protocol, text, 53) for text in host.addresses for protocol in ("tcp", "udp"))
    )


def start_ntp(lab: Lab, host: Namespace) -> None:
    """chronyd on port 123 of a host; ``-x`` keeps its hands off the machine's clock."""
    binds = "".join(f"bindaddress {text}\n" for text in host.addresses)
    # chronyd removes its pidfile when it ends: it must be a file of the lab's own.
    own = f"pidfile {lab.folder}/chrony-{host.name}.pid\n"
    config = lab.write(
        f"chrony-{host.name}.conf", f"local stratum 8\nallow all\ncmdport 0\n{own}{binds}"
    )
    config.chmod(0o644)
    host.spawn("chronyd", "-d", "-x", "-u", "root", "-f", str(config), stderr=subprocess.DEVNULL)
    host.wait_until_listening(*(place("udp", text, 123) for text in host.addresses))


def start_https(lab: Lab, host: Namespace, port: int = 443) -> None:
    """A container registry (HTTPS, own certificate, wants a token) on every address of a host."""
    certificate = lab.folder / f"https-{host.name}.pem"
    run(
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-subj", f"/CN={host.name}.lab.test",
        "-keyout", str(certificate), "-out", f"{certificate}.crt",
    )  # fmt: skip
    certificate.write_text(certificate.read_text() + Path(f"{certificate}.crt").read_text())
    for text in host.addresses:
        host.spawn(
            sys.executable, "-c", _HTTPS_SERVER, text, str(port), str(certificate),
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    host.wait_until_listening(*(place("tcp", text, port) for text in host.addresses))


@dataclass(frozen=True)
class Ssh:
    """Keys and a client configuration for a lab; ``config`` is what ``ssh -F`` takes."""

    config: Path
    identity: Path


def start_sshd(lab: Lab, host: Namespace, *, banner: str = "") -> None:
    """sshd on port 22 of a host's first IPv4 address, for root with the lab's key."""
    key = _key(lab, f"host-{host.name}")
    _key(lab, "identity")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    note = lab.write(f"banner-{host.name}", banner) if banner else "none"
    config = lab.write(
        f"sshd-{host.name}.conf",
        _SSHD_CONFIG.format(
            address=host.address(4), key=key, authorized=f"{lab.folder}/identity.pub", banner=note
        ),
    )
    host.spawn("sshd", "-D", "-e", "-f", str(config), stderr=subprocess.DEVNULL)
    host.wait_until_listening(place("tcp", host.address(4), 22))


def client_config(lab: Lab, jump: Namespace, behind: list[Namespace]) -> Ssh:
    """A user's ssh configuration: ``behind`` are reached through ``jump`` by ProxyJump."""
    machines = [jump, *behind]
    keys = {m.name: (lab.folder / f"host-{m.name}.pub").read_text() for m in machines}
    known = lab.write("known_hosts", "".join(f"{m.address(4)} {keys[m.name]}" for m in machines))
    lines = [
        "Host *",
        "  User root",
        f"  IdentityFile {lab.folder}/identity",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {known}",
        "  GlobalKnownHostsFile /dev/null",
        "  StrictHostKeyChecking yes",
        "Host bastion",
        f"  HostName {jump.address(4)}",
    ]
    if behind:
        lines += [f"Host {' '.join(m.address(4) for m in behind)}", "  ProxyJump bastion"]
    return Ssh(lab.write("ssh_config", "\n".join(lines) + "\n"), lab.folder / "identity")


def _key(lab: Lab, name: str) -> Path:
    path = lab.folder / name
    if not path.exists():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path))
    return path

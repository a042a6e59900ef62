"""A real sshd on a loopback port, with keys, configuration and known_hosts of its own."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import time
from pathlib import Path

from netprobe.model.inventory import Ssh
from tests.patience import PATIENCE_S
from tests.ports import free_port

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


class Sshd:
    """One server. ``force`` is a shell script that runs instead of the login shell."""

    def __init__(
        self, folder: Path, name: str, *, force: str | None = None, extra: str = ""
    ) -> None:
        self.folder = folder
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        for key in ("user", f"{name}-host"):
            _make_key(folder / key)
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        (folder / f"{name}.conf").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder}/{name}-host\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
            f"PidFile none\nLogLevel VERBOSE\n{self._force(force)}{extra}"
        )
        self._process = self._start()

    def _force(self, script: str | None) -> str:
        if script is None:
            return ""
        path = self.folder / f"{self.name}-force"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return f"ForceCommand {path}\n"

    def _start(self) -> subprocess.Popen[bytes]:
        # Only root's sshd wants it.
        with contextlib.suppress(PermissionError):
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        words = [SSHD, "-D", "-f", str(self.folder / f"{self.name}.conf"), "-E", str(self.log)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        late = time.monotonic() + PATIENCE_S
        while time.monotonic() < late and process.poll() is None:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.02)
        process.kill()
        raise AssertionError(f"sshd did not start: {self.log.read_text()}")

    def stop(self) -> None:
        """End the server; its connections live on, as with a real one."""
        self._process.terminate()
        self._process.wait()

    def logins(self) -> int:
        """How many logins it accepted."""
        return self.log.read_text().count("Accepted publickey")


def client_config(folder: Path, *servers: Sshd, lines: str = "") -> Path:
    """A client configuration that knows these servers by name and trusts their keys."""
    known = folder / "known_hosts"
    text = lines
    with known.open("w") as file:
        for server in servers:
            key = (folder / f"{server.name}-host.pub").read_text()
            file.write(f"[127.0.0.1]:{server.port} {key}")
    for server in servers:
        text += (
            f"Host {server.name}\n HostName 127.0.0.1\n Port {server.port}\n"
            f" User {getpass.getuser()}\n"
        )
    text += (
        f"Host *\n IdentityFile {folder}/user\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {known}\n GlobalKnownHostsFile /dev/null\n"
        " StrictHostKeyChecking yes\n"
    )
    path = folder / "config"
    path.write_text(text)
    return path


def target(name: str, config: Path, *options: str) -> Ssh:
    """How an inventory would name the server."""
    return Ssh(name, options=("-F", str(config), *options))


def _make_key(path: Path) -> None:
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)

"""Hosts, templates and ports for tests that start real agents."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from netprobe.agent.wire.frames import Template, template_to_json
from netprobe.model.inventory import Address, Host, Ssh, Vantage
from netprobe.vantage.link import AgentLink

KEY = bytes(range(32))
HOST = 3

# magic, nonce, MAC / magic, nonce, host, MAC
PLAIN = Template(b"NPQ1" + bytes(24), 4, 12)
PLAIN.answer = b"NPA1" + bytes(26)
PLAIN.answer_nonce_at, PLAIN.answer_host_at, PLAIN.answer_mac_at = 4, 12, 14
ONE_WAY = Template(b"NPV1" + bytes(24), 4, 12)
TEMPLATES = {
    "t": "templates",
    "items": {"1": template_to_json(PLAIN), "2": template_to_json(ONE_WAY)},
}


def host(vantage: Vantage, *, sudo: bool = False) -> Host:
    """A host of the inventory that is this machine."""
    return Host("me", (Address("127.0.0.1", 4),), (), vantage, "sudo" if sudo else None)


def local(*, sudo: bool = False) -> Host:
    """This machine as a subprocess."""
    return host(Vantage("local"), sudo=sudo)


def command(*words: str, sudo: bool = False) -> Host:
    """This machine behind a command."""
    return host(Vantage("command", command=words), sudo=sudo)


def ssh(target: Ssh, *, sudo: bool = False) -> Host:
    """This machine through ssh."""
    return host(Vantage("ssh", ssh=target), sudo=sudo)


def with_python(folder: Path, interpreter: str) -> Host:
    """This machine with a PATH in which ``interpreter`` is the only Python."""
    folder.mkdir(exist_ok=True)
    for name, target in (("sh", "/bin/sh"), ("python3", interpreter)):
        (folder / name).symlink_to(target)
    return command("env", f"PATH={folder}")


def free_port(address: str = "127.0.0.1", kind: int = socket.SOCK_STREAM) -> int:
    """A port that was free a moment ago."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def block(proto: str, address: str, ports: Sequence[Sequence[int]], template: int = 1) -> Any:
    """One block of a ``listen`` order."""
    return {"proto": proto, "addr": address, "ports": ports, "template": template}


def probe(order: int, proto: str, address: str, ports: Sequence[Sequence[int]]) -> dict[str, Any]:
    """A nonce probe of these ports."""
    return {
        "t": "probe",
        "id": order,
        "proto": proto,
        "dst": address,
        "src": None,
        "blocks": [{"ports": ports, "mode": "nonce", "template": 1}],
        "first_ms": None,
        "look_ms": 1000,
        "looks": 2,
        "pace": None,
        "min_ttl": None,
    }


async def outcomes(link: AgentLink, order: dict[str, Any]) -> list[tuple[int, int, Any, Any]]:
    """(first, last, failure, answer) of an order's runs."""
    found = []
    async for frame in link.stream(order):
        for first, last, kind, _rtt_us, _attempts in frame.get("runs", ()):
            what = frame["kinds"][kind]
            found.append((first, last, what["failure"], what["answer"]))
    return sorted(found)


async def until(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Wait for something that happens in another process; whether it did in time."""
    for _ in range(int(within_s / 0.02)):
        if holds():
            return True
        await asyncio.sleep(0.02)
    return holds()


async def gone(pid: int, within_s: float = 10.0) -> bool:
    """Whether a process ends within the time."""
    return await until(lambda: not is_running(pid), within_s)


def is_running(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"

"""Hosts, templates and ports for tests that start real agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netprobe.agent.wire.answers import ProbeOutcomes
from netprobe.agent.wire.orders import ProbeOrder, TemplatesOrder
from netprobe.agent.wire.parts import ListenBlock, ProbeBlock
from netprobe.agent.wire.templates import Template, number_template
from netprobe.model.inventory import Address, Host, Ssh, Vantage
from netprobe.vantage.link import AgentLink
from tests.patience import until

KEY = bytes(range(32))
HOST = 3

# magic, nonce, MAC / magic, nonce, host, MAC
PLAIN = Template(b"NPQ1" + bytes(24), 4, 12)
PLAIN.answer = b"NPA1" + bytes(26)
PLAIN.answer_nonce_at, PLAIN.answer_host_at, PLAIN.answer_mac_at = 4, 12, 14
ONE_WAY = Template(b"NPV1" + bytes(24), 4, 12)
TEMPLATES = TemplatesOrder([number_template(1, PLAIN), number_template(2, ONE_WAY)])

Port = tuple[int, int]


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


def block(proto: str, address: str, ports: Sequence[Port], template: int = 1) -> ListenBlock:
    """One block of a ``listen`` order."""
    return ListenBlock(proto, address, list(ports), None, template)


def probe(order: int, proto: str, address: str, ports: Sequence[Port]) -> ProbeOrder:
    """A nonce probe of these ports."""
    return ProbeOrder(
        id=order, proto=proto, number=None, dst=address, src=None,
        blocks=[ProbeBlock(list(ports), "nonce", 1)], first_ms=None, look_ms=1000, looks=2,
        pace=None, min_ttl=None, ttl=None, size=None, host=None, sport=None, more=[],
    )  # fmt: skip


async def outcomes(
    link: AgentLink, order: ProbeOrder
) -> list[tuple[int, int, str | None, str | None]]:
    """(first, last, failure, answer) of an order's runs."""
    found = []
    async for answer in link.stream(order, ProbeOutcomes):
        for run in answer.runs:
            kind = answer.kinds[run.kind]
            found.append((run.first, run.last, kind.failure, kind.answer))
    return sorted(found)


async def gone(pid: int) -> None:
    """Wait until a process has ended."""
    await until(lambda: not is_running(pid), f"process {pid} to end")


def is_running(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def naming(text: str) -> list[int]:
    """Processes whose command line has this text: ssh's connection masters name their folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in words and is_running(int(entry.name)):
                found.append(int(entry.name))
    return found

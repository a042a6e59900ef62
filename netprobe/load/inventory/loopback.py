"""Addresses that mean every host itself: probes of one would never leave their source."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from netprobe.errors import Problem
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import quoted
from netprobe.model.inventory import Address, Host

# Names that Debian's and Red Hat's /etc/hosts give to loopback, beside *.localhost (RFC 6761).
_NAMES = frozenset(
    ("localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost",
     "ip6-loopback")
)  # fmt: skip


def loopback_problems(hosts: Sequence[Host], asked: Iterable[Host]) -> Iterator[Problem]:
    """A problem for each loopback address of the hosts asked about, unless all is one machine."""
    if is_one_machine(hosts):
        return
    for host in asked:
        for address in (*host.addresses, *host.source_addresses):
            if is_loopback(address):
                yield _make_problem(host, address)


def loopback_notes(hosts: Sequence[Host]) -> list[str]:
    """Notes about loopback addresses that :func:`loopback_problems` lets pass."""
    names = [host.name for host in hosts if any(map(is_loopback, host.addresses))]
    if not names or not is_one_machine(hosts):
        return []
    words = "loopback addresses: what is sent there never leaves this machine"
    return [f"{len(names)} of {len(hosts)} hosts have {words}"]


def is_loopback(address: Address) -> bool:
    """Tell whether every host means itself by this address or name."""
    if address.family is not None:
        return ipaddress.ip_address(address.text).is_loopback
    name = address.text.lower().removesuffix(".")
    return name in _NAMES or name.endswith(".localhost")


def is_one_machine(hosts: Sequence[Host]) -> bool:
    """Tell whether all agents are on the machine that netprobe runs on, as a lab's are."""
    kinds = {host.vantage.kind for host in hosts}
    elsewhere = (host for host in hosts if host.vantage.kind == "command")
    inside = all(is_loopback(address) for host in elsewhere for address in host.addresses)
    return "local" in kinds and "ssh" not in kinds and inside


def _make_problem(host: Host, address: Address) -> Problem:
    words = f"{quoted(address.text)} means every host itself, so no probe of it leaves its source"
    expected = "expected the address at which other hosts reach it"
    if host.place:
        beside = '"ssh: {host: ...}" may name another' if host.vantage.kind == "ssh" else ""
        expected = f"{expected} ({beside})" if beside else expected
        return problem_at(host.place, f"host {quoted(host.name)}: {words}, {expected}")
    text = f"host {host.name}: {words}, {expected} in ansible_host or netprobe_addresses"
    return Problem("Ansible inventory", 0, 0, text)

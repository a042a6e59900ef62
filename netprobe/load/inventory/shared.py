"""Addresses that several hosts have: right for a virtual one, else a slip of the pen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netprobe.errors import Problem
from netprobe.load.inventory.loopback import is_loopback, is_one_machine
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, quoted
from netprobe.model.inventory import Host


def shared_problems(hosts: Sequence[Host], asked: Iterable[Host]) -> Iterator[Problem]:
    """A problem for each host asked about whose agent and address are another's, too.

    Where the inventory itself says by the way onto them that two names are one machine, there is
    none; a way that follows from the address says nothing.
    """
    wanted = {host.name for host in asked}
    for address, owners in _find_shared(hosts).items():
        for at, other in enumerate(owners):
            rivals = [one for one in owners[:at] if not _may_share(one, other, address)]
            if rivals and other.name in wanted:
                yield _make_problem(rivals[0], other, address)


def shared_notes(hosts: Sequence[Host]) -> list[str]:
    """Notes about the addresses that several hosts have."""
    return [
        f"hosts {listed(host.name for host in owners)} share the address {address}: is it a "
        "virtual one?"
        for address, owners in _find_shared(hosts).items()
    ]


def _find_shared(hosts: Sequence[Host]) -> dict[str, list[Host]]:
    """The hosts of every address that more than one has; loopback ones of one machine apart."""
    alone = is_one_machine(hosts)
    owners: dict[str, list[Host]] = {}
    for host in hosts:
        for address in host.addresses:
            if not (alone and is_loopback(address)):
                owners.setdefault(address.text.lower(), []).append(host)
    return {address: some for address, some in owners.items() if len(some) > 1}


def _may_share(one: Host, other: Host, address: str) -> bool:
    if "none" in (one.vantage.kind, other.vantage.kind):
        return True
    ssh = one.vantage.ssh
    told = ssh is None or ssh.host.lower() != address
    return one.vantage == other.vantage and told


def _make_problem(one: Host, other: Host, address: str) -> Problem:
    words = f"{quoted(address)} is the address of host {quoted(one.name)} too, and both have agents"
    expected = (
        "expected an address of its own; a virtual address is a host of its own with vantage none, "
        "and one machine is one host with all its roles"
    )
    if other.place:
        return problem_at(other.place, f"host {quoted(other.name)}: {words}, {expected}")
    return Problem("Ansible inventory", 0, 0, f"host {other.name}: {words}, {expected}")

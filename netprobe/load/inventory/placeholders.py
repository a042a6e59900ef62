"""Addresses that ``netprobe init`` wrote and nobody replaced: a plan may have them, a run not."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from netprobe.errors import Problem
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, quoted
from netprobe.model.inventory import Host

# Documentation addresses (RFC 5737), so that an unedited inventory reaches no real host.
NETWORK = ipaddress.ip_network("192.0.2.0/24")


def placeholder_name(role: str) -> str:
    """Give the name of the host that ``init`` writes for a role."""
    return f"{role}-0"


def placeholder_problems(hosts: Sequence[Host]) -> Iterator[Problem]:
    """Give a problem for every host that cannot be probed, because its address is an example."""
    for host in filter(_is_placeholder, hosts):
        words = (
            f"host {quoted(host.name)} still has the address {host.addresses[0].text} that "
            "`netprobe init` wrote, expected its own, or no such host"
        )
        yield problem_at(host.place, words)


def placeholder_notes(hosts: Sequence[Host]) -> list[str]:
    """Give a note for a plan, which needs no real addresses."""
    names = [host.name for host in hosts if _is_placeholder(host)]
    if not names:
        return []
    have = "still has the address" if len(names) == 1 else "still have the addresses"
    return [f"{listed(names)} {have} that `netprobe init` wrote: `netprobe run` refuses them"]


def _is_placeholder(host: Host) -> bool:
    """Tell an example from a lab with such addresses: its name, or its way in, is one too."""
    address = host.addresses[0]
    if (
        not host.place
        or address.family is None
        or ipaddress.ip_address(address.text) not in NETWORK
    ):
        return False
    ssh = host.vantage.ssh
    named = any(host.name == placeholder_name(role) for role in host.roles)
    return named or (ssh is not None and ssh.host == address.text)

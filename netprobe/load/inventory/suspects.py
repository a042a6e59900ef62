"""Addresses that are probably not meant: loopback, those of several hosts, and examples.

Loopback addresses mean every host itself, so that probes of one would never leave their source. An
address that several hosts have is right for a virtual one, else a slip of the pen. A plan may have
the examples that ``netprobe init`` wrote and nobody replaced, a run may not.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from netprobe.errors import Problem
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, quoted
from netprobe.model.inventory import Address, Host

# Names that Debian's and Red Hat's /etc/hosts give to loopback, beside *.localhost (RFC 6761).
_NAMES = frozenset(
    ("localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost",
     "ip6-loopback")
)  # fmt: skip


def address_problems(hosts: Sequence[Host], asked: Sequence[Host]) -> Iterator[Problem]:
    """Give a problem for each loopback or shared address of the hosts asked about."""
    yield from _loopback_problems(hosts, asked)
    yield from _shared_problems(hosts, asked)


def _loopback_problems(hosts: Sequence[Host], asked: Iterable[Host]) -> Iterator[Problem]:
    """A problem for each loopback address of the hosts asked about, unless all is one machine."""
    if is_one_machine(hosts):
        return
    for host in asked:
        for address in (*host.addresses, *host.source_addresses):
            if is_loopback(address):
                yield _problem_of(host, _word_loopback(host, address))


def loopback_notes(hosts: Sequence[Host]) -> list[str]:
    """Notes about loopback addresses that :func:`address_problems` lets pass."""
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


def _word_loopback(host: Host, address: Address) -> str:
    words = f"{quoted(address.text)} means every host itself, so no probe of it leaves its source"
    expected = "expected the address at which other hosts reach it"
    if not host.place:
        return f"{words}, {expected} in ansible_host or netprobe_addresses"
    beside = ' ("ssh: {host: ...}" may name another)' if host.vantage.kind == "ssh" else ""
    return f"{words}, {expected}{beside}"


def _shared_problems(hosts: Sequence[Host], asked: Iterable[Host]) -> Iterator[Problem]:
    """A problem for each host asked about whose agent and address are another's, too.

    Where the inventory itself says by the way onto them that two names are one machine, there is
    none; a way that follows from the address says nothing.
    """
    wanted = {host.name for host in asked}
    for address, owners in _find_shared(hosts).items():
        for at, other in enumerate(owners):
            rivals = [one for one in owners[:at] if not _may_share(one, other, address)]
            if rivals and other.name in wanted:
                yield _problem_of(other, _word_shared(rivals[0], address))


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


def _word_shared(one: Host, address: str) -> str:
    words = f"{quoted(address)} is the address of host {quoted(one.name)} too, and both have agents"
    return (
        f"{words}, expected an address of its own; a virtual address is a host of its own with "
        "vantage none, and one machine is one host with all its roles"
    )


def _problem_of(host: Host, words: str) -> Problem:
    """Give a problem of a host; where it stands in its file, only our own inventories say."""
    if host.place:
        return problem_at(host.place, f"host {quoted(host.name)}: {words}")
    return Problem("Ansible inventory", 0, 0, f"host {host.name}: {words}")


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
    """Tell an example from a lab with such addresses, where a way in of its own leads."""
    address = host.addresses[0]
    if (
        not host.place
        or address.family is None
        or ipaddress.ip_address(address.text) not in NETWORK
    ):
        return False
    ssh = host.vantage.ssh
    if ssh is not None:
        return ssh.host == address.text
    named = any(host.name == placeholder_name(role) for role in host.roles)
    return named and host.vantage.kind == "none"

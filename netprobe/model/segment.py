"""What the rehearsal of a segment has seen of one address."""

from __future__ import annotations

from typing import NamedTuple

NAMES_SHOWN = 3


class RouterSeen(NamedTuple):
    """A router of no host of the inventory that sends advertisements for a virtual address.

    ``speaks``: ``VRRPv2``, ``VRRPv3``, ``CARP``, ``HSRP``, ``HSRPv2``. ``heard_by``: the hosts.
    ``maybe``: addresses of hosts without an agent that it may be.
    """

    speaks: str
    group: int
    priority: int
    sender: str
    link: str
    heard_by: tuple[str, ...]
    maybe: tuple[str, ...] = ()

    @property
    def shares_ids(self) -> bool:
        """Whether it has the same ids and link-layer addresses as VRRP; HSRP has its own."""
        return self.speaks.startswith(("VRRP", "CARP"))

    def words(self) -> str:
        """Give ``VRRPv2 id 51, priority 100, from 10.0.0.9 (02:00:00:00:00:09), heard by a``; where
        nobody says who heard it, without that."""
        about = "skew" if self.speaks == "CARP" else "priority"
        return (
            f"{self.speaks} id {self.group}, {about} {self.priority}, from {self.sender} "
            f"({self.link}){_word_hearers(self.heard_by)}"
        )


class DhcpSeen(NamedTuple):
    """A DHCP server that answered: its address, its machine (a host, or a link-layer address), and
    what it offers."""

    server: str
    machine: str
    offer: str | None

    def words(self) -> str:
        """Give ``10.0.0.9 (02:00:00:00:00:09) offers 10.0.0.50``."""
        return f"{self.server} ({self.machine}) offers {self.offer or 'no address'}"


class DhcpFacts(NamedTuple):
    """What is known of the DHCP servers of a network; ``is_barred``: it should have none.

    ``failure``: why ``asker`` could not ask.
    """

    asker: str
    servers: tuple[DhcpSeen, ...] = ()
    is_barred: bool = False
    failure: str | None = None

    def words(self) -> str:
        """Name all servers."""
        return "; ".join(one.words() for one in self.servers)


class SegmentFacts(NamedTuple):
    """What is known of an address that a host has, or that nobody should have yet (``is_free``).

    ``asker`` asked on its ``device``. ``itself``: the host answered; ``holders``: who else did, by
    name or link-layer address. ``is_silent``: of all addresses of hosts that were asked there none
    was answered, so that silence says nothing. ``routers``: those that its result names.
    ``is_deaf``: no host there could listen for any. ``vrid``: the id that the address will have.
    ``dhcp``: the servers of its network; one address of a network tells of them.
    """

    is_free: bool
    asker: str
    device: str
    itself: bool = False
    holders: tuple[str, ...] = ()
    is_silent: bool = False
    routers: tuple[RouterSeen, ...] = ()
    is_deaf: bool = False
    vrid: int | None = None
    dhcp: DhcpFacts | None = None

    @property
    def clashing(self) -> tuple[RouterSeen, ...]:
        """The routers of nobody of the platform that have the id which the address will have."""
        return tuple(
            one for one in self.routers
            if one.shares_ids and one.group == self.vrid and not one.maybe
        )  # fmt: skip


def _word_hearers(names: tuple[str, ...]) -> str:
    more = len(names) - NAMES_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f", heard by {', '.join(names[:NAMES_SHOWN])}{rest}" if names else ""

"""Which cases there are: the full product of actions, places, listeners and families."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Family = Literal[4, 6]
Listener = Literal["agent", "closed", "live"]

FAMILIES: tuple[Family, ...] = (4, 6)
# agent: the destination has an agent · closed: nobody there, nothing listens ·
# live: nobody of ours there, and a service runs that we know nothing of.
LISTENERS: tuple[Listener, ...] = ("agent", "closed", "live")
PROTOCOLS = ("tcp", "udp", "icmp")

# Every ICMP reject that nft offers for the family, in nft's words.
REJECTS: dict[Family, tuple[str, ...]] = {
    4: ("net-unreachable", "host-unreachable", "prot-unreachable", "port-unreachable",
        "net-prohibited", "host-prohibited", "admin-prohibited"),
    6: ("no-route", "admin-prohibited", "addr-unreachable", "port-unreachable", "policy-fail",
        "reject-route"),
}  # fmt: skip
RESET = "tcp-reset"

FIREWALLS = (
    "source-out",
    "router-1",
    "router-2",
    "destination-in",
    "destination-out",
    "back-router-2",
    "back-router-1",
    "source-in",
)
# A switched network has no router: only the ends have firewalls.
LAN_FIREWALLS = ("source-out", "destination-in", "destination-out", "source-in")
ROUTES = ("route-source", "route-router-1", "route-destination", "route-back-router-2")
ROUTE_TYPES = ("none", "unreachable", "prohibit", "blackhole")


@dataclass(frozen=True, order=True)
class Case:
    """One address of one destination, and what is done to all packets from or to it.

    ``place`` is a name of the lists above, ``open`` (nothing is done) or ``down`` (no such host).
    ``lan``: the destination is a neighbour of the source. ``copy``: the same once more.
    """

    family: Family
    place: str
    action: str
    listener: Listener
    lan: bool = False
    copy: int = 0

    @property
    def name(self) -> str:
        """How reports call it."""
        near = "lan " if self.lan else ""
        return f"v{self.family} {near}{self.place} {self.action} ({self.listener})"

    @property
    def protocols(self) -> tuple[str, ...]:
        """What is probed. The kernel answers echo whatever runs: ``live`` adds nothing to it.

        A TCP reset is no answer to a datagram: there the rule does nothing and is not a case.
        """
        if self.action == RESET:
            return ("tcp",)
        return ("tcp", "udp") if self.listener == "live" else PROTOCOLS


def all_cases() -> list[Case]:
    """The whole product, in a fixed order."""
    return [*_far(), *_near(), *_routes(), *_down()]


def sample(share: int) -> list[Case]:
    """One case of ``share``, spread evenly over places, actions, listeners and families."""
    ordered = sorted(all_cases(), key=lambda case: (case.lan, case.place, case.action, case))
    return [case for number, case in enumerate(ordered) if number % share == 0]


def open_cases(copies: int) -> list[Case]:
    """Nothing but open ways, many times: what random loss must not turn into a firewall."""
    return [
        Case(family, "open", "accept", listener, copy=copy)
        for family, listener in itertools.product(FAMILIES, LISTENERS)
        for copy in range(copies)
    ]


def _actions(family: Family) -> tuple[str, ...]:
    return ("drop", *REJECTS[family], RESET)


def _far() -> Iterator[Case]:
    for family, listener in itertools.product(FAMILIES, LISTENERS):
        yield Case(family, "open", "accept", listener)
        for place, action in itertools.product(FIREWALLS, _actions(family)):
            yield Case(family, place, action, listener)


def _near() -> Iterator[Case]:
    listeners: tuple[Listener, ...] = ("agent", "closed")
    for family, listener in itertools.product(FAMILIES, listeners):
        yield Case(family, "open", "accept", listener, lan=True)
        for place in LAN_FIREWALLS:
            for action in ("drop", "admin-prohibited", RESET):
                yield Case(family, place, action, listener, lan=True)


def _routes() -> Iterator[Case]:
    for family, listener in itertools.product(FAMILIES, LISTENERS):
        for place, action in itertools.product(ROUTES, ROUTE_TYPES):
            yield Case(family, place, action, listener)


def _down() -> Iterator[Case]:
    for family, lan in itertools.product(FAMILIES, (False, True)):
        yield Case(family, "down", "host", "closed", lan)

"""Names that hosts cannot look up: which failures have one cause with a host's name servers.

Where none of a host's servers resolves anything, no name of it is at fault. And servers that are
silent to a host may not be at fault themselves: what stops its flows stops its questions, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from netprobe.judge.machines import shows_machine
from netprobe.judge.rules import is_own_stop
from netprobe.judge.walls import group_by_box
from netprobe.model.reason import Share
from netprobe.model.reasons import find_reason
from netprobe.model.result import Result

# What a lookup fails by: the cause first, then what comes of it.
_OF_LOOKUPS: Final[tuple[Share, ...]] = ("resolver", "name")
_DNS_PORT = 53


def rank_of_lookup(result: Result) -> int:
    """Give 0 for what is no lookup, 1 for a host's name servers, and 2 for a name."""
    shares = find_reason(result.reason).shares
    return _OF_LOOKUPS.index(shares) + 1 if shares in _OF_LOOKUPS else 0


def choose_leading(members: Iterable[Result]) -> list[Result]:
    """Give the members of a finding that its cause shows in, without the lookups that follow."""
    ranked = [(rank_of_lookup(one), one) for one in members]
    least = min(rank for rank, _ in ranked)
    return [one for rank, one in ranked if rank == least]


def set_lookups_apart(
    failures: Sequence[Result], passes: Iterable[Result], *, some_ports: bool
) -> tuple[list[Result], dict[int, list[Result]]]:
    """Set apart the lookups that fail for the cause of another failure.

    They have its finding, and stand in the dictionary by its ``id``. ``some_ports``: nobody knows
    what a host's own firewall lets out.
    """
    resolvers = [one for one in failures if rank_of_lookup(one) == 1]
    lost = _find_lost_ways(failures, passes) if resolvers else {}
    if resolvers and not some_ports:
        lost |= _find_sealed(failures, passes)
    causes = {
        (one.source, one.decides): _find_cause(one, failures, lost) or one for one in resolvers
    }
    kept: list[Result] = []
    followers: dict[int, list[Result]] = {}
    for one in failures:
        cause = causes.get((one.source, one.decides)) if rank_of_lookup(one) else None
        if cause is None or cause is one:
            kept.append(one)
        else:
            followers.setdefault(id(cause), []).append(one)
    return kept, followers


def group_by_name(
    failures: Sequence[Result], passes: Iterable[Result]
) -> tuple[list[list[Result]], list[Result]]:
    """Group names that do not resolve, and give the other failures.

    A name has a record, and hosts have name servers: where others resolve a name, all names that
    these hosts do not resolve have one cause.
    """
    names = [one for one in failures if rank_of_lookup(one) == 2]
    others = [one for one in failures if rank_of_lookup(one) != 2]
    resolved = {one.destination for one in chain(others, passes)} if names else set()
    groups: dict[tuple[bool, str], list[Result]] = {}
    of_hosts: dict[bool, list[Result]] = {}
    for one in names:
        if one.destination in resolved:
            of_hosts.setdefault(one.decides, []).append(one)
        else:
            groups.setdefault((one.decides, one.address), []).append(one)
    boxes = [
        box for some in of_hosts.values()
        for box in group_by_box(some, lambda one: (one.source, one.address))
    ]  # fmt: skip
    return [*groups.values(), *boxes], others


def _find_lost_ways(
    failures: Sequence[Result], passes: Iterable[Result]
) -> dict[tuple[str, bool], Result]:
    """Find the hosts to which a router has no way for most who send them anything, with its words.

    Name servers are further senders: nobody else of the run is where they are.
    """
    facts = {
        (one.destination, one.decides): one
        for one in failures if find_reason(one.reason).shares == "router"
    }  # fmt: skip
    senders: dict[str, set[str]] = {}
    heard: dict[str, set[str]] = {}
    for one in failures:
        senders.setdefault(one.destination, set()).add(one.source)
    for one in passes if facts else ():
        heard.setdefault(one.destination, set()).add(one.source)
        if one.proof != "witness":
            heard.setdefault(one.source, set()).add(one.destination)
    return {
        (host, decides): one
        for (host, decides), one in facts.items()
        if len(senders[host] - heard.get(host, set())) > len(heard.get(host, ()))
    }


def _find_sealed(
    failures: Sequence[Result], passes: Iterable[Result]
) -> dict[tuple[str, bool], Result]:
    """Find the hosts whose own firewall lets nothing out to anybody, with one that it stops."""
    found = {(one.source, one.decides): one for one in failures if is_own_stop(one)}
    peers: dict[str, set[str]] = {}
    for one in failures:
        if one.source != one.destination:
            peers.setdefault(one.source, set()).add(one.destination)
    heard: set[str] = set()
    for one in passes if found else ():
        if one.source != one.destination:
            heard.add(one.source)
            heard.update([] if one.proof == "witness" else [one.destination])
    return {
        (host, decides): one
        for (host, decides), one in found.items()
        if host not in heard and len(peers[host]) > 1
    }


def _find_cause(
    resolver: Result, failures: Iterable[Result], lost: Mapping[tuple[str, bool], Result]
) -> Result | None:
    """Find the failure with a cause that stops a host's questions to its name servers."""
    known = lost.get((resolver.source, resolver.decides))
    alike = [one for one in failures if one.decides == resolver.decides]
    held = (one for one in alike if _stops_answers(one, resolver))
    stops = (_asks_server, _is_hop)
    found = (one for one in alike if any(stop(one, resolver) for stop in stops))
    # Routers ration their words, and neighbours do not: what comes first does not rest on those.
    return next(chain(held, () if known is None else (known,), found), None)


def _asks_server(one: Result, resolver: Result) -> bool:
    """Tell whether it is a flow to one of the servers, as the questions are."""
    first, last = one.port or 0, one.end_port or 0
    is_dns = one.protocol == "udp" and first <= _DNS_PORT <= last
    return is_dns and one.source == resolver.source and one.address in resolver.name_servers


def _stops_answers(one: Result, resolver: Result) -> bool:
    """Tell whether answers to the host come to another machine, which has its address, too."""
    return shows_machine(one) and one.destination == resolver.source


def _is_hop(one: Result, resolver: Result) -> bool:
    """Tell whether it shows that the next hop on the way to the servers is at fault."""
    is_of_hop = find_reason(one.reason).shares == "next-hop" and one.source == resolver.source
    return is_of_hop and one.next_hop is not None and one.next_hop == resolver.next_hop

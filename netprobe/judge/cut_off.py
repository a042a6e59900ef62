"""Hosts that nothing gets to and nothing leaves: what fails at both their ends has one cause.

A cable that is out, or a port in another network, shows in several ways: the host has no link, or
gets no answer of its next hop; neighbours ask for its address in vain, and so do routers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from netprobe.judge.lookups import rank_of_lookup
from netprobe.model.reasons import find_reason
from netprobe.model.result import Result

# What shows it, the surest first.
_SHOWN_BY: Final = ("no-carrier", "host-unreach", "next-hop-down", "host-down")
_OF_THE_OTHER_END: Final = ("host-unreach", "host-down")
# What else it explains.
_FEWEST_PEERS = 2
# A device that is down takes the routes of its host along.
_NO_WAY_OUT: Final = "no-route"
# So does a router's device of the routes to that host.
_NO_WAY_THERE: Final = "net-unreach"
_SILENT: Final = ("no-response", "host-unreach", "no-carrier", "host-down")


def host_of_link(result: Result) -> str | None:
    """Give the host whose link a failure shows to carry nothing of it; None: it shows none."""
    if result.state != "unreachable" or result.reason not in _SHOWN_BY:
        return None
    return result.destination if result.reason in _OF_THE_OTHER_END else result.source


class CutOffHosts:
    """Of each host that is cut off the failure that shows it best."""

    def __init__(self, failures: Sequence[Result], *, some_ports: bool) -> None:
        self._failures = failures
        self._proofs: dict[tuple[str, bool], Result] = {}
        shown = _list_shown(failures)
        # Ports that were left out may get through to any host that has a link.
        for one in (one for one in shown if not some_ports or one.reason == "no-carrier"):
            self._proofs.setdefault((host_of_link(one) or "", one.decides), one)

    def __bool__(self) -> bool:
        return bool(self._proofs)

    def leave_out(self, connected: Iterable[str]) -> None:
        """Leave out the hosts that something gets to or leaves, or that few know of.

        Nor is a host cut off whose next hop is silent, if nobody has sent it anything.
        """
        peers: dict[str, set[str]] = {}
        addressed: set[str] = set()
        for one in self._failures:
            if one.source != one.destination:
                peers.setdefault(one.source, set()).add(one.destination)
                peers.setdefault(one.destination, set()).add(one.source)
                addressed.add(one.destination)
        known = {*connected}
        self._proofs = {
            (host, decides): proof
            for (host, decides), proof in self._proofs.items()
            if host not in known
            # Its own kernel knows its link; what others see of it may be between them and it.
            and (len(peers[host]) >= _FEWEST_PEERS or proof.reason == "no-carrier")
            and (host in addressed or proof.reason != "next-hop-down")
        }

    def explain(self, result: Result) -> Result | None:
        """Give the failure that shows the cause of this one, where a host is cut off."""
        ends: tuple[str, ...] = (result.source, result.destination)
        if rank_of_lookup(result) or result.reason == _NO_WAY_OUT:
            ends = (result.source,)
        elif result.reason == _NO_WAY_THERE:
            ends = (result.destination,)
        elif not _may_be_lost(result):
            return None
        proofs: Mapping[tuple[str, bool], Result] = self._proofs
        found = (proofs.get((end, result.decides)) for end in ends)
        return next((one for one in found if one is not None), None)


def find_cut_off_proof(members: Sequence[Result]) -> Result | None:
    """Give the member that shows a host to be cut off, if all members are of that host."""
    ends = [{one.source, one.destination} for one in members]
    return next(
        (one for one in _list_shown(members) if all(host_of_link(one) in some for some in ends)),
        None,
    )


def _list_shown(failures: Sequence[Result]) -> list[Result]:
    """List what shows a link that carries nothing, the surest first. A host that a router gives up
    may be switched off, unless its agent says that it has no route."""
    routeless = {one.source for one in failures if one.reason == _NO_WAY_OUT}
    shown = [one for one in failures if _shows_link(one, routeless)]
    return sorted(shown, key=lambda result: _SHOWN_BY.index(result.reason))


def _shows_link(result: Result, routeless: Container[str]) -> bool:
    host = host_of_link(result)
    return host is not None and (result.reason != "host-down" or host in routeless)


def _may_be_lost(result: Result) -> bool:
    """Tell whether it fails between the hosts, and in silence: a firewall's words are its own."""
    is_hop = find_reason(result.reason).shares == "next-hop"
    return (is_hop or result.reason in _SILENT) and bool({"path", "return-path"} & {*result.where})

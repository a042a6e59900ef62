"""Next hops that one host calls silent, and another host of the run has heard.

A host knows only the answers that came to it so far, and routers limit how many errors they send.
A next hop that answers any host handles packets. So the silence begins behind it, whatever the
order in which the run asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.model.result import Result

# The reason of a flow whose source had no answer from its next hop or from behind it.
INFERRED = "next-hop-silent"


class HeardHops:
    """The routers that any host has heard, and what that says of next hops."""

    def __init__(self) -> None:
        self._heard: set[tuple[str, str]] = set()
        self._by_anybody: set[str] = set()

    def listen(self, results: Iterable[Result]) -> Iterator[Result]:
        """Give results as they come, and note which routers they heard."""
        for one in results:
            for address in _list_routers(one):
                self._heard.add((one.source, address))
                self._by_anybody.add(address)
            yield one

    def correct(self, failures: Sequence[Result]) -> list[Result]:
        """Give failures without the silence of a next hop that spoke; its address stays."""
        return [_move_behind(one) if self._is_refuted(one) else one for one in failures]

    def _is_refuted(self, result: Result) -> bool:
        hop = result.next_hop
        if result.reason != INFERRED or hop not in self._by_anybody:
            return False
        # A link-local address is known to each link by itself.
        return not ip_address(hop).is_link_local or (result.source, hop) in self._heard


def _list_routers(result: Result) -> Iterator[str]:
    """List the routers that spoke to the source of a result, each in its own name."""
    refused = result.rejected_by if result.where == ("path",) else None
    for address in (result.last_hop, refused):
        if address not in (None, result.address):
            yield str(address)


def _move_behind(result: Result) -> Result:
    where = tuple(place for place in result.where if place != "source")
    return replace(result, reason="no-response", where=where)

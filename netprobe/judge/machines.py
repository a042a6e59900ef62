"""Addresses for which another machine answers: what that explains beside the flows that show it.

What is sent there comes to the one machine or to the other. So silence has this cause, too, where
nothing else gets through; and so have answers to that host that are lost on their way.
"""

from __future__ import annotations

from collections.abc import Iterable

from netprobe.model.reasons import find_reason
from netprobe.model.result import Result

# What shows it best comes first.
_RANK = ("other-machine", "foreign-answer", "unproved-machine")


def shows_machine(result: Result) -> bool:
    """Tell whether a failure shows that another machine answers for its address."""
    return result.verdict == "blocked" and find_reason(result.reason).shares == "machine"


def rank_of_machine(result: Result) -> int:
    """Give how well a failure shows it: the lower, the better."""
    return _RANK.index(result.reason) if result.reason in _RANK else len(_RANK)


class MachineFacts:
    """Of each address that another machine has the failure that shows it best."""

    def __init__(self, failures: Iterable[Result]) -> None:
        self._by_address: dict[tuple[str, bool], Result] = {}
        self._by_host: dict[tuple[str, bool, bool], Result] = {}
        shown = sorted(filter(shows_machine, failures), key=rank_of_machine)
        for one in shown:
            self._by_address.setdefault((one.address, one.decides), one)
            self._by_host.setdefault((one.destination, ":" in one.address, one.decides), one)

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def of_address(self, result: Result) -> Result | None:
        """Give the failure that speaks for the address of this one."""
        return self._by_address.get((result.address, result.decides))

    def of_answers(self, result: Result) -> Result | None:
        """Give the failure that speaks for answers to the source of this one."""
        return self._by_host.get((result.source, ":" in result.address, result.decides))

"""Results of a file that contradict themselves, the plan in the same file, or a result before them.

A file may come from anybody. What is found here no run of any version writes.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence

from netprobe.model.combinations import is_possible
from netprobe.model.coverage import Unprobed
from netprobe.model.plan import PATH_MTU, PlannedRequirement
from netprobe.model.printable import clean
from netprobe.model.result import Result
from netprobe.model.run import RunIndex, RunInfo
from netprobe.model.struct_json import WrongValue

# The purpose of a path MTU names the requirement of the overlay that it serves.
_SERVED = re.compile(r"full-size packets of the overlay \((\S+): ")


class Contradictions:
    """Looks for contradictions in the results of one file, one after the other."""

    def __init__(self, info: RunInfo) -> None:
        self._index = RunIndex(info)
        self._served = {(one.matrix, one.id): one for one in info.requirements}
        self._flows = FlowsSeen()

    def check(self, result: Result) -> None:
        """Raise WrongValue where a result contradicts itself, its requirement or an earlier one."""
        check_alone(result)
        rows = self._find_planned(result)
        if rows:
            check_planned(result, rows)
        if not self._flows.add(result) and not self._may_be_named(result):
            raise WrongValue("the same flow stands in an earlier result, expected it once")

    def _find_planned(self, result: Result) -> list[PlannedRequirement]:
        """Give the requirements that a result counts as; files of old versions have none."""
        if result.requirement != PATH_MTU:
            return self._index.requirements(result)
        purposes = [(result.matrix, result.purpose)]
        purposes += ((one.matrix, one.purpose) for one in result.also)
        served = ((matrix, _SERVED.match(purpose)) for matrix, purpose in purposes)
        found = (self._served.get((matrix, name[1])) for matrix, name in served if name)
        return [one for one in found if one is not None]

    def _may_be_named(self, result: Result) -> bool:
        """Tell whether sources may have found the address by several names of one host."""
        host = self._index.hosts.get(result.destination)
        if host is None or host.named is not None:
            return host is not None and host.named is True
        # Files of 0.1.0 do not say so.
        return result.address not in host.addresses


def check_unprobed(info: RunInfo) -> None:
    """Raise WrongValue where flows that were not probed decide in another way than is planned."""
    index = RunIndex(info)
    for group in info.coverage.unprobed if info.coverage else ():
        rows = index.requirements(group)
        # The path MTU of several overlays is one requirement.
        if rows and group.requirement != PATH_MTU:
            check_planned(group, rows)


def check_alone(result: Result) -> None:
    """Raise WrongValue where no run writes such a result."""
    if not is_possible(result):
        where = ", ".join(result.where) or "nowhere"
        raise WrongValue(
            f"{result.verdict}, {result.state}, {clean(result.reason[:60])}, proof {result.proof}, "
            f"where {where}: these contradict each other"
        )
    if result.verdict == "pass" and (result.rejected_by is not None or result.story is not None):
        raise WrongValue("a pass that somebody rejected, or whose packets got lost")
    if result.spared is not None and (result.any_of is None or result.verdict == "pass"):
        raise WrongValue("spared, expected it only of a failure beside a row that is enough")


def check_planned(result: Result | Unprobed, rows: Sequence[PlannedRequirement]) -> None:
    """Raise WrongValue where it decides in another way than its requirements say.

    Of several the flow is optional, or waived, where none of them demands it otherwise.
    """
    optional = all(one.optional for one in rows)
    if result.optional != optional or any(result.expect != one.expect for one in rows):
        raise WrongValue("optional or expect is not that of its requirement")
    if isinstance(result, Result) and result.any_of not in (None, *(one.any_of for one in rows)):
        raise WrongValue("any_of is not that of its requirement")
    excused = all(one.optional or one.waive is not None for one in rows)
    waivers = [one.waive for one in rows if one.waive is not None]
    waived, waiver = result.waived, waivers[0] if excused and waivers else None
    if waived != waiver and not (waived and waiver and waiver.startswith(f"{waived}, until ")):
        raise WrongValue("waived is not what its requirement says")


class FlowsSeen:
    """The ports of each flow that were read, in some 150 bytes a flow."""

    def __init__(self) -> None:
        # First and last port as one number; most flows have one range.
        self._ranges: dict[int, int] = {}
        self._more: dict[int, list[int]] = {}

    def add(self, result: Result) -> bool:
        """Note the ports of a result; False where one of them was there before."""
        flow = hash((
            result.matrix, result.requirement, result.source, result.destination, result.address,
            result.protocol, result.purpose if result.requirement == PATH_MTU else "",
        ))  # fmt: skip
        first, last = result.port or 0, result.end_port or 0
        ports = first << 16 | last
        if flow not in self._ranges:
            self._ranges[flow] = ports
            return True
        ranges = self._more.setdefault(flow, [self._ranges[flow]])
        at = bisect(ranges, ports)
        if at and ranges[at - 1] & 0xFFFF >= first:
            return False
        if at < len(ranges) and ranges[at] >> 16 <= last:
            return False
        ranges.insert(at, ports)
        return True

"""Whether a run asks again what an earlier one found out: a result answers its question alone.

Files of an older netprobe do not say all of the question. What their results show counts then: a
pass by our listener, or by a refusal, comes from a run and a row where no service had to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netprobe.model.plan import Block, Plan, PlannedRequirement
from netprobe.model.result import Proof, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.planned_flows import PlannedFlow

# Proofs of passes where no service had to run.
_OF_NOTHING: tuple[Proof, ...] = ("nonce", "witness", "refusal")
# Proofs that ``--strict`` does not accept.
_WEAK: tuple[Proof, ...] = ("handshake", "refusal")


class SameQuestion:
    """Holds the questions of a plan against those of an earlier run."""

    def __init__(self, then: RunInfo, plan: Plan, *, live: bool, strict: bool) -> None:
        self._rows_then = _list_questions(then.requirements)
        self._rows_now = _list_questions(plan.requirements)
        self._live, self._strict = live, strict
        self._lives = (None if then.live is None else str(then.live), str(live))
        self._starts_then = {host.name: host.addresses for host in then.hosts}
        self._starts = {name: host.probing_addresses for name, host in plan.hosts().items()}

    def keep_answered(self, result: Result, flows: PlannedFlow) -> PlannedFlow:
        """Keep the places of a flow whose question an earlier result answers."""
        return tuple(one for one in flows if self._is_answered(result, one[1]))

    def _is_answered(self, result: Result, block: Block) -> bool:
        row = block.requirement
        if result.expect != row.expect or not self._starts_alike(result):
            return False
        is_pass, is_allowed = result.verdict == "pass", result.expect == "allowed"
        if self._strict and is_pass and is_allowed and result.proof in _WEAK:
            return False
        is_same = self._is_same(block)
        if is_same is not None:
            return is_same
        if not is_pass:
            return "service" not in result.where
        must_run = self._live or block.existing
        return is_allowed and not must_run and result.proof in _OF_NOTHING

    def _starts_alike(self, result: Result) -> bool:
        """Tell whether the source has the addresses that it had, of the family that was asked."""
        then, now = self._starts_then.get(result.source, ()), self._starts.get(result.source, ())
        version = _find_version(result.address)
        return _choose_addresses(then, version) == _choose_addresses(now, version)

    def _is_same(self, block: Block) -> bool | None:
        """Tell whether run and row ask the same; None: the earlier run does not say it."""
        rows = [(*name, block.protocol) for name in block.names_of_rows]
        pairs = [(self._rows_then.get(row), self._rows_now.get(row)) for row in rows]
        pairs.append(self._lives)
        if any(then and now and then != now for then, now in pairs):
            return False
        return True if all(then and now for then, now in pairs) else None


def _list_questions(
    requirements: Iterable[PlannedRequirement],
) -> Mapping[tuple[str, str, str], str]:
    return {(one.matrix, one.id, one.protocol): one.question for one in requirements}


def _choose_addresses(addresses: Iterable[str], version: int | None) -> set[str]:
    """Choose those of an IP version; None: all of them."""
    return {one for one in addresses if version in (None, _find_version(one))}


def _find_version(address: str) -> int | None:
    """Give the IP version of an address; None for a name, whose last label is no number."""
    if ":" in address:
        return 6
    return 4 if address.rpartition(".")[2].isdigit() else None

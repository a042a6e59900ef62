"""The stages in a row: evidence in, results out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import Evidence, Listener, Outcome
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from netprobe.model.run import Silent
from netprobe.plan.choices import PlanPart
from netprobe.probe.flows.work import Want
from netprobe.session import RunRequest, _Run
from tests.probe.builders import make_want
from tests.probe.fakes import FakeFleet

OPEN = Outcome("answer", None, answer="nonce", answered_by="b")


class Notes:
    """A sink that keeps results."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def add(self, result: Result) -> None:
        self.results.append(result)


def results_of(want: Want, *found: Evidence) -> list[tuple[str, str, int | None, int | None]]:
    """Verdict, reason and ports of what becomes of some evidence."""
    notes = Notes()
    plan = Plan((), (want.flow.block,))
    request = RunRequest(part=PlanPart(plan, plan))
    run = _Run(request, FakeFleet([]), [notes], Silent())
    run.emit(want, list(found))
    return [(one.verdict, one.reason, one.port, one.end_port) for one in notes.results]


def evidence(want: Want, *ports: tuple[int, int], outcome: Outcome = OPEN) -> Evidence:
    ours = Listener("ours")
    return Evidence(want.flow, "10.0.0.2", tuple(ports), outcome=outcome, listener=ours)


def test_evidence_that_cannot_be_judged_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception is named in the result, and other evidence has its own."""
    want = make_want("tcp", ((5, 9),))
    odd = replace(OPEN, answer="no-such-word")  # an odd value

    found = results_of(want, evidence(want, (5, 7)), evidence(want, (8, 9), outcome=odd))

    assert found == [("pass", "nonce-answer", 5, 7), ("not-tested", "netprobe-fault", 8, 9)]

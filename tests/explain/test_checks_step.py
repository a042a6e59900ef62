"""The step of an explanation that prints what the follow-up checks left in the trail."""

from __future__ import annotations

from typing import NamedTuple

from netprobe.explain.extra_checks import Further
from netprobe.explain.far_steps import checks_step
from netprobe.explain.view import View
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence, Listener, Outcome
from netprobe.model.notes import ConclusionNote
from netprobe.model.plan import Block, Flow
from netprobe.model.story import TrailEntry
from tests.plan.conftest import host, requirement

A = host("a", "node", addresses=("10.0.0.1",))
B = host("b", "node", addresses=("10.0.0.2",))


class LabelNote(NamedTuple):
    """What a new check notes; a field that nobody looked at is left out."""

    sent: bool
    hops: list[int]
    changed: bool | None = None


def make_view(*trail: TrailEntry) -> View:
    wanted = requirement("etcd", "node", "node", expect="allowed")
    ports = ((6443, 6443),)
    block = Block(0, "m", wanted, "tcp", ports, 4, (A,), ((B, B.addresses[0]),))
    evidence = Evidence(
        Flow(block, A, B, B.addresses[0]), "10.0.0.2", ports, trail=trail,
        outcome=Outcome("answer", None, answer="nonce"), listener=Listener("ours"),
    )  # fmt: skip
    return View(evidence, judge(evidence, (0, 0, 0), Rules())[0], Further(), {})


def test_every_entry_of_the_trail_is_printed() -> None:
    """A new check needs no step of its own; records stand in the steps that tell of them."""
    step = checks_step(
        make_view(
            TrailEntry("probe", note=ConclusionNote("x")),
            TrailEntry("flow-label", note=LabelNote(True, [1, 2]), elapsed_ms=12),
            TrailEntry("traceroute", elapsed_ms=80),
        )
    )

    assert step.words == ("flow-label: sent, 12 ms", "traceroute: 80 ms")
    assert step.facts == {
        "flow-label": {"sent": True, "elapsed_ms": 12}, "traceroute": {"elapsed_ms": 80},
    }  # fmt: skip


def test_a_flow_that_no_check_looked_at() -> None:
    """The step says so."""
    assert checks_step(make_view()).status == "not-needed"

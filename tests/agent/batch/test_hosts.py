"""Two hosts behind a firewall, driven by an engine: what each of them tells by itself."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.answers import ProbeOutcomes, Seen, StoryTold, Walked
from netprobe.agent.wire.batch import HostBudgets
from netprobe.agent.wire.orders import CloseOrder, ListenOrder, RecordOrder, SeenOrder, WalkOrder
from netprobe.agent.wire.parts import ListenBlock
from tests.agent.netlab import ADDRESS, DESTINATION, R1, SOURCE, rule
from tests.batch.engine import Engine
from tests.vantage.support import TEMPLATES, block, probe

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.usefixtures("lab")]

OPEN, DROPPED, DATAGRAMS = 4001, 4002, 4003
THERE = ADDRESS[4]["destination"]
Phases = list[tuple[str, list[Any]]]


def make_engines(folder: Path) -> tuple[Engine, Engine]:
    """The engine's view of source and destination, which have one run."""
    run = secrets.token_hex(8)
    blocks: list[ListenBlock] = [
        block("tcp", THERE, [(OPEN, DROPPED)]),
        block("udp", THERE, [(DATAGRAMS, DATAGRAMS)]),
    ]
    record = RecordOrder([(DATAGRAMS, DATAGRAMS)], [], None)
    asked = [
        probe(1, "tcp", THERE, [(OPEN, DROPPED)])._replace(host=4),
        probe(2, "udp", THERE, [(DATAGRAMS, DATAGRAMS)])._replace(host=4),
    ]
    source: Phases = [("listen", [TEMPLATES, record]), ("go", asked)]
    there: Phases = [
        ("listen", [TEMPLATES, record, ListenOrder(900, blocks)]),
        ("tell", [SeenOrder(901, 900, [1, 2], rest=True), CloseOrder(900)]),
    ]
    inside = ("ip", "netns", "exec")
    return (
        Engine(folder / "a", 0, words=(*inside, SOURCE, "sh", "-c"), own_phases=source, run=run,
               budgets=HostBudgets(looks=0, walks=9, routes=9, stories=9)),
        Engine(folder / "b", 0, words=(*inside, DESTINATION, "sh", "-c"), own_phases=there, run=run,
               host=4),
    )  # fmt: skip


def test_a_firewall_between_two_hosts(tmp_path: Path) -> None:
    """The open flows are answered and seen, the dropped one is neither; its walk ends behind the
    first router, and its story says that its packets left."""
    rule(R1, "forward", f"tcp dport {DROPPED} drop")
    source, there = make_engines(tmp_path)
    for step in ("start", "go", "wait", "collect", "stop"):
        for engine in (there, source):
            engine.steps(step)

    found = source.read()
    said = {
        (run.first, run.last): answer.kinds[run.kind].failure or answer.kinds[run.kind].answer
        for number in (1, 2)
        for answer in found.answers[number]
        if isinstance(answer, ProbeOutcomes)
        for run in answer.runs
    }
    assert said == {
        (OPEN, OPEN): "nonce",
        (DROPPED, DROPPED): "no-answer",
        (DATAGRAMS, DATAGRAMS): "nonce",
    }
    walk = next(order for order in found.orders if isinstance(order, WalkOrder))
    (walked,) = found.answers[walk.id]
    assert isinstance(walked, Walked)
    assert (walk.port, walked.hops[0].address, walked.reached) == (
        DROPPED, ADDRESS[4]["r1"], False,
    )  # fmt: skip
    stories = [one for some in found.answers.values() for one in some if isinstance(one, StoryTold)]
    assert [story.runs[0].ports for story in stories] == [[(DROPPED, DROPPED)]]
    assert stories[0].runs[0].requests is not None
    assert stories[0].runs[0].answers is None

    (seen,) = there.read().answers[901]
    assert isinstance(seen, Seen)
    assert [(one.order, one.ports) for one in seen.orders] == [
        (1, [(OPEN, OPEN)]), (2, [(DATAGRAMS, DATAGRAMS)]),
    ]  # fmt: skip

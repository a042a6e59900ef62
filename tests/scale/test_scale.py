"""Ranges stay ranges, results stream, and a plan of a thousand hosts is counted, not walked."""

from __future__ import annotations

import tracemalloc
from datetime import date
from typing import Any

import pytest

from bench.stream import OURS, PASSED, SILENT, _block, _host
from netprobe.agent.probers.outcomes import Outcomes, kind
from netprobe.agent.wire.orders import ProbeOrder
from netprobe.judge.verdict import Rules, judge
from netprobe.load.request import load_request
from netprobe.model.evidence import Evidence, Listener, Witness
from netprobe.model.plan import Block, Flow, Plan
from netprobe.plan import expand
from netprobe.plan.cost import estimate
from netprobe.probe.agents.templates import Templates
from netprobe.probe.flows.batches import parts
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.work import Work, join
from netprobe.probe.settings import ProbeSettings
from netprobe.report.record.collector import Collector

NODE_PORTS = ((30000, 32767),)
NODE_PORT_COUNT = 2768
MATRIX = "deckhouse-nodes"
FEW_OBJECTS_BYTES = 64 * 1024


def small_block(hosts: int) -> Block:
    """NodePorts between so many hosts."""
    return _block([_host(number) for number in range(hosts)])


def thousand_hosts(folder: Any) -> str:
    """An inventory of 1,000 hosts that fill every role of the matrix."""
    lines = ["schema: netprobe.inventory/1", "hosts:"]
    for number in range(1000):
        role = "master" if number < 5 else "frontend" if number < 15 else "node"
        if number == 999:
            role = "external, external-dns, external-ntp, external-registry"
        address = f"10.1.{number // 250}.{number % 250 + 1}"
        lines.append(f"  host-{number}: {{address: {address}, roles: [{role}], vantage: local}}")
    path = folder / "inventory.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_a_plan_of_a_thousand_hosts_is_counted_exactly(tmp_path: Any) -> None:
    """The counts are those of a walk over single pairs, and no pair is made for them."""
    chosen, inventory, notes = load_request((MATRIX,), (thousand_hosts(tmp_path),), ())
    tracemalloc.start()
    plan = expand.make_plan(chosen, inventory, date(2026, 11, 20), notes)
    cost = estimate(plan)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    etcd = [block for block in plan.blocks if block.requirement.id == "etcd"]
    assert sum(block.flow_count() for block in etcd) == 5 * 5 * 2
    kubelet = [block for block in plan.blocks if block.requirement.id == "kubelet"]
    assert sum(block.flow_count() for block in kubelet) == 5 * 999
    walked = {
        block.index: sum(len(block.destinations) for _ in block.sources) for block in plan.blocks
    }
    assert {b.index: b.pair_count() for b in plan.blocks if b.local} == {
        b.index: walked[b.index] for b in plan.blocks if b.local
    }
    assert cost.flows == plan.flow_count() > 1_000_000_000
    assert peak_bytes < 20 * 2**20


def test_a_range_is_one_object_in_the_plan_and_one_order_on_the_wire() -> None:
    """2,768 NodePorts are one pair of numbers from the plan to the probe order."""
    plan = Plan((), (small_block(2),))
    host = plan.blocks[0].destinations[0][0]
    tasks = join(Work(plan).wants(host), {})
    listeners = Listeners(Listener("closed"))
    found = [part for task in tasks for part in parts(task, listeners, Templates())]

    assert [task.ports for task in tasks] == [NODE_PORTS]
    (order,) = [part.make_order(1, None, ProbeSettings().timing) for part in found]
    assert isinstance(order, ProbeOrder)
    assert [block.ports for block in order.blocks] == [list(NODE_PORTS)]


@pytest.mark.parametrize("failure", ["refused", "no-answer"])
def test_equal_outcomes_of_a_range_are_one_run_of_the_wire(failure: str) -> None:
    """However the ports come in, an answer has one run for them."""
    sent: list[Any] = []
    outcomes = Outcomes(lambda *told: sent.append(told))
    ports = list(range(30000, 32768))
    if failure == "refused":
        outcomes.add_many(list(reversed(ports)), kind("connect", failure), 0.001, 1)
    else:
        for port in reversed(ports):
            outcomes.add(port, kind("connect", failure), None, 2)
    outcomes.flush()

    ((_, runs, _),) = sent
    assert [run[:2] for run in runs] == [(30000, 32767)]


def test_resets_beside_another_outcome_keep_every_port() -> None:
    """Ports that a reset refused join the others where there is a hole."""
    sent: list[Any] = []
    outcomes = Outcomes(lambda *told: sent.append(told))
    outcomes.add_many([1, 2, 4], kind("connect", "refused"), 0.001, 1)
    outcomes.add(3, kind("connect", answer="unasked"), 0.005, 1)
    outcomes.flush()

    ((kinds, runs, _),) = sent
    words = [kinds[run[2]].failure for run in runs]
    assert [run[:2] for run in runs] == [(1, 2), (3, 3), (4, 4)]
    assert words == ["refused", None, "refused"]


def test_a_passing_range_is_one_result() -> None:
    """One evidence of a whole range is judged once and reported once."""
    block = small_block(2)
    flow = Flow(block, block.sources[0], *block.destinations[1])
    witness = Witness(socket=True)
    evidence = Evidence(
        flow, "10.0.0.1", NODE_PORTS, outcome=PASSED, listener=OURS, witness=witness
    )

    (result,) = judge(evidence, (0, 0, 1), Rules())

    assert result.port_count == NODE_PORT_COUNT


@pytest.mark.slow
@pytest.mark.full
def test_results_stream_through_flat_memory() -> None:
    """Ten times as many results do not take ten times the memory: they lie on disk."""
    block = small_block(2)
    flow = Flow(block, block.sources[0], *block.destinations[1])
    collector = Collector({("bench", "nodeports", "tcp"): NODE_PORTS})
    collector._passes._chunk_results = collector._others._chunk_results = 500
    rules = Rules()
    sizes = []
    tracemalloc.start()
    for pair in range(50):
        for port in range(30000, 30200):
            outcome = PASSED if port % 2 else SILENT
            witness = Witness(socket=bool(port % 2))
            evidence = Evidence(
                flow, "10.0.0.1", ((port, port),), outcome=outcome, listener=OURS, witness=witness
            )
            for result in judge(evidence, (0, pair, 1), rules):
                collector.add(result)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert collector.summary(0).counts["pass"] == 5000
    assert max(sizes[40:]) < max(sizes[5:15]) + 16 * FEW_OBJECTS_BYTES
    assert sum(1 for _ in collector.results()) == 10_000
    collector.close()

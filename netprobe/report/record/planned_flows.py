"""The flows of a plan that a result of an earlier run is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from netprobe.model.codec import PlanOrder
from netprobe.model.plan import Block, Flow, Plan
from netprobe.model.result import Result
from netprobe.report.record.changes import keys_of

# The key of a flow of the plan; no address where the source resolves a name.
_FlowKey = tuple[str, str, str, str, str | None, str]
# Every place of a flow in the plan, and its block there.
PlannedFlow = tuple[tuple[PlanOrder, Block], ...]


def plan_flows(plan: Plan) -> dict[_FlowKey, PlannedFlow]:
    """Give the place and the block of every flow of the plan.

    A covering plan has one block more for each part of the ports; each overlay between two hosts
    has its path MTU.
    """
    found: dict[_FlowKey, PlannedFlow] = {}
    for block in plan.blocks:
        for place, source in enumerate(block.sources):
            for peer in block.peers(place):
                flow = Flow(block, source, *block.destinations[peer])
                for key in _flow_keys(flow):
                    found[key] = (*found.get(key, ()), (block.order(place, peer), block))
    return found


def find_planned(result: Result, planned: Mapping[_FlowKey, PlannedFlow]) -> PlannedFlow:
    """Find the flows of the plan that an earlier result is of, by any of its names."""
    found: dict[PlanOrder, Block] = {}
    for key in keys_of(result):
        by_name = (*key[:4], None, key[5])  # the source resolved it: no address in the plan
        found |= dict(planned.get(key) or planned.get(by_name) or ())
    return tuple(found.items())


def _flow_keys(flow: Flow) -> Iterator[_FlowKey]:
    block = flow.block
    address = None if block.family is None else flow.address.text
    ends = (flow.source.name, flow.destination.name, address)
    for name in block.names_of_rows:
        yield (*name, *ends, block.protocol)

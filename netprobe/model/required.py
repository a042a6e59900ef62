"""Which flows a plan requires, without ports: a later plan may no longer require some of them.

A history keeps it of each plan that a watch had.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from netprobe.model.plan import Plan
from netprobe.model.result import ResultKey


class RequiredBlock(Struct, frozen=True):
    """A requirement and its hosts. ``destinations``: their addresses; none where they are names,
    which may have any."""

    matrix: str
    requirement: str
    protocol: str
    sources: frozenset[str]
    destinations: Mapping[str, frozenset[str]]

    def has_flow(self, key: ResultKey) -> bool:
        """Tell whether this flow is one of it."""
        matrix, requirement, source, destination, address, protocol = key
        row = (matrix, requirement, protocol)
        if row != (self.matrix, self.requirement, self.protocol) or source not in self.sources:
            return False
        addresses = self.destinations.get(destination)
        return addresses is not None and (not addresses or address in addresses)


class RequiredFlows(Struct, frozen=True):
    """All of a plan, those included that no agent can probe."""

    blocks: tuple[RequiredBlock, ...]

    def has_flow(self, key: ResultKey) -> bool:
        """Tell whether this flow is required."""
        return any(block.has_flow(key) for block in self.blocks)


def require_flows(plan: Plan) -> RequiredFlows:
    """Give the flows that a plan requires."""
    found = []
    for block in (*plan.blocks, *plan.unable):
        ends: dict[str, set[str]] = {}
        for host, address in block.destinations:
            texts = ends.setdefault(host.name, set())
            if address.family is not None:
                texts.add(address.text)
        found.append(
            RequiredBlock(
                block.matrix,
                block.requirement.id,
                block.protocol,
                frozenset(host.name for host in block.sources),
                {name: frozenset(texts) for name, texts in ends.items()},
            )
        )
    return RequiredFlows(tuple(found))

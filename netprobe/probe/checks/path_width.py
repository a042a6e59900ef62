"""Tells the TCP flows of a pair that its path is too narrow for full-sized segments."""

from __future__ import annotations

from dataclasses import replace

from netprobe.model.notes import SizeNote
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Observation


class PathWidth(Check):
    """Asks for the width of the path where our listener answered a small segment."""

    name = "path-width"
    needs = "agent"

    def concerns(self, seen: Observation) -> bool:
        """The TCP flows that were probed directly."""
        return seen.outcome is not None and seen.task.protocol == "tcp" and seen.task.via is None

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Note on every flow of the pair what its path carries, where that is too little."""
        answered = [seen for seen in group if seen.proven]
        mtu = await scene.widths.find(answered[0]) if answered else None
        if mtu is None:
            return group
        note = SizeNote(mtu.path, mtu.needed)
        return [replace(seen, mtu=mtu).noting(self.name, note, "bad") for seen in group]

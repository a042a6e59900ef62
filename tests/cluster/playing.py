"""Runs against a small API server, for tests; time passes at once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from netprobe.batch.results import StoredRun
from netprobe.cluster.kubectl import Kubectl
from netprobe.cluster.manifest import ManifestOf, make_objects
from netprobe.cluster.pods import ArrivedPods
from netprobe.cluster.run import ClusterRun
from netprobe.signals import run_until_signal
from tests.batch.merging import World
from tests.batch.world import Merged

HOUR_S = 3600.0


@dataclass
class Played:
    """A run against an API: what it printed, and until when it waited."""

    world: World
    kube: Kubectl
    namespace: str = ""
    lines: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    stopped: bool = False
    ask_more: Callable[[ArrivedPods], Awaitable[None]] | None = None
    on_wait: Callable[[float], object] = lambda _when: None

    def carry_out(self, *, interrupt_at: int = 0) -> StoredRun:
        """Carry it out; ``interrupt_at``: the wait at which somebody presses Ctrl-C."""
        request = replace(self.world.request, starts_at=time.time() + HOUR_S)
        scripts = list(self.world.scripts.values())
        objects = make_objects(ManifestOf(request.run, 3, b"x", "x", self.namespace))

        async def wait(when: float) -> None:
            self.waits.append(when)
            self.on_wait(when)
            if len(self.waits) == interrupt_at:
                os.kill(os.getpid(), 2)
                await asyncio.sleep(HOUR_S)

        run = ClusterRun(self.kube, request, scripts, objects, self.lines.append, wait)
        self.stopped = run_until_signal(run.carry_out(self.ask_more))
        return run.stored()


def verdicts(stored: StoredRun) -> dict[str, int]:
    """How many flows have which verdict."""
    merged = Merged(stored.request, stored.recordings, missing=stored.missing, heard=True)
    found = [one.verdict for one in merged.results]
    return {verdict: found.count(verdict) for verdict in set(found)}


def verdicts_of_files(world: World) -> dict[str, int]:
    """The same of what hosts wrote into files."""
    return verdicts(StoredRun(world.request, tuple(world.recordings.values()), {}))

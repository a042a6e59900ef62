"""What a diagnosis needs is imported before a connection waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from netprobe.konnectivity import run as running
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.request import Tunnel
from netprobe.model.konnectivity import Diagnosis
from netprobe.model.run import Silent
from netprobe.vantage.launch import Launcher


class ReadyFleet:
    """Its agents are ready at once."""

    def agent(self, _host: object) -> ReadyFleet:
        return self

    async def wait_ready(self) -> None:
        """Be ready."""


def test_httpx_is_there_before_a_worker_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy hangs up on a client that is silent for as long as an import takes."""
    steps: list[str] = []

    @asynccontextmanager
    async def open_fleet(*_: object) -> AsyncIterator[ReadyFleet]:
        yield ReadyFleet()

    async def load() -> None:
        steps.append("load")

    async def diagnose(*_: object) -> Diagnosis:
        steps.append("ask")
        return diagnosis("w", "direct", Log(), Conclusion("TCP_FILTERED", "as it was seen"))

    monkeypatch.setattr(running, "open_fleet", open_fleet)
    monkeypatch.setattr(running, "load_http", load)
    monkeypatch.setattr(running, "diagnose", diagnose)
    tunnel, launcher = Tunnel("k.example.com", 443, "route"), cast(Launcher, None)
    running.run(tunnel, [running.LOCAL], "none", (), launcher, Silent())

    assert steps == ["load", "ask"]

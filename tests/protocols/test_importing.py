"""httpx is imported beside the loop, before a connection opens: nobody is held up by it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from netprobe.model.konnectivity import Pipe
from netprobe.protocols.services import http_exchange, identify
from netprobe.protocols.services.http_exchange import load_http
from netprobe.protocols.services.identify import Asked
from netprobe.protocols.services.services import service_for

# It ends once the loop has had a turn meanwhile, or fails.
SLOW = """
import builtins
assert builtins.loop_had_a_turn.wait(30)
"""


async def test_a_loop_goes_on_while_httpx_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks that need httpx both wait until it is there."""
    turn = threading.Event()
    monkeypatch.setattr("builtins.loop_had_a_turn", turn, raising=False)
    monkeypatch.setattr(http_exchange, "_BACKEND", "slow_to_import")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    (tmp_path / "slow_to_import.py").write_text(SLOW)
    done: list[str] = []

    async def load() -> None:
        await load_http()
        done.append("loaded")

    async def go_on() -> None:
        done.append("turn")
        turn.set()

    await asyncio.gather(load(), load(), go_on())

    assert done == ["turn", "loaded", "loaded"]
    assert "slow_to_import" in sys.modules


async def test_httpx_is_there_before_a_connection_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server ends a connection that is silent for as long as an import takes."""
    done: list[str] = []

    async def load() -> None:
        done.append("loaded")

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Pipe | None]:
        done.append("dialled")
        yield None

    monkeypatch.setattr(identify, "load_http", load)
    service = service_for("kube-apiserver")
    assert service is not None
    await identify.identify(service, Asked("192.0.2.1", 6443), dial)

    assert done == ["loaded", "dialled"]

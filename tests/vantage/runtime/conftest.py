"""A runtime for all tests of this folder, and agents that are always closed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from netprobe.vantage.launch import Launcher
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import Runtime
from tests.vantage.runtime.support import session_runtime, take_own_prefix


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    """The runtime of this Python."""
    return session_runtime(tmp_path_factory)


@pytest.fixture(autouse=True)
def _own_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    take_own_prefix(monkeypatch)


@pytest.fixture
async def launcher(runtime: Runtime) -> AsyncIterator[Launcher]:
    """A launcher that may send that runtime."""
    async with Launcher(retry_s=0.05, runtimes=Runtimes([runtime])) as made:
        yield made

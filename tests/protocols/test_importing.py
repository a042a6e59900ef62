"""Libraries are imported beside the loop: an import that takes long holds nothing up."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from netprobe.protocols.services.http_exchange import import_beside

# It ends once the loop has had a turn meanwhile, or fails.
SLOW = """
import builtins
assert builtins.loop_had_a_turn.wait(30)
"""


@pytest.mark.asyncio(loop_factories=["real"])
async def test_a_loop_goes_on_while_a_library_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that two ask for is imported once, and both wait for it."""
    turn = threading.Event()
    monkeypatch.setattr("builtins.loop_had_a_turn", turn, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_to_import.py").write_text(SLOW)

    async def go_on() -> None:
        turn.set()

    await asyncio.gather(import_beside("slow_to_import"), import_beside("slow_to_import"), go_on())

    assert "slow_to_import" in sys.modules

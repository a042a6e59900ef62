"""Which loop a test runs in: one of real time, or one whose time jumps.

Where both ends are in one process, and nothing between them but a pair of sockets, time may jump:
it passes only when nothing else is left to do, so no busy machine makes anybody late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from netprobe.probe.jumping_loop import JumpingLoop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
LOOPS: dict[str, LoopFactory] = {"real": asyncio.SelectorEventLoop, "jumping": JumpingLoop}


def loops_of(item: pytest.Item, usual: str) -> Mapping[str, LoopFactory]:
    """The loop that ``pytest.mark.asyncio(loop_factories=["real"])`` names, else the usual one."""
    marker = item.get_closest_marker("asyncio")
    (name,) = (marker and marker.kwargs.get("loop_factories")) or (usual,)
    return {name: LOOPS[name]}

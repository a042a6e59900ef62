"""A host's root writes anything under the host's own key: its own flows bear it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch.merging import WEB, Message, World, list_messages, make_world, merge_each
from tests.batch.world import plan_of
from tests.cli.lying_agent import BENDS

# In these ways a message is none at all, or a file that is too large (``test_limits``).
SHAPELESS = ("nested", "wide", "no-json", "endless", "huge")


@pytest.fixture(scope="module")
def world() -> World:
    """Flows of three protocols; clocks tell whether hosts listened while others probed."""
    return make_world(plan_of(WEB, ("dns", "udp", ((53, 53),)), ("ping", "icmp", ())), "clock")


def list_bent(world: World) -> Iterator[tuple[tuple[str, str], list[Message]]]:
    """All messages of a kind bent in one way: left out, doubled, turned round, emptied ..."""
    messages = list_messages(world)
    for kind in sorted({message[0] for message in messages}):
        for how, bend in BENDS.items():
            if how not in SHAPELESS:
                yield (
                    (kind, how),
                    [
                        bent
                        for message in messages
                        for bent in (bend(message) if message[0] == kind else [message])
                    ],
                )


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_every_message_bent_in_every_way(world: World, tmp_path: Path, step: int) -> None:
    """What the other hosts wrote counts as it did, and netprobe has no bug."""
    plan = world.write_plan(tmp_path / "run")
    tries = list(list_bent(world))[::step]
    assert merge_each(world, plan, tmp_path, tries) * step > 200

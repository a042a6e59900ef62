"""Facts that hosts are asked of themselves: an order and its answer stand side by side."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire import host_messages
from netprobe.agent.wire.frames import FrameReader, encode_frame
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.batch.ideal import give_nothing
from netprobe.batch.messages import SCRIPTED
from netprobe.probe.agents.rules import ANSWERS_TO

# What bundles never ask is not answered by a dry run.
ASKED = [one for one in vars(host_messages).values() if one in list(SCRIPTED)]


@pytest.mark.parametrize("order", ASKED)
def test_what_a_host_is_asked_has_its_answer(order: type[Any]) -> None:
    """A bundle's dry run answers it without a line for it, and in a form that the wire takes."""
    (kind,) = ANSWERS_TO[order]
    assert order in ORDERS.values()
    assert kind in ANSWERS.values()

    given = give_nothing(order._make([7, *[""] * (len(order._fields) - 1)]))

    assert type(given) is kind
    assert list(FrameReader(ANSWERS).feed(encode_frame(given))) == [given]

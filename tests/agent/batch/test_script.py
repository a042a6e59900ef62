"""What a host does not take for a script."""

from __future__ import annotations

import os
import zlib
from typing import Any

import pytest

from netprobe.agent.batch.script import read_script, take_packed
from netprobe.agent.wire.batch import PhaseMark
from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.orders import Beat, CloseOrder, StopOrder
from netprobe.batch.script import pack_script, write_script
from tests.agent.batch.carried import script
from tests.batch.support import phases, start


def packed(*messages: Any) -> bytes:
    """A script of these messages."""
    return zlib.compress(b"\n".join(map(encode_message, messages)))


def test_a_script_is_read_as_it_was_written() -> None:
    """Both ends know the same phases and orders, and hosts find a phase by its name."""
    made = script(phases(80))
    found = read_script(zlib.compress(write_script(made)))
    assert (found.start, found.phases) == (made.start, made.phases)
    assert found.orders("tell") == [made.phases[2][1]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"nonsense", "the script is damaged"),
        (packed(start())[:-5], "the script is cut off"),
        (packed(CloseOrder(1)), "a script begins with its start"),
        (packed(start(wire=99)), "of another version"),
        (packed(start(), start()), "a script has one start"),
        (packed(start(), CloseOrder(1)), "an order stands before the first phase"),
        (packed(start(), PhaseMark("hope")), "there is no phase 'hope'"),
        (packed(start(), PhaseMark("go"), Beat()), "there is no message 'Beat'"),
        (packed(start(), PhaseMark("go"), StopOrder()), "there is no message 'StopOrder'"),
    ],
)
def test_what_is_no_script_is_refused(data: bytes, words: str) -> None:
    """Nothing of it is carried out."""
    with pytest.raises(ValueError, match=words):
        read_script(data)


def test_a_script_is_read_from_a_pipe_to_its_end_and_no_further() -> None:
    """Its length stands before it; what ends early is refused."""
    reading, writing = os.pipe()
    os.write(writing, pack_script(script([])) + b"rest")
    assert read_script(take_packed(reading)).start == script([]).start
    assert os.read(reading, 9) == b"rest"
    for cut in (b"", b"12", b"12\nabc"):
        os.write(writing, cut)
        os.close(writing)
        with pytest.raises(ValueError, match=r"no script came|is cut off"):
            take_packed(reading)
        os.close(reading)
        reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)

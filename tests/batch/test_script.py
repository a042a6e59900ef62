"""Scripts: what is written for a host, and what would not be carried out."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from netprobe.agent.wire.batch import IN_SCRIPTS, PhaseMark
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.orders import CloseOrder
from netprobe.batch.script import MOST_ROUNDS, HostScript, own_ids, pack_script, write_script
from tests.batch.support import start


def test_a_script_is_one_message_a_line() -> None:
    """The start, then a mark for each phase and its orders, as they are on the wire."""
    script = HostScript(start(), [("listen", []), ("go", [CloseOrder(1)]), ("go", [])])
    text = write_script(script)
    found = [decode_message(line, IN_SCRIPTS) for line in text.splitlines()]
    assert found == [start(), *map(PhaseMark, ("listen", "go")), CloseOrder(1), PhaseMark("go")]
    assert text.isascii()

    length, packed = pack_script(script).split(b"\n", 1)
    assert int(length) == len(packed)
    assert zlib.decompress(packed) == text


@pytest.mark.parametrize(
    ("changes", "phases", "words"),
    [
        ({"format": 9}, [], "format 9 and wire"),
        ({"barrier": "hope"}, [], "no barrier 'hope'"),
        ({"barrier": "clock"}, [], "needs a start"),
        ({}, [("go", []), ("listen", [])], "in the order listen, denied, go, tell"),
    ],
)
def test_what_no_host_would_carry_out_is_refused(
    changes: dict[str, Any], phases: list[tuple[str, list[Any]]], words: str
) -> None:
    """The mistake shows where it was made, not on a thousand hosts."""
    with pytest.raises(ValueError, match=words):
        HostScript(start(**changes), phases)


def test_ids_of_hosts_own_orders_are_unique() -> None:
    """Nonces carry them: no two hosts and no two rounds share one, and 32 bits hold them."""
    ranges = [own_ids(host, number) for host in (0, 1, 65535) for number in range(1, MOST_ROUNDS)]
    ids = [one for first, last in sorted(ranges) for one in (first, last)]
    assert ids == sorted(set(ids))
    assert ids[-1] < 1 << 32

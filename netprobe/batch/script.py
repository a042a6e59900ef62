"""Scripts: what one host does in one round, as the coordinator writes it.

The keys of a run: one by which probes are answered, and one for what each host writes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from netprobe.agent.wire.batch import BARRIERS, BATCH_FORMAT, PHASES, BatchStart, PhaseMark
from netprobe.agent.wire.frames import WIRE_VERSION, encode_message

KEY_BYTES = 32

# Ids that hosts give to their own orders: nonces carry them, so they are unique in a run, and
# neither orders of the coordinator nor those of its checks get there.
FIRST_OWN_ID = 1 << 31
OWN_IDS_A_HOST = 1 << 15
OWN_IDS_A_ROUND = 1 << 11
MOST_ROUNDS = OWN_IDS_A_HOST // OWN_IDS_A_ROUND


def derive_result_key(results_key: bytes, host: int) -> bytes:
    """Give the key of one host's results, by its index.

    Who has it gets neither to ``results_key`` nor to the key of another host.
    """
    return blake2b(b"results of host %d" % host, key=results_key, digest_size=KEY_BYTES).digest()


class HostScript(Struct, frozen=True):
    """What one host does: ``phases`` are (name, orders) in the order of ``PHASES``; a name may
    repeat, and then each waits for the end of the one before."""

    start: BatchStart
    phases: list[tuple[str, list[Any]]]

    def __post_init__(self) -> None:
        """Raise ValueError where no host would carry it out."""
        start = self.start
        if (start.format, start.wire) != (BATCH_FORMAT, WIRE_VERSION):
            raise ValueError(f"format {start.format} and wire {start.wire} are not of this version")
        if start.barrier not in BARRIERS:
            raise ValueError(f"there is no barrier {start.barrier!r}")
        if start.barrier == "clock" and start.starts_at is None:
            raise ValueError("a barrier by the clock needs a start")
        places = [PHASES.index(name) for name, _ in self.phases]
        if places != sorted(places):
            raise ValueError(f"phases come in the order {', '.join(PHASES)}")


def own_ids(host: int, number: int) -> tuple[int, int]:
    """Give the ids that a host (its index) may give to its own orders in a round (from 1)."""
    first = FIRST_OWN_ID + host * OWN_IDS_A_HOST + (number - 1) % MOST_ROUNDS * OWN_IDS_A_ROUND
    return first, first + OWN_IDS_A_ROUND - 1


def is_own_id(host: int, order_id: int) -> bool:
    """Tell whether a host (its index) may have given this id to an order of its own."""
    first = FIRST_OWN_ID + host * OWN_IDS_A_HOST
    return first <= order_id < first + OWN_IDS_A_HOST


def write_script(script: HostScript) -> bytes:
    """Give a script as text: one message a line, ASCII."""
    return b"\n".join([*map(encode_message, _list_messages(script)), b""])


def pack_script(script: HostScript) -> bytes:
    """Give a script as hosts read it: its packed length as a line, then zlib of its text."""
    packed = zlib.compress(write_script(script), 9)
    return b"%d\n%s" % (len(packed), packed)


def _list_messages(script: HostScript) -> Iterator[Any]:
    yield script.start
    for name, orders in script.phases:
        yield PhaseMark(name)
        yield from orders

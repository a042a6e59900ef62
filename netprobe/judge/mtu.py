"""Path MTU → verdict: whether the overlay's full-size packets fit."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from netprobe.model.evidence import PathMtu
from netprobe.model.result import Place, State, Verdict

Fit = Literal[
    "fits",
    "limited",
    "black-hole",
    "echoes-lost",
    "segments-lost",
    "segments-lost-back",
    "segments-unsure",
    "not-measured",
]


class MtuRow(Struct, frozen=True):
    """One line of the table; ``because`` may use the names of ``PathMtu``."""

    verdict: Verdict
    state: State
    reason: str
    where: tuple[Place, ...]
    because: str


ROWS: Final[dict[Fit, MtuRow]] = {
    "fits": MtuRow(
        "pass", "open", "full-size", (),
        "unfragmented packets of {needed} bytes, the MTU of the source's interface, arrive ({how})",
    ),
    "limited": MtuRow(
        "blocked", "filtered", "mtu-too-small", ("path",),
        "the path carries {path} bytes, the source's interface {needed} ({how}): {router} says "
        "that its next link carries {limit}",
    ),
    "black-hole": MtuRow(
        "blocked", "filtered", "mtu-black-hole", ("destination", "path"),
        "unfragmented packets above {path} bytes vanish without a word, the source's interface "
        "sends up to {needed} ({how})",
    ),
    # An echo's answer is as large as its request.
    "echoes-lost": MtuRow(
        "blocked", "filtered", "mtu-black-hole", ("destination", "path", "return-path"),
        "unfragmented packets above {path} bytes vanish without a word, there or back; the "
        "source's interface sends up to {needed} ({how})",
    ),
    "segments-lost": MtuRow(
        "blocked", "filtered", "mtu-black-hole", ("path",),
        "our listener answers small packets, but TCP packets above {path} bytes vanish on the way "
        "to it without a word; the source's interface sends up to {needed} ({how})",
    ),
    "segments-lost-back": MtuRow(
        "blocked", "filtered", "mtu-black-hole", ("return-path",),
        "our listener answers small packets, but TCP packets above {path} bytes vanish on the way "
        "back without a word; the source's interface takes up to {needed} ({how})",
    ),
    "segments-unsure": MtuRow(
        "inconclusive", "unknown", "mtu-not-measured", ("path", "return-path"),
        "our listener answers small packets, but no TCP packet of {needed} bytes, which the "
        "source's interface sends; what the path carries nobody could ask",
    ),
    "not-measured": MtuRow(
        "inconclusive", "unknown", "mtu-not-measured",
        ("destination", "path", "return-path", "source"),
        "neither the overlay's own packets nor any other UDP flow nor echo gets through, so no "
        "size could be tried",
    ),
}  # fmt: skip


def fit(mtu: PathMtu, protocol: str) -> Fit:
    """Give the key of the table for this measurement by packets of a protocol."""
    if mtu.path is None or mtu.needed is None:
        return "segments-unsure" if protocol == "tcp" else "not-measured"
    if mtu.path >= mtu.needed:
        return "fits"
    if protocol == "tcp":
        return "segments-lost-back" if mtu.lost_back else "segments-lost"
    if mtu.limited_by is not None:
        return "limited"
    return "echoes-lost" if mtu.proof == "service" else "black-hole"


def because(row: MtuRow, mtu: PathMtu) -> str:
    """Give the row's sentence with the numbers in it."""
    return row.because.format(
        path=mtu.path, needed=mtu.needed, how=mtu.how, router=mtu.limited_by, limit=mtu.limit
    )

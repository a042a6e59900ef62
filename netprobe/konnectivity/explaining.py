"""The words of ``netprobe explain`` that look further into silence."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import Diagnosis
from netprobe.model.printable import word_command


def word_explain(one: Diagnosis, inventories: Sequence[str]) -> str:
    """Word the command that follows this flow hop by hop; "" where nothing was silent.

    ``explain`` takes its source from an inventory: without one the words have a place for it.
    """
    silent = VERDICTS[one.code].silent or one.evidence.get("sight") == "silent"
    flow = one.evidence.get("flow")
    if not silent or flow is None:
        return ""
    worker = one.worker if inventories else "THIS-HOST"
    files = [word for file in inventories or ("INVENTORY",) for word in ("-i", file)]
    return word_command(["netprobe", "explain", worker, *flow, *files])

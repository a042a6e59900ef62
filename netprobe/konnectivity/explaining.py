"""The words of ``netprobe explain`` that look further into silence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import Diagnosis


def word_explain(one: Diagnosis, inventories: Sequence[str]) -> str:
    """Word the command that follows this flow hop by hop; "" where nothing was silent.

    ``explain`` takes its source from an inventory: without one the words have a place for it.
    """
    silent = VERDICTS[one.code].silent or one.evidence.get("sight") == "silent"
    flow = one.evidence.get("flow")
    if not silent or flow is None:
        return ""
    if not inventories:
        return f"netprobe explain THIS-HOST {shlex.join(flow)} -i INVENTORY"
    files = [word for file in inventories for word in ("-i", file)]
    return shlex.join(["netprobe", "explain", one.worker, *flow, *files])

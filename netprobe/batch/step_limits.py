"""How long a host may take for a step, and how much it may print: from its own orders.

Who is above a limit has failed, and the others go on without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from netprobe.agent.wire import orders
from netprobe.agent.wire.batch import PHASES
from netprobe.batch.commands import EARLY_STEP, LAST_STEP
from netprobe.batch.script import HostScript
from netprobe.vantage.patience import OrderPatience, effort_of

# A login, a sudo, a start of Python; and a slow line.
CONNECT_S = 30.0
FED_BYTES_PER_S = 100_000
# People wait for the end that they asked for; a host that is slower ends by itself.
HALT_S = 15.0
# What a host asks again by itself takes as long once more.
TIMES_ASKED = 2
# A host of which little is asked prints less, and an answer to one probe is shorter.
LEAST_BYTES = 4 * 1024 * 1024
BYTES_A_PROBE = 256
# A host with few descriptors works on fewer probes at a time.
FEW_FILES = 1024


def limit_steps(
    scripts: Sequence[HostScript], fed_bytes: Mapping[str, int], wait_s: float
) -> dict[str, int]:
    """Give how many seconds each step of an engine may take on a host, the way there included.

    That is what the host with the most work may take. ``fed_bytes``: what goes to a host in a step.
    ``wait_s``: how long commands wait at most.
    """
    each = [_measure_steps(script) for script in scripts]
    needed_s = {step: max(one[step] for one in each) for step in each[0]}
    opening_s = needed_s.pop("open")
    needed_s |= {step: opening_s + size / FED_BYTES_PER_S for step, size in fed_bytes.items()}
    limits = {step: round(CONNECT_S + min(one_s, wait_s)) for step, one_s in needed_s.items()}
    return {**limits, EARLY_STEP: round(HALT_S)}


def limit_bytes(script: HostScript) -> int:
    """Give how many bytes a host may print for one round, whatever becomes of its probes."""
    probes = sum(effort_of(order).starts for _, some in script.phases for order in some)
    told = sum(isinstance(order, orders.StoryOrder) for _, some in script.phases for order in some)
    return LEAST_BYTES + BYTES_A_PROBE * (probes + told)


def _measure_steps(script: HostScript) -> dict[str, float]:
    """Give the seconds of work behind each step."""
    everything = [order for _, some in script.phases for order in some]
    rates = [order.per_s for order in everything if isinstance(order, orders.RateOrder)]
    patience = OrderPatience(FEW_FILES, per_s=rates[0] if rates else None)

    def measure(some: Iterable[Any]) -> float:
        """Give how long orders take that are given together."""
        return max(patience.deadlines_s([effort_of(order) for order in some]), default=0.0)

    phases = {name: [some for one, some in script.phases if one == name] for name in PHASES}
    return {
        "open": sum(map(measure, phases["listen"])),
        "go": 0.0,
        "wait": TIMES_ASKED * sum(map(measure, phases["denied"] + phases["go"])),
        "collect": sum(map(measure, phases["tell"])),
        LAST_STEP: 0.0,
    }

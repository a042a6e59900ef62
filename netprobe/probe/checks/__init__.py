"""The follow-up checks, in the order in which a destination runs them.

Each looks only at the flows that concern it, and leaves an entry in their trail. A check that needs
an agent at the destination is left out where there is none, and the reverse.
"""

from netprobe.probe.checks.arrivals import Arrivals
from netprobe.probe.checks.bundles import Bundles
from netprobe.probe.checks.check import Check
from netprobe.probe.checks.forged_resets import ForgedResets
from netprobe.probe.checks.greetings import Greetings
from netprobe.probe.checks.intercepted import Intercepted
from netprobe.probe.checks.late_refusals import LateRefusals
from netprobe.probe.checks.names import Names
from netprobe.probe.checks.next_hops import DeadHosts, NextHops
from netprobe.probe.checks.one_way import OneWay
from netprobe.probe.checks.other_machines import OtherMachines
from netprobe.probe.checks.path_mtu import PathMtuLook, PathWidth
from netprobe.probe.checks.rate_limits import RateLimits
from netprobe.probe.checks.refusal_makers import RefusalMakers
from netprobe.probe.checks.return_path import EgressLook, ReturnPathLook
from netprobe.probe.checks.services import Services
from netprobe.probe.checks.silence import Silence
from netprobe.probe.checks.silent_hops import SilentHops
from netprobe.probe.checks.slow_starts import SlowStarts
from netprobe.probe.checks.stopped_packets import QuietHolders, StoppedPacketsLook
from netprobe.probe.checks.stories import Stories
from netprobe.probe.checks.traceroute import Traceroute

CHECKS: tuple[Check, ...] = (
    Silence(),
    Bundles(),
    SlowStarts(),
    Arrivals(),
    OneWay(),
    NextHops(),
    LateRefusals(),
    Stories(),
    ForgedResets(),
    Intercepted(),
    DeadHosts(),
    Services(),
    Greetings(),
    Names(),
    RateLimits(),
    EgressLook(),
    ReturnPathLook(),
    StoppedPacketsLook(),
    Traceroute(),
    SilentHops(),
    PathWidth(),
    PathMtuLook(),
)

# Those without which an answer means nothing; they do not say where a flow ends that fails.
QUICK_CHECKS: tuple[Check, ...] = (
    Silence(), Arrivals(), OneWay(), ForgedResets(), Intercepted(), Services(), Greetings(),
    Names(), PathWidth(), PathMtuLook(),
)  # fmt: skip

# The looks at a part, as soon as its order has ended. The run knows more of its loss later, so that
# silence is a check of the whole destination, too.
PART_CHECKS: tuple[Check, ...] = (Silence(),)

# The looks at the scouts of a host that may be dead, and their conclusions if it is.
SCOUT_CHECKS: tuple[Check, ...] = (NextHops(), DeadHosts())
DOWN = ("host-down", "router-gives-up", "next-hop-down", "no-carrier")

# The looks at ports that must not answer, which are probed before any listener is open. A lost SYN
# closes no port.
DENIED_CHECKS: tuple[Check, ...] = (
    Silence(), NextHops(), Stories(), Intercepted(), QuietHolders(),
)  # fmt: skip

# The looks at all flows of a destination together, after the last round.
FINAL_CHECKS: tuple[Check, ...] = (OtherMachines(), RefusalMakers())
QUICK_FINAL_CHECKS: tuple[Check, ...] = (OtherMachines(),)


def choose_checks(*, places: bool) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
    """Give the checks of each round, and the final ones; ``places``: also those of failures."""
    return (CHECKS, FINAL_CHECKS) if places else (QUICK_CHECKS, QUICK_FINAL_CHECKS)

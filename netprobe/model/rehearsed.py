"""What a rehearsal has seen: the agents played a part of the platform, and this passed."""

from __future__ import annotations

from typing import Literal, NamedTuple

# At which ends the CPU made the checksums.
CpuEnd = Literal["source", "destination", "both"]
# ``TunnelTrial.reach`` of a tunnel that works.
WHOLE_REACH = 3


class TunnelTrial(NamedTuple):
    """What passed through a tunnel, both ways each: an echo, small segments, one of full size, and
    a transfer of so many bytes in so many microseconds. ``echo`` None: not asked."""

    echo: bool | None
    opened: bool = False
    full: bool = False
    bytes: int = 0
    took_us: int = 0

    @property
    def reach(self) -> int:
        """How far TCP got: 0, no connection; 1, few bytes; 2, a full segment; 3, a transfer."""
        return self.opened + self.full + (self.bytes > 0)

    @property
    def carries_tcp(self) -> bool:
        """Whether TCP gets through as it should."""
        return self.reach == WHOLE_REACH


class Card(NamedTuple):
    """A network device that carries a tunnel, and its driver as the kernel names it."""

    host: str
    device: str | None
    driver: str | None


class OverlayFacts(NamedTuple):
    """A tunnel of the kernels of both hosts.

    ``mended_at``: the ends at which checksums made by the CPU let TCP get further, and ``mended``
    is how far; None: they did not, or nobody had to try. ``row_arrived``: whether the row's own
    packets arrived in this run, and ``back_arrived`` those the other way.
    """

    network: int
    mtu: int
    trial: TunnelTrial
    near: Card
    far: Card
    mended_at: CpuEnd | None = None
    mended: TunnelTrial | None = None
    row_arrived: bool | None = None
    back_arrived: bool | None = None

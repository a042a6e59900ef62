"""Stage 6: the largest packet that passes, found by capping TCP's segments (TCP_MAXSEG).

It needs neither root nor ICMP. Several sizes are tried at once, each twice: a size passes where one
of its tries passes, and fails only where both do, so that plain loss is not taken for a limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from netprobe.konnectivity.reach import LEAST_MSS, Reach, attempt
from netprobe.konnectivity.symptoms import hello_symptom
from netprobe.protocols.tls import Hello
from netprobe.protocols.tls_talk import BRIEF, Attempt

AT_ONCE = 8
TRIES = 2
# TCP_INFO counts without the timestamp option, TCP_MAXSEG with it.
OPTION_BYTES = 12


@dataclass(frozen=True, slots=True)
class Bounds:
    """In bytes of MSS: the largest that passed, the smallest that did not."""

    passes: int
    fails: int
    header_bytes: int

    @property
    def packet(self) -> int:
        """The largest whole packet that passed."""
        return self.passes + self.header_bytes

    @property
    def said(self) -> str:
        """Both, as packets."""
        return (
            f"packets of {self.packet:,} bytes pass, of {self.fails + self.header_bytes:,} do not "
            f"(MSS {self.passes:,} and {self.fails:,})"
        )


async def bisect(reach: Reach, hello: Hello, failed: Attempt) -> Bounds:
    """Search between the MSS that always passes and that of a try that failed."""
    passes, fails = LEAST_MSS, max(_mss_of(failed), LEAST_MSS + 1)
    while fails - passes > 1:
        sizes = _spread(passes, fails)
        good = await asyncio.gather(*(_passes(reach, hello, size) for size in sizes))
        passes = max([passes, *(size for size, ok in zip(sizes, good, strict=True) if ok)])
        fails = min(
            [fails, *(s for s, ok in zip(sizes, good, strict=True) if not ok and s > passes)]
        )
    return Bounds(passes, fails, reach.header_bytes)


def _mss_of(failed: Attempt) -> int:
    """What TCP was allowed without a cap: the larger of both directions."""
    known = [failed.tcp.get(name, 0) for name in ("snd_mss", "advmss")]
    return max(*known, LEAST_MSS) + OPTION_BYTES


def _spread(passes: int, fails: int) -> list[int]:
    """Sizes strictly between, evenly spread."""
    gap = fails - passes
    steps = min(AT_ONCE, gap - 1)
    return sorted({passes + gap * step // (steps + 1) for step in range(1, steps + 1)} - {passes})


async def _passes(reach: Reach, hello: Hello, mss: int) -> bool:
    tries = [asyncio.create_task(attempt(reach, hello, BRIEF, mss)) for _ in range(TRIES)]
    try:
        for done in asyncio.as_completed(tries):
            if hello_symptom(await done) == "answered":
                return True
        return False
    finally:
        for one in tries:
            one.cancel()
        await asyncio.gather(*tries, return_exceptions=True)

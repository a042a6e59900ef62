"""How fast packets may go out, and how long an answer may take: rate, pace, learned round trips."""

from typing import Dict, Optional, Tuple

from ..wire.parts import Pace

# The kernel sends its second SYN one second after the first. A learned deadline leaves room for the
# answer to that one, however short the round trip is.
SECOND_SYN_S = 1.0
LEAST_GRACE_S = 0.3
ROUND_TRIPS = 4
RETRANSMITTED_S = 0.9
BURST_S = 0.05


class Bucket:
    """Probes per second that this agent may start; ``None`` is unlimited."""

    def __init__(self, per_s: Optional[float] = None) -> None:
        self._per_s: Optional[float] = None
        self._tokens = 0.0
        self._at = 0.0
        self.limit(per_s)

    def limit(self, per_s: Optional[float]) -> None:
        """Change the rate; it holds from now on."""
        self._per_s = None if not per_s else float(per_s)
        self._tokens = min(self._tokens, self._find_depth()) if self._per_s else 0.0

    def take(self, wanted: int, now: float) -> int:
        """How many of ``wanted`` probes may start now; they are paid for."""
        if self._per_s is None:
            return wanted
        self._fill_bucket(now)
        granted = min(wanted, int(self._tokens))
        self._tokens -= granted
        return granted

    def give_back(self, count: int) -> None:
        """Return what was taken and not used."""
        if self._per_s is not None:
            self._tokens = min(self._find_depth(), self._tokens + count)

    def wait_s(self, now: float) -> float:
        """Seconds until one more probe may start; 0 where one may now."""
        if self._per_s is None:
            return 0.0
        self._fill_bucket(now)
        return max(0.0, (1.0 - self._tokens) / self._per_s)

    def _find_depth(self) -> float:
        assert self._per_s is not None
        return max(1.0, self._per_s * BURST_S)

    def _fill_bucket(self, now: float) -> None:
        assert self._per_s is not None
        if now > self._at:
            self._tokens = min(self._find_depth(), self._tokens + (now - self._at) * self._per_s)
        self._at = now


class Pacer:
    """``burst`` packets at once, then one per ``interval_s``: what an ICMP rate limit answers.

    The bucket is that of the answering host, per prober, so one pacer serves all orders from one
    source address to one destination.
    """

    def __init__(self, burst: int, interval_s: float) -> None:
        self.burst = max(1, burst)
        self.interval_s = interval_s
        self._tokens = float(self.burst)
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Whether one more packet may go now; it is paid for."""
        self._fill_bucket(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait_s(self, now: float) -> float:
        """Seconds until the next packet may go."""
        self._fill_bucket(now)
        return max(0.0, (1.0 - self._tokens) * self.interval_s)

    def _fill_bucket(self, now: float) -> None:
        if self._at and self.interval_s > 0:
            self._tokens = min(self.burst, self._tokens + (now - self._at) / self.interval_s)
        elif self.interval_s <= 0:
            self._tokens = float(self.burst)
        self._at = now


class Answers:
    """Which destinations have answered this agent, how fast, and what pace they are asked at.

    One per agent, shared by its engines: an echo reply makes the next connect's deadline shorter.
    """

    def __init__(self) -> None:
        self._rtt_s: Dict[str, float] = {}
        self._pacers: Dict[Tuple[str, Optional[str]], Pacer] = {}

    def learn(self, address: str, rtt_s: float) -> None:
        """The destination itself answered after ``rtt_s``; slow answers weigh more."""
        known = self._rtt_s.get(address)
        if known is None:
            self._rtt_s[address] = rtt_s
        elif rtt_s < RETRANSMITTED_S or known >= RETRANSMITTED_S:
            # An answer to a second SYN looks a second slow; it must not undo what is known better.
            self._rtt_s[address] = max(rtt_s, known * 0.9) if known < RETRANSMITTED_S else rtt_s

    def knows(self, address: str) -> bool:
        """Whether this destination has answered anything."""
        return address in self._rtt_s

    def first_look_s(self, address: str, first_ms: Optional[int], look_ms: int) -> float:
        """How long the first look at this destination takes (docs/design.md, section 6.6)."""
        if first_ms is not None:
            return first_ms / 1000.0
        rtt_s = self._rtt_s.get(address)
        if rtt_s is None:
            return look_ms / 1000.0
        return min(look_ms / 1000.0, SECOND_SYN_S + max(LEAST_GRACE_S, ROUND_TRIPS * rtt_s))

    def pacer(self, address: str, source: Optional[str], pace: Pace) -> Pacer:
        """The pacer of this (source, destination)."""
        key = (address, source)
        burst, interval_s = pace.burst, pace.interval_ms / 1000.0
        known = self._pacers.get(key)
        if known is None or known.burst != burst or known.interval_s != interval_s:
            known = self._pacers[key] = Pacer(burst, interval_s)
        return known

"""How fast packets may go out, and how long an answer may take: rate, pace, learned round trips."""

from typing import Dict, Optional, Tuple

from ..wire.parts import Pace

# A look that nobody answered is repeated: it need not wait for what got lost, only for what comes
# late. A host that never answered gets the time in which a dead neighbour shows (3.06 s).
LEAST_GRACE_S = 0.25
UNKNOWN_S = 3.4
ROUND_TRIPS = 4
RETRANSMITTED_S = 0.9
BURST_S = 0.05


class Bucket:
    """Packets that may start: ``burst`` at once, then ``per_s`` a second; None is unlimited.

    One limits the probes of an agent. Others are what an ICMP rate limit answers: such a bucket is
    that of the answering host, per prober, so one serves all orders from one source address to one
    destination.
    """

    def __init__(self, per_s: Optional[float] = None, burst: float = 0.0) -> None:
        self._at = 0.0
        self._tokens = max(1.0, burst)
        self.limit(per_s, burst)

    def limit(self, per_s: Optional[float], burst: float = 0.0) -> None:
        """Change the rate; it holds from now on. ``burst`` 0: what goes in BURST_S."""
        self._per_s = per_s or None
        self._burst = max(1.0, burst or (per_s or 0.0) * BURST_S)
        self._tokens = min(self._tokens, self._burst)

    def take(self, wanted: int, now: float) -> int:
        """Tell how many of ``wanted`` packets may start now; they are paid for."""
        if self._per_s is None:
            return wanted
        self._fill_bucket(now, self._per_s)
        granted = min(wanted, int(self._tokens))
        self._tokens -= granted
        return granted

    def give_back(self, count: int) -> None:
        """Return what was taken and not used."""
        self._tokens = min(self._burst, self._tokens + count)

    def wait_s(self, now: float) -> float:
        """Seconds until one more packet may start; 0 where one may now."""
        if self._per_s is None:
            return 0.0
        self._fill_bucket(now, self._per_s)
        return max(0.0, (1.0 - self._tokens) / self._per_s)

    def _fill_bucket(self, now: float, per_s: float) -> None:
        if now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * per_s)
        self._at = now


class Answers:
    """Which destinations have answered this agent, how fast, and what pace they are asked at.

    One per agent, shared by its engines: an echo reply makes the next connect's deadline shorter.
    """

    def __init__(self) -> None:
        self._rtt_s: Dict[str, float] = {}
        self._pacers: Dict[Tuple[str, Optional[str]], Tuple[Pace, Bucket]] = {}

    def learn(self, address: str, rtt_s: float) -> None:
        """Learn that the destination answered after ``rtt_s``; slow answers weigh more."""
        known = self._rtt_s.get(address)
        if known is None:
            self._rtt_s[address] = rtt_s
        elif rtt_s < RETRANSMITTED_S or known >= RETRANSMITTED_S:
            # An answer to a second SYN looks a second slow; it must not undo what is known better.
            self._rtt_s[address] = max(rtt_s, known * 0.9) if known < RETRANSMITTED_S else rtt_s

    def knows(self, address: str) -> bool:
        """Tell whether this destination has answered anything."""
        return address in self._rtt_s

    def rtt_s(self, address: str) -> float:
        """Give the round trip to a destination as learned so far; 0 where it never answered."""
        return self._rtt_s.get(address, 0.0)

    def first_look_s(self, address: str, first_ms: Optional[int], look_ms: int) -> float:
        """Tell how long the first look at this destination takes (docs/design.md, section 6.6)."""
        if first_ms is not None:
            return first_ms / 1000.0
        rtt_s = self._rtt_s.get(address)
        if rtt_s is None:
            return min(look_ms / 1000.0, UNKNOWN_S)
        return min(look_ms / 1000.0, max(LEAST_GRACE_S, ROUND_TRIPS * rtt_s))

    def pacer(self, address: str, source: Optional[str], pace: Pace) -> Bucket:
        """Give the pacer of this (source, destination)."""
        known = self._pacers.get((address, source))
        if known is None or known[0] != pace:
            per_s = 1000.0 / pace.interval_ms if pace.interval_ms > 0 else None
            known = self._pacers[address, source] = pace, Bucket(per_s, max(1, pace.burst))
        return known[1]

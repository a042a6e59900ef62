"""What TTL walks ask, and when: no socket is here, and the clock is an argument.

* A silent TTL is asked twice; both questions wait for their answers together. What empties a
  router's bucket of ICMP errors is its answers: as long as none comes, or all come, nothing is
  paced. A question does not count if another walk was answered at its TTL less than PAUSE_S before
  it, or since. It is asked again PAUSE_S after that answer, with all others of its kind, until two
  questions count.
* What walks by the same gateway share is asked once. The first one goes ahead. The others begin at
  the last router that it met: who meets that router came by the same way. Where nobody but the
  first hop answered, walks of the same protocol and port take it over.
"""

from typing import Dict, List, Optional, Set, Tuple

from ..wire.parts import IcmpFact

# A Linux router sends 6 errors to an address, and one more every second.
PAUSE_S = 1.02
TRIES = 2
WAVE = 8
# Go on behind a wave only if one of its last TTLs was answered; else the rest is silent too.
WAVE_END = 4


class Hop:
    """One TTL of a walk; ``address``: who answered. ``tries``: how many questions count."""

    def __init__(self, ttl: int, address: Optional[str] = None) -> None:
        self.ttl = ttl
        self.address = address
        self.reached = False
        # The ICMP error of a router that takes no packet of the walk farther.
        self.refusal: Optional[IcmpFact] = None
        self.asked = 0
        self.tries = 0
        # When the questions were asked that are not counted yet.
        self.open_s: List[float] = []
        self.due_s = 0.0

    @property
    def is_end(self) -> bool:
        """Whether no hop is behind it."""
        return self.reached or self.refusal is not None


class Course:
    """How far a walk has come. ``again_s``: how long the last question of a TTL waits for its
    answer; ``gap_s``: how long after the one before it is asked."""

    def __init__(
        self,
        gateway: Optional[str],
        proto: str,
        port: int,
        most: int,
        again_s: float,
        gap_s: float,
    ) -> None:
        self.gateway = gateway
        self.alike = (gateway, proto, port)
        self.most = most
        self.again_s = again_s
        self.gap_s = gap_s
        self.hops: Dict[int, Hop] = {}
        # The routers of an earlier walk up to the one where this walk begins.
        self.path: List[Optional[str]] = []
        self.leads: Set[object] = set()
        self.due_s = 0.0

    def found(self) -> List[Hop]:
        """List the hops up to the end."""
        found: List[Hop] = []
        for ttl in sorted(self.hops):
            found.append(self.hops[ttl])
            if found[-1].is_end:
                break
        return found

    def end(self) -> Optional[Hop]:
        """Find the nearest TTL that reached the destination or was refused."""
        return next((hop for hop in self.found() if hop.is_end), None)

    def way(self) -> List[Hop]:
        """List the hops up to the end; none where a walk failed before it knew its first ones."""
        return self.found() if 1 in self.hops else []

    def open_hops(self) -> List[Hop]:
        """List the hops that are still to be asked, or to be answered."""
        return [hop for hop in self.found() if hop.address is None and hop.tries < TRIES]

    def add(self, first: int, last: int) -> None:
        """Ask these TTLs next, all at once: each is another router with a bucket of its own."""
        self.hops.update((ttl, Hop(ttl)) for ttl in range(first, min(last, self.most) + 1))

    def take_over(self, path: List[Optional[str]]) -> None:
        """Know the hops from TTL 1 on without asking them."""
        for ttl, address in enumerate(path, 1):
            self.hops[ttl] = Hop(ttl, address)
            self.hops[ttl].tries = TRIES

    def go_on(self) -> bool:
        """Add the hops that come next; False: there are none."""
        path, self.path = self.path, []
        if len(path) > 1 and self.hops[len(path)].address == path[-1]:
            self.take_over(path[:-1])
        elif len(path) > 1:
            self.add(1, len(path) - 1)
            return True
        last = max(self.hops)
        heard = any(hop.address is not None for hop in self.found() if hop.ttl > last - WAVE_END)
        if not heard or self.end() is not None or last >= self.most:
            return False
        self.add(last + 1, last + WAVE)
        return True


class Courses:
    """Tells all walks of an agent what to ask; they share what they find."""

    def __init__(self) -> None:
        # By gateway, the routers of the latest walk; by likeness, a first hop that alone answered.
        self._paths: Dict[Optional[str], List[Optional[str]]] = {}
        self._only_hops: Dict[object, Optional[str]] = {}
        # What a walk finds out now for others, and what one has begun to find out.
        self._leading: Set[object] = set()
        self._led: Set[object] = set()
        # When a router last answered, by gateway and TTL.
        self._answered_s: Dict[Tuple[Optional[str], int], float] = {}

    def begin(self, course: Course) -> bool:
        """Begin a walk, unless another one is finding out what both share."""
        shared: Set[object] = set()
        if course.gateway is not None:
            shared = {course.gateway, course.alike}
        if shared & self._leading:
            return False
        course.leads = shared - self._led
        self._leading |= course.leads
        self._led |= course.leads
        if course.alike in self._only_hops:
            course.take_over([self._only_hops[course.alike]])
        else:
            path = self._paths.get(course.gateway, [])
            course.path = path if len(path) <= course.most else []
        first = max(1, len(course.path), len(course.hops) + 1)
        course.add(first, first + WAVE - 1)
        return True

    def next_hops(self, course: Course, now: float) -> Optional[List[Hop]]:
        """Give the hops to ask now; ask for more at ``course.due_s``. None: the walk has ended."""
        while True:
            asking = [hop for hop in course.open_hops() if self._is_asked(course, hop, now)]
            waiting = course.open_hops()
            if waiting:
                course.due_s = min(hop.due_s for hop in waiting)
                return asking
            if not course.go_on():
                return None

    def hear(self, course: Course, hop: Hop, now: float) -> None:
        """Note an answer, which the hop has."""
        if not hop.reached:
            self._answered_s[course.gateway, hop.ttl] = now

    def finish(self, course: Course) -> None:
        """Keep what others share with a walk that has ended."""
        self._leading -= course.leads
        if course.gateway is None:
            return
        way = course.way()
        heard = [hop for hop in way if hop.address is not None]
        routers = [hop.ttl for hop in heard if not hop.is_end]
        if routers:
            self._paths[course.gateway] = [hop.address for hop in way[: routers[-1]]]
        if len(heard) == 1 < len(way) and routers == [1]:
            self._only_hops[course.alike] = heard[0].address

    def _is_asked(self, course: Course, hop: Hop, now: float) -> bool:
        """Tell whether an open hop is asked now; those of its questions are counted that count."""
        if now < hop.due_s:
            return False
        again_s = self._answered_s.get((course.gateway, hop.ttl), -PAUSE_S) + PAUSE_S
        if hop.tries + len(hop.open_s) >= TRIES:
            hop.tries += sum(asked_s >= again_s for asked_s in hop.open_s)
            hop.open_s = []
            if hop.tries >= TRIES:
                return False
        if hop.asked and now < again_s:
            hop.due_s = again_s
            return False
        hop.asked += 1
        hop.open_s.append(now)
        is_last = hop.tries + len(hop.open_s) >= TRIES
        hop.due_s = now + (course.again_s if is_last else course.gap_s)
        return True

"""What TTL walks ask, and when: routers with buckets, and a clock that jumps to the next event."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from netprobe.agent.core.pace import Bucket
from netprobe.agent.probers.courses import PAUSE_S, TRIES, WAVE, Course, Courses

AGAIN_S, GAP_S, TRIP_S = 0.3, 0.1, 0.001
MOST = 16
BURST = 6


@dataclass
class Router:
    """A router, its bucket of errors, and when it was asked."""

    name: str
    bucket: Bucket = field(default_factory=lambda: Bucket(1.0, BURST))
    asked_s: list[float] = field(default_factory=list)


def unlimited(name: str) -> Router:
    """A router that answers everything."""
    return Router(name, Bucket())


class Net:
    """Walks by one gateway; each has the routers that see its packets, and maybe an end."""

    def __init__(self) -> None:
        self.now = 0.0
        self.courses = Courses()
        self.walks: list[tuple[Course, Sequence[Router | None], bool]] = []
        self.sent: list[tuple[float, int]] = []
        self.ended_s: dict[Course, float] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._waiting: list[Course] = []

    def walk(
        self, *way: Router | None, reaches: bool = False, port: int = 80, most: int = MOST
    ) -> Course:
        """Submit a walk; None is a router that never answers."""
        course = Course("gateway", "tcp", port, most, AGAIN_S, GAP_S)
        self.walks.append((course, way, reaches))
        self._waiting.append(course)
        return course

    def run(self) -> float:
        """Let all walks come to their ends; gives when the last one did."""
        self._begin()
        while self._events:
            self.now, _, call = heapq.heappop(self._events)
            call()
        assert len(self.ended_s) == len(self.walks)
        return max(self.ended_s.values())

    def _at(self, when_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when_s, next(self._numbers), call))

    def _begin(self) -> None:
        begun = [course for course in self._waiting if self.courses.begin(course)]
        self._waiting = [course for course in self._waiting if course not in begun]
        for course in begun:
            self._take_turn(course)

    def _take_turn(self, course: Course) -> None:
        if course in self.ended_s:
            return
        hops = self.courses.next_hops(course, self.now)
        if hops is None:
            self.courses.finish(course)
            self.ended_s[course] = self.now
            self._begin()
            return
        for hop in hops:
            self._send(course, hop.ttl)
        self._at(course.due_s, lambda: self._take_turn(course))

    def _send(self, course: Course, ttl: int) -> None:
        _, way, reaches = next(one for one in self.walks if one[0] is course)
        self.sent.append((self.now, ttl))
        if ttl > len(way):
            if reaches:
                self._at(self.now + TRIP_S, lambda: self._answer(course, ttl, "end"))
            return
        router = way[ttl - 1]
        if router is None:
            return
        router.asked_s.append(self.now)
        if router.bucket.take(1, self.now):
            self._at(self.now + TRIP_S, lambda: self._answer(course, ttl, router.name))

    def _answer(self, course: Course, ttl: int, name: str) -> None:
        hop = course.hops[ttl]
        if course in self.ended_s or hop.address is not None:
            return
        hop.address, hop.reached = name, name == "end"
        self.courses.hear(course, hop, self.now)
        if not course.open_hops():
            self._take_turn(course)


def names(course: Course) -> list[str | None]:
    """Who answered a walk, from TTL 1 to the last answer."""
    found = [hop.address for hop in course.found()]
    assert [hop.ttl for hop in course.found()] == list(range(1, len(found) + 1))
    while found and found[-1] is None:
        found.pop()
    return found


def test_without_answers_nothing_is_paced() -> None:
    """Twenty walks that nobody answers take two waits more than nothing: one goes ahead."""
    net = Net()
    walks = [net.walk() for _ in range(20)]

    assert net.run() == pytest.approx(2 * (GAP_S + AGAIN_S))
    assert {tuple(names(course)) for course in walks} == {()}
    assert len(net.sent) == 20 * TRIES * WAVE


def test_while_all_answers_come_nothing_is_paced() -> None:
    """Routers that answer everything are asked at once for all walks, whatever their number."""
    net = Net()
    first, second = unlimited("r1"), unlimited("r2")
    walks = [net.walk(first, second, reaches=True, port=port) for port in range(20)]

    assert net.run() < AGAIN_S
    assert {tuple(names(course)) for course in walks} == {("r1", "r2", "end")}
    assert len(second.asked_s) == 20


def test_answers_that_stop_are_asked_for_again_until_all_have_come() -> None:
    """A router with six errors and one more a second gets a question at a time that it can answer,
    and every walk that came there knows it."""
    net = Net()
    first, second = Router("r1"), Router("r2")
    walks = [net.walk(first, second) for _ in range(12)]
    ended_s = net.run()

    assert {tuple(names(course)) for course in walks} == {("r1", "r2")}
    assert 12 - BURST <= ended_s <= (12 - BURST + 2) * PAUSE_S + 2 * TRIES * AGAIN_S
    rounds = sorted(set(second.asked_s))[1:]
    assert len(rounds) == 1 + 12 - BURST
    assert all(after - before >= PAUSE_S for before, after in itertools.pairwise(rounds))


def test_a_walk_that_ends_earlier_is_not_taken_for_a_lost_answer() -> None:
    """Where answers stop for a while, a walk that stays silent at a time of its own ends there."""
    net = Net()
    first, second = Router("r1"), Router("r2")
    whole = [net.walk(first, second) for _ in range(8)]
    short = [net.walk(first) for _ in range(3)]
    net.run()

    assert {tuple(names(course)) for course in whole} == {("r1", "r2")}
    assert {tuple(names(course)) for course in short} == {("r1",)}


def test_hops_that_walks_share_are_asked_once() -> None:
    """The first walk asks the routers before the last one; the others know them by meeting that."""
    net = Net()
    routers = [Router(name) for name in ("r1", "r2", "r3")]
    walks = [net.walk(*routers, port=port) for port in range(5)]
    net.run()

    assert {tuple(names(course)) for course in walks} == {("r1", "r2", "r3")}
    assert [len(router.asked_s) for router in routers] == [1, 1, 5]


def test_a_walk_of_one_hop_does_not_know_that_others_are_silent() -> None:
    """The next one asks the first hop itself: it may answer in the name of that destination."""
    net, first = Net(), unlimited("10.0.0.1")
    net.walk(first, most=1)
    net.run()
    asked = len(first.asked_s)

    net.walk(first, None)
    net.run()

    assert len(first.asked_s) == asked + 1


def test_an_only_hop_is_asked_once_for_walks_that_are_alike() -> None:
    """Walks of one protocol and port share a first hop behind which nobody answers; others ask."""
    net = Net()
    first = Router("r1")
    walks = [net.walk(first, port=80 + number % 2) for number in range(10)]
    net.run()

    assert {tuple(names(course)) for course in walks} == {("r1",)}
    assert len(first.asked_s) == 2


def test_a_walk_that_goes_another_way_asks_all_of_it() -> None:
    """Who does not meet the router of the walk before, or is nearer, asks every hop by itself."""
    net = Net()
    shared = unlimited("r1")
    far = [unlimited(name) for name in ("r2", "r3", "r4")]
    net.walk(shared, *far, reaches=True)
    other = net.walk(shared, unlimited("x2"), unlimited("x3"), unlimited("x4"), reaches=True)
    near = net.walk(shared, reaches=True)
    net.run()

    assert names(other) == ["r1", "x2", "x3", "x4", "end"]
    assert names(near) == ["r1", "end"]


def test_silent_routers_do_not_end_a_walk() -> None:
    """A wave goes on behind routers that never answer, as long as its last ones do."""
    net = Net()
    way = [None if ttl in {2, 5} else unlimited(f"r{ttl}") for ttl in range(1, 12)]
    (walk, again) = (net.walk(*way, reaches=True) for _ in range(2))
    net.run()

    expected = [router and router.name for router in way]
    assert names(walk) == names(again) == [*expected, "end"]


def test_a_walk_that_fails_before_its_first_hops_are_known_has_no_way() -> None:
    """It began where an earlier walk by its gateway met the last router; others keep that way."""
    courses = Courses()
    first = Course("gateway", "tcp", 80, MOST, AGAIN_S, GAP_S)
    courses.begin(first)
    for hop, name in zip(first.open_hops(), ("a", "b", "c"), strict=False):
        hop.address = name
    courses.finish(first)

    second = Course("gateway", "tcp", 81, MOST, AGAIN_S, GAP_S)
    courses.begin(second)
    assert min(second.hops) == 3
    courses.finish(second)
    assert second.way() == []

    third = Course("gateway", "udp", 82, MOST, AGAIN_S, GAP_S)
    courses.begin(third)
    assert third.path == ["a", "b", "c"]

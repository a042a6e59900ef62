"""Facts of a whole way: what one port of a pair of hosts proves counts for all of them.

Routes, next hops and links know no ports. A way is that of packets: an answer that is lost on the
way back is lost on the way from the destination to the source.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter

from msgspec.structs import replace

from netprobe.judge.cut_off import CutOffHosts
from netprobe.judge.heard_hops import INFERRED
from netprobe.judge.machines import MachineFacts, rank_of_machine, shows_machine
from netprobe.judge.rules import Stopped, is_own_stop
from netprobe.judge.walls import Pair, group_by_box, port_of, split_into_boxes
from netprobe.model.reason import Share
from netprobe.model.reasons import find_reason
from netprobe.model.result import Result

PacketWay = tuple[str, str, bool]  # who sends, who receives, whether over IPv6

# Causes that stop every packet of a way.
_OF_WAYS: tuple[Share, ...] = ("next-hop", "router")
# The share of packets that a router which rations its errors tells of, at most.
_MOST_RATIONED = 2 / 3
# Paths are measured to within a few bytes, and from two sides.
_ALIKE_BYTES = 8


def is_lost_back(result: Result) -> bool:
    """Tell whether the request arrived, and its answer was lost."""
    return result.where == ("return-path",)


def way_of_packets(result: Result) -> PacketWay:
    """Give the way of the packets that were lost."""
    ends = (result.source, result.destination)
    return (*(ends[::-1] if is_lost_back(result) else ends), ":" in result.address)


def as_sent(result: Result) -> Result:
    """Give a result with the ends of the packets that were lost as its source and destination."""
    sender, receiver, _ = way_of_packets(result)
    return replace(result, source=sender, destination=receiver)


def has_direction(result: Result) -> bool:
    """Tell whether it is known on which way packets were lost, there or back."""
    return not {"path", "return-path"} <= {*result.where}


def turn_round(result: Result) -> Result:
    """Give a result with its ends exchanged."""
    return replace(result, source=result.destination, destination=result.source)


class WayFacts:
    """What is known of ways on which nothing gets through, from one failure of each."""

    def __init__(
        self, failures: Sequence[Result], passes: Iterable[Result], *, some_ports: bool
    ) -> None:
        self._facts: dict[PacketWay, Result] = {}
        # Ways whose fact is that of others: what is known of the receiver comes first.
        self._lent: set[PacketWay] = set()
        # How many failures of it a router said, and how many there are.
        self._words: dict[PacketWay, tuple[int, int]] = {}
        self._last_hops: dict[PacketWay, set[str]] = {}
        said = {way_of_packets(one) for one in failures if _is_said(one)}
        # What a router refuses speaks for a machine last.
        self._machines = MachineFacts(sorted(failures, key=lambda one: way_of_packets(one) in said))
        self._cut_off = CutOffHosts(failures, some_ports=some_ports)
        facts = [one for one in failures if _is_of_way(one)]
        own = [] if some_ports else list(filter(is_own_stop, failures))
        self._own_stops: dict[PacketWay, Result] = {}
        self._dead = {way_of_packets(one): None for one in failures}
        if not facts and not own and not self._machines and not self._cut_off:
            return
        dead = self._dead
        connected: set[str] = set()
        for way in _find_open_ways(failures, passes):
            dead.pop(way, None)
            if way[0] != way[1]:
                connected.update(way[:2])
        self._cut_off.leave_out(connected)
        for one in sorted(facts, key=lambda fact: (fact.rejected_by is None, fact.order)):
            if way_of_packets(one) in dead:
                self._facts.setdefault(way_of_packets(one), one)
        self._own_stops = _find_sealed_ways(own, dead)
        self._ask_next_hops(failures)
        self._count_words(failures)
        for six in (False, True):
            pairs: dict[Pair, None] = {(a, b): None for a, b, family in dead if family == six}
            for box in split_into_boxes(pairs) if pairs else ():
                self._lend_in_box([(*pair, six) for pair in box])

    def _ask_next_hops(self, failures: Iterable[Result]) -> None:
        """Let a router that says that it has no route be the cause where it is the next hop of a
        host that heard nothing of it."""
        facts = [fact for fact in self._facts.values() if fact.rejected_by is not None]
        said: dict[tuple[str | None, bool], Result] = {
            (fact.rejected_by, fact.decides): fact for fact in facts
        }
        for one in failures if said else ():
            fact, way = said.get((one.next_hop, one.decides)), way_of_packets(one)
            if fact is not None and one.reason == "no-response" and way in self._dead:
                self._facts.setdefault(way, fact)

    def _count_words(self, failures: Iterable[Result]) -> None:
        """Count the failures of each way with a fact, and those of which its router said so; note
        where walks end."""
        for one in failures:
            way = way_of_packets(one)
            if one.last_hop is not None and not is_lost_back(one):
                self._last_hops.setdefault(way, set()).add(one.last_hop)
            if way in self._facts and not is_lost_back(one):
                heard, all_ = self._words.get(way, (0, 0))
                self._words[way] = (heard + _is_said(one), all_ + 1)

    def _tells_all(self, ways: Iterable[PacketWay]) -> bool:
        """Tell whether a router rations its errors so little that it would tell of other ways."""
        counts = [self._words.get(way, (0, 0)) for way in ways]
        heard, all_ = (sum(some) for some in zip(*counts, strict=True))
        return bool(heard > all_ * _MOST_RATIONED)

    def _ends_elsewhere(self, way: PacketWay, routers: Container[str | None]) -> bool:
        """Tell whether a walk on this way had its last answer of another router."""
        hops = self._last_hops.get(way, set())
        return bool(hops) and not any(hop in routers for hop in hops)

    def _lend_in_box(self, box: Sequence[PacketWay]) -> None:
        """Let a router that has no route speak for the hosts of a box to which it said nothing.

        Routers ration their errors. Where one sender heard two, none of them does: what each sender
        hears of one address may be one router. Nor does one that speaks of nearly every packet to
        some hosts, and of none to others where a walk ends before it.
        """
        known = {way: self._facts[way] for way in box if way in self._facts}
        routers = {fact.rejected_by for fact in known.values()}
        of_routers = [way for way, fact in known.items() if fact.rejected_by is not None]
        if of_routers and self._tells_all(of_routers):
            told = {receiver for _, receiver, _ in of_routers}
            box = [way for way in box if way[1] in told or not self._ends_elsewhere(way, routers)]
        by_sender: dict[str, set[str | None]] = {}
        for (sender, _, _), fact in known.items():
            by_sender.setdefault(sender, set()).add(fact.rejected_by)
        may_be_one = None not in routers and all(len(some) == 1 for some in by_sender.values())
        for way in box:
            heard = by_sender.get(way[0], set() if may_be_one else routers)
            fits = [
                (receiver != way[1], one) for (_, receiver, _), one in known.items()
                if one.rejected_by is not None and (not heard or {one.rejected_by} == heard)
            ]  # fmt: skip
            # There and back are of one box, and may have routers of their own.
            lent = min(fits, key=itemgetter(0), default=(True, None))[1]
            if lent is None and way not in self._facts:
                lent = self._find_common_hop(way, known)
                self._lent.add(way)
            if lent is not None:
                self._facts.setdefault(way, lent)

    def _find_common_hop(self, way: PacketWay, known: Mapping[PacketWay, Result]) -> Result | None:
        """Find the next hop that takes all other packets of a sender in a box, where no walk got
        farther: a host has few walks, and not every way shows it."""
        facts = [fact for (sender, _, _), fact in known.items() if sender == way[0]]
        if len({fact.next_hop for fact in facts}) != 1 or way in self._last_hops:
            return None
        return facts[0] if facts[0].next_hop is not None else None

    def find_cut_off(self, result: Result) -> Result | None:
        """Give the failure that shows a host to be cut off, where that is the cause of this one."""
        return self._cut_off.explain(result)

    def explain(self, result: Result) -> Result | None:
        """Give the failure whose cause is also that of this one, itself perhaps; None: none is."""
        fact = self._facts.get(way_of_packets(result))
        if shows_machine(result):
            # What a router refuses to the sender comes to neither of the two machines.
            heard = way_of_packets(result) in self._words and fact is not None and _is_said(fact)
            return fact if heard else self._machines.of_address(result)
        own = self._find_own_stop(result)
        if own is not None:
            return own
        if fact is None or fact.reason == INFERRED or way_of_packets(result) in self._lent:
            fact = self._find_machine(result) or fact
        if fact is None or (_is_of_way(result) and not shows_machine(fact)):
            return fact
        if result.reason not in ("no-response", INFERRED) or fact.decides != result.decides:
            return None
        return fact if is_lost_back(result) or {*fact.where} & {*result.where} else None

    def _find_own_stop(self, result: Result) -> Result | None:
        """Find what of the destination itself lets nothing out to the source, and so no answers
        either: its firewall, or that it has no route."""
        own = self._own_stops.get((result.destination, result.source, ":" in result.address))
        if own is None or result.reason != "no-response" or own.decides != result.decides:
            return None
        return own if {*result.where} <= {"destination", "return-path"} else None

    def _find_machine(self, result: Result) -> Result | None:
        """Find who else has the address that the lost packets were sent to."""
        if is_lost_back(result):
            return self._machines.of_answers(result)
        if way_of_packets(result) not in self._dead:
            return None
        found = self._machines.of_address(result)
        return found or (self._machines.of_answers(result) if result.reason == INFERRED else None)


def _find_sealed_ways(own: Iterable[Result], dead: Container[PacketWay]) -> dict[PacketWay, Result]:
    """Find the ways on which the sender itself stops everything. Of a firewall one port alone says
    nothing of the answers that it sends from others; routes know no ports."""
    stopped: dict[PacketWay, list[Result]] = {}
    for one in own:
        stopped.setdefault(way_of_packets(one), []).append(one)
    return {
        way: some[0]
        for way, some in stopped.items()
        if way in dead and (some[0].reason == "no-route" or len({port_of(one) for one in some}) > 1)
    }


def find_proof(members: Iterable[Result]) -> Result | None:
    """Give the member that shows the cause of all, where one shows a fact of a whole way."""
    facts = (one for one in members if _is_of_way(one) or shows_machine(one))
    return min(
        facts,
        key=lambda fact: (not _is_said(fact), rank_of_machine(fact), fact.order),
        default=None,
    )


def find_wall_proof(members: Iterable[Result]) -> Result | None:
    """Give the member that shows what lets nothing through, where answers are lost there, too."""
    ranked = sorted(members, key=lambda one: (one.rejected_by is None, len(one.where), one.order))
    sent = [one for one in ranked if not is_lost_back(one)]
    return sent[0] if 0 < len(sent) < len(ranked) else None


def set_answers_apart(failures: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Set apart the answers that are lost on a way on which requests vanish, too."""
    silent = {_key_of_way(one) for one in failures if "path" in one.where and not is_lost_back(one)}
    answers = [
        one for one in failures
        if is_lost_back(one) and one.reason == "no-response" and _key_of_way(one) in silent
    ]  # fmt: skip
    apart = set(map(id, answers))
    return [one for one in failures if id(one) not in apart], answers


def join_answers(
    rules: Sequence[Stopped], answers: Iterable[Result]
) -> tuple[list[Stopped], list[Result]]:
    """Join lost answers with what lets nothing at all through on their way, whether or not a router
    says a word of it; give the others, too."""
    walls = {
        _key_of_way(one): number
        for number, rule in enumerate(rules) if rule.everything
        for one in rule.members if "path" in one.where
    }  # fmt: skip
    taken: dict[int | None, list[Result]] = {}
    for one in answers:
        taken.setdefault(walls.get(_key_of_way(one)), []).append(one)
    joined = [_add_answers(rule, taken.get(number, [])) for number, rule in enumerate(rules)]
    return joined, taken.get(None, [])


def _key_of_way(result: Result) -> tuple[PacketWay, bool]:
    return way_of_packets(result), result.decides


def _add_answers(rule: Stopped, answers: list[Result]) -> Stopped:
    members = rule.members + answers
    return Stopped(members, rule.everything, find_wall_proof(members)) if answers else rule


def _is_of_way(result: Result) -> bool:
    return find_reason(result.reason).shares == "next-hop" or _is_said(result)


def _is_said(result: Result) -> bool:
    """Tell whether a router said itself that it has no way."""
    return find_reason(result.reason).shares == "router" and result.rejected_by is not None


def _find_open_ways(failures: Sequence[Result], passes: Iterable[Result]) -> Iterable[PacketWay]:
    """Find the ways on which any packet got through: a request, or an answer.

    That a host without a route cannot answer does not show that a request came to it.
    """
    answered = (one for one in failures if one.state in ("open", "closed"))
    required = (one for one in passes if one.expect != "denied")
    routeless = {way_of_packets(one) for one in failures if one.reason == "no-route"}
    came = (
        one for one in failures
        if is_lost_back(one) and (way_of_packets(one) not in routeless or _has_come(one))
    )  # fmt: skip
    for one in chain(answered, required, came):
        there = (one.source, one.destination, ":" in one.address)
        yield there
        if one.proof != "witness" and not is_lost_back(one):
            yield (there[1], there[0], there[2])


def _has_come(result: Result) -> bool:
    """Tell whether a recorder of the destination saw the request."""
    return result.story is not None and result.story.destination_in.seen == "yes"


def join_routers(causes: Iterable[Stopped]) -> list[Stopped]:
    """Join what routers refuse that may be one router, which has an address in each network.

    To one sender a router speaks from one address.
    """
    joined: list[Stopped] = []
    for cause in causes:
        same = next((one for one in joined if _may_be_one_router(one, cause)), None)
        if same is None:
            joined.append(cause)
        else:
            same.members.extend(cause.members)
    return joined


def _may_be_one_router(one: Stopped, other: Stopped) -> bool:
    if one.proof is None or other.proof is None or one.proof.reason != other.proof.reason:
        return False
    if find_reason(one.proof.reason).shares != "router" or one.proof.decides != other.proof.decides:
        return False
    (senders, receivers), (senders_, receivers_) = map(_ends_of, (one.members, other.members))
    return not senders & senders_ and (receivers <= receivers_ or receivers_ <= receivers)


def _ends_of(members: Iterable[Result]) -> tuple[set[str], set[str]]:
    ways = [way_of_packets(one) for one in members]
    return {sender for sender, _, _ in ways}, {receiver for _, receiver, _ in ways}


def group_by_link(members: Sequence[Result]) -> list[list[Result]]:
    """Group failures by the narrow link that they meet: a size, and hosts on both sides of it."""
    place = {id(one): number for number, one in enumerate(members)}
    groups = [
        group
        for alike in _split_by_size(members)
        for box in group_by_box(alike, lambda one: way_of_packets(one)[:2])
        for group in _split_by_router(box)
    ]
    return sorted(groups, key=lambda group: min(place[id(one)] for one in group))


def _split_by_router(members: list[Result]) -> list[list[Result]]:
    """Split by the router that says it where one host hears two: to one, a router has one address.

    Different hosts, and there and back, may hear both ends of one link.
    """
    heard: dict[str, set[str | None]] = {}
    for one in members:
        heard.setdefault(one.source, set()).add(one.rejected_by)
    if all(len(routers) == 1 for routers in heard.values()):
        return [members]
    groups: dict[str | None, list[Result]] = {}
    for one in members:
        groups.setdefault(one.rejected_by, []).append(one)
    return list(groups.values())


def _split_by_size(members: Sequence[Result]) -> Iterable[list[Result]]:
    alike: list[Result] = []
    for one in sorted(members, key=_size_of):
        if alike and _size_of(one) - _size_of(alike[-1]) > _ALIKE_BYTES:
            yield alike
            alike = []
        alike.append(one)
    yield alike


def _size_of(result: Result) -> int:
    return result.path_mtu_bytes or 0

"""Failures → findings: results that share a likely cause are folded into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.judge.advice import advice, kind_and_title
from netprobe.judge.any_of import join_again, set_apart
from netprobe.judge.cut_off import host_of_link
from netprobe.judge.heard_hops import HeardHops
from netprobe.judge.kept_numbers import KeptNumbers
from netprobe.judge.lookups import (
    choose_leading,
    group_by_name,
    rank_of_lookup,
    set_lookups_apart,
)
from netprobe.judge.machines import shows_machine
from netprobe.judge.naming import Naming, count_flows, titled, unique
from netprobe.judge.places import common_places
from netprobe.judge.rules import (
    Stopped,
    check_whole_pairs,
    find_rejecters,
    group_by_rule,
    is_own_stop,
    is_stopped_by_rule,
    speaker_of,
)
from netprobe.judge.walls import Zones
from netprobe.judge.ways import (
    WayFacts,
    as_sent,
    group_by_link,
    has_direction,
    is_lost_back,
    join_answers,
    join_routers,
    set_answers_apart,
    turn_round,
)
from netprobe.model.kept_finding import KeptFinding
from netprobe.model.matrix import rank_weight
from netprobe.model.reason import Share
from netprobe.model.reasons import find_reason
from netprobe.model.result import Finding, Place, Result

# One port, and one pair of hosts: a cause does not know requirements.
PortKey = tuple[str, int | None, int | None]
SourcePair = tuple[str, str, str]


def fold(
    results: Iterable[Result],
    passes: Iterable[Result] = (),
    zones: Zones | None = None,
    kept: Sequence[KeptFinding] = (),
    *,
    some_ports: bool = False,
) -> tuple[Finding, ...]:
    """Fold failures with one likely cause into findings, and number them.

    Those that decide the exit status come first, of them what is blocked or exposed. Then comes
    what stops most, and what concerns most hosts; what no row says the weight of comes last, in the
    order of the plan. A failure is blocked or exposed, a service that wrongly speaks TLS or wrongly
    does not, or a port that another run of netprobe holds. ``passes`` are the passes of the run,
    which tell whether nothing gets through between two hosts; they are read only where a firewall
    or a router stops something, and then more than once. ``zones`` are those of the hosts that have
    one. ``kept`` are the findings of the file that the results are of: these have its numbers, and
    further ones the numbers behind. ``some_ports``: not all that is required between two hosts was
    asked, so that nobody knows whether nothing gets through there.
    """
    numbers = KeptNumbers(kept)
    hops = HeardHops()
    worth = [result for result in hops.listen(results) if _is_worth_a_finding(result)]
    found, rest = numbers.take(hops.correct(worth))
    naming = titled(zones or {})
    known = (
        replace(
            _make_finding(cause, naming),
            number=one.number,
            evidence=one.evidence,
            no_evidence=one.no_evidence,
        )
        for one, cause in found
    )
    causes = _find_causes(rest, passes, zones or {}, some_ports=some_ports)
    folded = sorted((_make_finding(one, naming) for one in causes), key=_order_of_finding)
    return (
        *known,
        *(replace(one, number=number) for number, one in enumerate(folded, numbers.last + 1)),
    )


def _find_causes(
    failures: Sequence[Result], passes: Iterable[Result], zones: Zones, *, some_ports: bool
) -> list[Stopped]:
    """Group the failures that share a likely cause."""
    failures, followers = set_apart(failures)
    failures, lookups = set_lookups_apart(failures, passes, some_ports=some_ports)
    names, failures = group_by_name(failures, passes)
    rejecters = find_rejecters(failures)
    facts = WayFacts(failures, passes, some_ports=some_ports)
    stopped: list[Result] = []
    causes: dict[tuple[object, ...], Stopped] = {}
    for result in failures:
        cut_off = facts.find_cut_off(result)
        fact = cut_off or facts.explain(result)
        speaker = fact or speaker_of(result, rejecters)
        if cut_off is not None:
            own = causes.setdefault(_host_key(cut_off), Stopped([], True, cut_off))
            own.members.append(result)
        elif is_stopped_by_rule(speaker):
            stopped.append(result)
        else:
            # What a firewall of the source stops needs no proof of another flow.
            proof = None if is_own_stop(speaker) else fact
            key = (proof is not None, *_cause_key(speaker))
            cause = causes.setdefault(key, Stopped([], proof=proof))
            cause.members.append(result)
    parts = [part for cause in join_routers(causes.values()) for part in _split_by_pairs(cause)]
    rules = _find_rules(stopped, passes, zones, some_ports=some_ports)
    rules = check_whole_pairs(rules, failures)
    found = [*map(Stopped, names), *parts, *rules]
    return join_again(join_again(found, lookups), followers)


def _find_rules(
    stopped: Sequence[Result], passes: Iterable[Result], zones: Zones, *, some_ports: bool
) -> list[Stopped]:
    """Group what firewalls stop; answers that are lost beside all requests of a way go with it."""
    if not stopped:
        return []
    requests, answers = set_answers_apart(stopped)
    rules = group_by_rule(requests, passes, zones, some_ports=some_ports)
    rules, left = join_answers(rules, answers)
    more = group_by_rule(left, passes, zones, some_ports=some_ports) if left else []
    return rules + more


def _is_worth_a_finding(result: Result) -> bool:
    return result.verdict in ("blocked", "exposed") or find_reason(result.reason).always_found


def _order_of_finding(finding: Finding) -> tuple[bool, bool, int, int, tuple[int, int, int]]:
    decides = any(member.decides for member in finding.members)
    failed = finding.verdict in ("blocked", "exposed")
    hosts = 0 if finding.stops is None else len(finding.hosts)
    rank = rank_weight(finding.stops)
    return (not decides, not failed, rank, -hosts, finding.members[0].order)


def _host_key(cut_off: Result) -> tuple[object, ...]:
    return ("cut off", host_of_link(cut_off), cut_off.decides)


def _cause_key(result: Result) -> tuple[object, ...]:
    """Give the key that two failures with one cause share, where no firewall on the way is it."""
    shares = find_reason(result.reason).shares
    common = (result.verdict, result.reason, result.decides)
    if shares == "link":
        # One end says it of itself, of what comes from the other one it may drop all.
        return (result.verdict, shares, result.decides)
    everywhere = _find_shared(result).get(shares)
    if everywhere is not None:
        return (*common, *everywhere)
    place = (result.where, result.rejected_by)
    if shares == "next-hop":
        return (*common, *place, result.next_hop, _find_link(result))
    if result.where == ("source",):
        return (*common, *place, result.source)
    if shares == "holder" or result.holder is not None:
        return (*common, *place, result.destination, result.holder)
    return (*common, *place)


def _find_link(result: Result) -> str | None:
    """Give the host whose link alone knows the address of its next hop; None: it is no such
    address, and the next hop of several hosts is one router."""
    local = result.next_hop is None or ip_address(result.next_hop).is_link_local
    return result.source if local else None


def _find_shared(result: Result) -> dict[Share, tuple[object, ...]]:
    """Give what failures share whose cause knows neither places nor pairs of hosts."""
    return {
        "address": (result.address,),
        "machine": (result.address,),
        "resolver": result.name_servers,
        "driver": (result.driver,),
        "sentence": (result.because,),
        "reason": (result.rejected_by,),
    }


def _split_by_pairs(cause: Stopped) -> list[Stopped]:
    """Split one cause's failures by which pairs of hosts they hit: equal pairs stay together."""
    if cause.everything:
        return [cause]
    first = cause.proof or next(filter(is_own_stop, cause.members), cause.members[0])
    shares = find_reason(first.reason).shares
    if shares == "link":
        return [Stopped(members) for members in group_by_link(cause.members)]
    if shares != "rule" or first.where == ("source",):
        return [cause]
    pairs: dict[PortKey, set[SourcePair]] = {}
    for member in cause.members:
        pairs.setdefault(_port_key(member), set()).add(_pair_key(member))
    groups: dict[frozenset[SourcePair], list[Result]] = {}
    for member in cause.members:
        groups.setdefault(frozenset(pairs[_port_key(member)]), []).append(member)
    return [Stopped(members) for members in groups.values()]


def _port_key(result: Result) -> PortKey:
    return (result.protocol, result.port, result.end_port)


def _pair_key(result: Result) -> SourcePair:
    return (result.source, result.destination, result.address)


def _make_finding(cause: Stopped, naming: Naming) -> Finding:
    everybody = sorted(cause.members, key=_place_in_plan)
    members = choose_leading(everybody)
    told, answers = _choose_named(members, cause)
    # A member with a rejecter speaks for those that heard nothing, and what is proven for the rest.
    first = cause.proof or min(told, key=lambda one: (one.rejected_by is None, len(one.where)))
    kind, title = kind_and_title(told, first, naming, everything=cause.everything)
    lost = f", and the answers {naming.between(answers)}" if answers else ""
    lost += _word_lookups(everybody, first, naming)
    hops = {member.last_hop for member in members}
    routers = {member.rejected_by for member in members} - {None}
    return Finding(
        kind=kind,
        verdict=first.verdict,
        title=f"{title}{lost} ({count_flows(everybody)})",
        advice=advice(told, first, everything=cause.everything),
        where=_find_places(members, cause),
        members=tuple(everybody),
        rejected_by=first.rejected_by if len(routers) == 1 else None,
        last_hop=first.last_hop if len(hops) == 1 else None,
        stops=min((member.stops for member in everybody), key=rank_weight),
        everything=cause.everything,
        shown_by=first,
    )


def _choose_named(members: list[Result], cause: Stopped) -> tuple[list[Result], list[Result]]:
    """Choose the members that a finding names, and the answers that are lost with them.

    A narrow link has the ends of the packets that it stops.
    """
    if _is_link(cause):
        return _name_ways(members), []
    if own := [one for one in members if is_own_stop(one)]:
        rest = [turn_round(one) for one in members if not is_own_stop(one)]
        # A host without a route answers nobody.
        return own, [] if find_reason(own[0].reason).title else rest
    if cause.proof is None or (cause.everything and host_of_link(cause.proof) is not None):
        return members, []
    held = cause.proof.address if shows_machine(cause.proof) else None
    told = [one for one in members if not is_lost_back(one) and held in (None, one.address)]
    # Of a host whose address another machine has the answers are lost, whatever it sends.
    answers = [
        as_sent(one) if is_lost_back(one) else turn_round(one)
        for one in members if is_lost_back(one) or held not in (None, one.address)
    ]  # fmt: skip
    return told, answers


def _name_ways(members: list[Result]) -> list[Result]:
    """Give members with the ends of the packets that were lost: both ways where no member tells
    which one it is."""
    sent = [as_sent(one) for one in members]
    if any(has_direction(one) for one in members):
        return sent
    return sent + [turn_round(one) for one in members]


def _find_places(members: Sequence[Result], cause: Stopped) -> tuple[Place, ...]:
    """Find the places of a finding: there and back have places of their own."""
    if cause.proof is not None:
        back: set[Place] = {"return-path"} if any(map(is_lost_back, members)) else set()
        return tuple(sorted({*cause.proof.where} | back))
    if find_reason(members[0].reason).shares == "driver":
        # Seen from the other end a card is at the destination.
        return max(one.where for one in members)
    if _is_link(cause):
        # A router that says it knows the place.
        members = [one for one in members if one.rejected_by is not None] or members
        return tuple(sorted({place for one in members for place in one.where}))
    if any(map(is_own_stop, members)):
        answers: set[Place] = set() if all(map(is_own_stop, members)) else {"destination"}
        return tuple(sorted({"source", *answers}))
    return common_places(members)


def _word_lookups(members: Sequence[Result], first: Result, naming: Naming) -> str:
    """Name the hosts whose questions to name servers have another cause than these."""
    if rank_of_lookup(first):
        return ""
    lookups = unique(one.source for one in members if rank_of_lookup(one))
    return f", and no names resolve on {naming.names(lookups)}" if lookups else ""


def _is_link(cause: Stopped) -> bool:
    return find_reason(cause.members[0].reason).shares == "link"


def _place_in_plan(member: Result) -> tuple[tuple[int, int, int], str, int]:
    return (member.order, member.address, member.port or 0)

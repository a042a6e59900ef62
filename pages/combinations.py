"""netprobe/model/combinations.txt, printed from the tables: ``python -m pages.combinations``.

Each row of the verdict tables goes through the judge's own later steps, with all that these look
at: what narrows its places, ``--strict``, ``--live``, what exists already, limits, clocks, names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from msgspec.structs import replace

from netprobe.judge.balanced import BalancerFate, judge_balancer
from netprobe.judge.multicast import MulticastFate, judge_multicast
from netprobe.judge.name_rows import ROWS as NAME_ROWS
from netprobe.judge.of_hosts import REASONS_OF_HOSTS, make_fault
from netprobe.judge.quality import judge_quality
from netprobe.judge.rehearsed import OverlayFate, judge_rehearsal
from netprobe.judge.rows import ALLOWED, DENIED, VerdictRow
from netprobe.judge.segments import SegmentFate, judge_segment
from netprobe.judge.verdict import Rules, judge, judge_row, narrowed
from netprobe.model.balanced import BalancerFacts, CheckSeen, HeldPool, Removal
from netprobe.model.combinations import ANY, NOWHERE, PRINTED, SAID
from netprobe.model.evidence import (
    NO_NEIGHBOUR,
    Evidence,
    Listener,
    Outcome,
    PathMtu,
    RefusalMaker,
    ServerClock,
    Witness,
)
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.model.matrix import Condition, Expect, Requirement
from netprobe.model.multicast import MulticastFacts
from netprobe.model.names import NameFacts, NameTold, ServerTold
from netprobe.model.plan import PATH_MTU, AskedName, Block, Flow, HostFlow
from netprobe.model.quality import QualityLimits, SampledBy, WaySamples
from netprobe.model.rehearsed import Card, OverlayFacts, TunnelTrial
from netprobe.model.result import Place, Proof, Result
from netprobe.model.segment import DhcpFacts, DhcpSeen, RouterSeen, SegmentFacts
from netprobe.model.story import Sight, Story, StoryPlace

HOSTS = tuple(Host(name, (Address("10.0.0.1", 4),), (), Vantage("local")) for name in "ab")
ORDER = (0, 0, 0)
SIGHTS: tuple[Sight, ...] = ("yes", "no", "unknown")
# Of a story's six; what reached the prober is no silence.
PLACES = 5
# Why an answer does not leave: its own firewall, its routing table, its next hop.
REPLIES = (None, "not-permitted", "network-unreachable", NO_NEIGHBOUR)
RULES = tuple(Rules(strict, live) for strict, live in product((False, True), repeat=2))
NO_TIME = ServerClock(stratum=16, good=False)
# A server that fails for everything.
NAMES_FAIL = NameFacts(
    (AskedName("setting", "n"),),
    ServerTold("a", "10.0.0.1", (NameTold("n", "SERVFAIL"),), resolves=False),
)
_CARD = Card("a", "eth0", "driver")
_PASSES = TunnelTrial(True, True, True, 200_000, 1000)


def _make_overlay(**trial: Any) -> OverlayFacts:
    return OverlayFacts(1, 1450, TunnelTrial(**{"echo": True, **trial}), _CARD, _CARD)


# What shows each row of the table of rehearsals.
OVERLAYS: Mapping[OverlayFate, OverlayFacts] = {
    "carries": _make_overlay()._replace(trial=_PASSES),
    "source-card": _make_overlay()._replace(mended_at="source"),
    "destination-card": _make_overlay()._replace(mended_at="destination"),
    "both-cards": _make_overlay()._replace(mended_at="both"),
    "nothing": _make_overlay(echo=False),
    "no-echo": _make_overlay()._replace(trial=_PASSES._replace(echo=False)),
    "no-tcp": _make_overlay(),
    "no-full-segments": _make_overlay(opened=True),
    "no-transfer": _make_overlay(opened=True, full=True),
}
_ENDS = ("a", "b")
_ASKED = CheckSeen("b", "/readyz over HTTPS at TCP port 6443", passes=True, seen=3, every_ms=2000)
_OUT = Removal("a", is_out=True, kept_ms=4_700, watched_s=7, back_ms=2_100, back_watched_s=3)
_KEPT = Removal("a", is_out=False, kept_ms=45_200, watched_s=46)
_POOL = BalancerFacts(
    _ENDS, _ENDS, _ENDS, dials=24, itself=True, checks=(_ASKED,), seen_as=("10.0.0.9",),
    failing="answered /readyz with 500", removals=(_OUT, _OUT._replace(back_end="b", kept_ms=5_100))
)  # fmt: skip
_HALF = _POOL._replace(reached=("a",), pool=("a",), waited_s=31, checks=())
_HELD = _POOL._replace(
    checks=(), seen_as=(), failing="", removals=(),
    held=HeldPool("TCP port 6443 of a is in use: back ends are played before the installation"),
)  # fmt: skip
_OTHER = "the certificate of lb.example.com"
# What shows each row of the table of balancers.
BALANCERS: Mapping[BalancerFate, BalancerFacts] = {
    "hands-on": _POOL,
    "foreign": _POOL._replace(foreign=6, shown=_OTHER),
    "ends-tls": _POOL._replace(ended=24, shown=_OTHER),
    "proxy-header": _POOL._replace(headers=24),
    "lacks": _HALF,
    "lacks-by-check": _HALF._replace(checks=(_ASKED._replace(passes=False),)),
    "lacks-or-sticks": _HALF._replace(all_stick=True),
    "lacks-all": _POOL._replace(reached=(), pool=(), checks=(), waited_s=31),
    "lacks-favour": _HALF._replace(checks=(_ASKED,)),
    "loses": _POOL._replace(since=36, unanswered=9, lost=9, lost_words="reset"),
    "no-reflection": _POOL._replace(reached=("b",), itself=False, unreflected=_ENDS, lost=12),
    "own-reflection": _POOL._replace(reached=("b",), itself=False, unreflected=("a",), lost=12),
    "never-removes": _POOL._replace(removals=(_KEPT, _OUT._replace(back_end="b"))),
    "never-returns": _POOL._replace(removals=(_OUT._replace(back_ms=None, back_watched_s=45),)),
    "slow": _POOL._replace(removals=(_OUT._replace(kept_ms=36_000),)),
    "sticks": _POOL._replace(reached=("a",), sticks=True),
    "shows-other": _HELD._replace(foreign=24, shown=_OTHER),
    "lacks-unready": _HELD._replace(reached=("a",), pool=("a",), waited_s=5),
    "looks-on": _HELD,
}
_ALONE = SegmentFacts(is_free=False, asker="b", device="eth0", itself=True)
_FREE = SegmentFacts(is_free=True, asker="a", device="eth0", vrid=51)
_ROUTER = RouterSeen("VRRPv2", 51, 100, "10.0.0.9", "02:00:00:00:00:09", ("a", "b"))
_SERVED = DhcpFacts("b on eth0", (DhcpSeen("10.0.0.9", "02:00:00:00:00:09", "10.0.0.50"),), True)
# What shows each row of the table of segments.
SEGMENTS: Mapping[SegmentFate, SegmentFacts] = {
    "in-use": _FREE._replace(holders=("02:00:00:00:00:09",)),
    "id-taken": _FREE._replace(routers=(_ROUTER,)),
    "two-machines": _ALONE._replace(holders=("02:00:00:00:00:09",)),
    "elsewhere": _ALONE._replace(holders=("c (02:00:00:00:00:09)",), itself=False),
    "dhcp": _ALONE._replace(dhcp=_SERVED),
    "silent": _FREE._replace(is_silent=True),
    "free": _FREE,
    "alone": _ALONE,
}
_SENT = MulticastFacts("10.0.0.1", "eth0", arrived=True)
# What shows each row of the table of VRRP's multicast.
MULTICASTS: Mapping[MulticastFate, MulticastFacts] = {
    "arrives": _SENT,
    "filtered": _SENT._replace(arrived=False, heard_by=("c",), hears=True),
}
ALL_WIRES: Sequence[SampledBy] = ("tcp", "udp", "icmp")
_RTTS_US = tuple(range(900, 1200))
_NEEDED = QualityLimits(loss=0.001, required=True)
# What shows each row of the table of quality, by each way of measuring.
QUALITIES: Sequence[tuple[WaySamples, QualityLimits]] = (
    *((WaySamples(by, _RTTS_US, 0), QualityLimits(66_000, 10_000, 0.02)) for by in ALL_WIRES),
    (WaySamples("udp", _RTTS_US, 40), _NEEDED),
    (WaySamples("udp", _RTTS_US, 40, late=50, missed=50), _NEEDED),
    (WaySamples("udp", _RTTS_US, 0), _NEEDED),
)
# Stands in evidence for whatever a kernel, a router or a proxy says.
SPOKEN = Outcome("connect", SAID)


def make_evidence(
    expect: Expect, protocol: str = "tcp", existing: bool = False, **facts: Any
) -> Evidence:
    """Make the evidence of one flow between two hosts, with these facts."""
    probe = PATH_MTU if facts.get("mtu") is not None else None
    requirement = Requirement(
        "r", ("a",), ("b",), purpose="", row="", when=Condition(), expect=expect, probe=probe
    )
    ports = ((6443, 6443),) if protocol in ("tcp", "udp") else ()
    source, destination = HOSTS
    ends = ((destination, destination.addresses[0]),)
    block = Block(0, "m", requirement, protocol, ports, 4, (source,), ends, existing=existing)
    flow = Flow(block, source, *ends[0])
    return Evidence(**{"flow": flow, "address": "10.0.0.1", "ports": ports, **facts})


def list_results() -> Iterator[Result]:
    """Give a result for everything that the judge can conclude; some more than once."""
    yield from _list_results_of("allowed", ALLOWED)
    yield from _list_results_of("denied", DENIED)
    yield from _list_untested()
    yield from _list_path_mtu()
    yield from _list_faults_of_hosts()
    yield from _list_rehearsed()


def _list_results_of(expect: Expect, rows: Iterable[VerdictRow]) -> Iterator[Result]:
    views = [make_evidence(expect, outcome=SPOKEN, **facts) for facts in _list_views()]
    kept: dict[tuple[str, str, tuple[Place, ...]], list[Evidence]] = {}
    for row in rows:
        key = (row.verdict, row.reason, row.where)
        if key not in kept:
            kept[key] = list({narrowed(row, view): view for view in views}.values())
        for view in kept[key]:
            yield from _apply_later_steps(row, view)


def _list_views() -> Iterator[dict[str, Any]]:
    """Give all that narrows places: stories, and what is known of destination and answer."""
    stories = (Story(*map(StoryPlace, seen)) for seen in product(SIGHTS, repeat=PLACES))  # type: ignore[arg-type]
    known = product(REPLIES, (False, True), (False, True))
    settled = (story for story in stories if story == story.settled())
    for story, (reply, socket, up) in product(settled, known):
        witness = Witness(socket=socket, reply_failure=reply)
        yield {"story": story, "witness": witness, "host_up": up}


def _apply_later_steps(row: VerdictRow, view: Evidence) -> Iterator[Result]:
    later = [view, replace(view, limited=True)]
    if (row.verdict, row.state) == ("pass", "open"):
        # Only an answer tells a time, or of names.
        later.append(replace(view, outcome=replace(SPOKEN, clock=NO_TIME)))
        kinds = [kind for kind, told in NAME_ROWS.items() if told.reason is not None]
        later += [replace(view, names=_make_trouble(kind)) for kind in kinds]
        later.append(replace(view, names=NAMES_FAIL))
    if (row.verdict, row.state) == ("inconclusive", "closed"):
        later.append(replace(view, maker=RefusalMaker(own=False, doubt=ANY)))
    if (row.verdict, row.reason) == ("inconclusive", "no-response"):
        later.append(replace(_change_row(view, probe="dns"), served=("c",)))
    if row.reason == "unknown-holder":
        later.append(replace(view, maker=RefusalMaker(own=False, doubt=ANY)))
        later.append(replace(view, given_up_by="10.0.0.3"))
    if row.reason == "nonce-answer":
        beside = Listener("ours", beside="x on 127.0.0.1", beside_loopback=True)
        later += [
            replace(_change_row(view, binds=binds), listener=beside)
            for binds in (None, "all", "address")
        ]
    for existing, rules, evidence in product((False, True), RULES, later):
        block = replace(evidence.flow.block, existing=existing)
        one = replace(evidence, flow=replace(evidence.flow, block=block))
        base = judge(replace(one, outcome=None), ORDER, rules)[0]
        yield judge_row(row, base, one, one.outcome or SPOKEN, rules)


def _change_row(view: Evidence, **keys: Any) -> Evidence:
    """Give the evidence of a row with these keys."""
    block = view.flow.block
    changed = replace(block, requirement=replace(block.requirement, **keys))
    return replace(view, flow=replace(view.flow, block=changed))


def _make_trouble(kind: Any) -> NameFacts:
    """Make what a name server tells where a name has this kind of trouble."""
    told = ServerTold("a", "10.0.0.1", (NameTold("n", "NOERROR", ("10.0.0.2",), trouble=kind),))
    return NameFacts((AskedName("setting", "n"),), told)


def _list_untested() -> Iterator[Result]:
    expected: tuple[Expect, ...] = ("allowed", "denied")
    for expect in expected:
        yield from judge(make_evidence(expect, outcome=None, untested=(ANY, "")), ORDER, Rules())


def _list_path_mtu() -> Iterator[Result]:
    """Give what packets of an overlay say of a path, and full-sized segments of TCP."""
    proofs: tuple[Proof, ...] = ("nonce", "witness", "service")
    asked: tuple[tuple[Expect, str, Outcome, Sequence[int | None]], ...] = (
        ("allowed", "icmp", Outcome(PATH_MTU, None), (None, 1400, 1450)),
        ("allowed", "tcp", Outcome("answer", None, answer="nonce"), (None, 1400)),
        ("denied", "tcp", Outcome("connect", "refused"), (None, 1400)),
    )
    for expect, protocol, outcome, sizes in asked:
        for size, proof, router, back in product(sizes, proofs, (None, "10.0.0.3"), (False, True)):
            mtu = PathMtu(size, 1450, proof, limited_by=router, lost_back=back)
            evidence = make_evidence(expect, protocol, outcome=outcome, mtu=mtu)
            yield from judge(evidence, ORDER, Rules())


def _list_faults_of_hosts() -> Iterator[Result]:
    """Give the faults of hosts that are those of no flow."""
    flow = make_evidence("allowed", "udp", outcome=None).flow
    for name in REASONS_OF_HOSTS:
        requirement = replace(flow.block.requirement, id=name)
        block = replace(flow.block, requirement=requirement)
        yield make_fault(HostFlow(replace(flow, block=block), ORDER), "")


def _list_rehearsed() -> Iterator[Result]:
    """Give a result for each row of what rehearsals show."""
    base = judge(make_evidence("allowed", "udp", outcome=None), ORDER, Rules())[0]
    for facts in OVERLAYS.values():
        yield judge_rehearsal(base, facts)
    base = judge(make_evidence("allowed", outcome=None), ORDER, Rules())[0]
    for seen in BALANCERS.values():
        yield judge_balancer(base, seen, "none")
    for samples, limits in QUALITIES:
        yield judge_quality(base, samples, limits)
    base = judge(make_evidence("allowed", "icmp", outcome=None), ORDER, Rules())[0]
    for known in SEGMENTS.values():
        yield judge_segment(base, known)
    base = judge(make_evidence("allowed", "ipproto/112", outcome=None), ORDER, Rules())[0]
    for sent in MULTICASTS.values():
        yield judge_multicast(base, sent)


@cache
def list_combinations() -> Mapping[tuple[str, str], Result]:
    """Give a result for each combination of words and places, as the file has them."""
    found = {}
    for result in list_results():
        words = (result.expect, result.verdict, result.state, result.reason, result.proof)
        found[" ".join(words), " ".join(result.where) or NOWHERE] = result
    return found


def page(before: str) -> str:
    """Print all that the file has already, and what this version's tables write."""
    found: dict[str, set[str]] = {}
    for line in before.splitlines():
        words, _, places = line.partition(": ")
        found.setdefault(words, set()).update(places.split(" | "))
    for words, place in list_combinations():
        found.setdefault(words, set()).add(place)
    lines = (f"{words}: {' | '.join(sorted(some))}\n" for words, some in found.items())
    return "".join(sorted(lines))


if __name__ == "__main__":
    sys.stdout.write(page(PRINTED.read_text("ascii")))

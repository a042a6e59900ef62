"""Evidence → result: first the table row that matches, then the rules of --strict and --live."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from netprobe.judge import mtu
from netprobe.judge.balanced import judge_balancer
from netprobe.judge.clock import judge_clock
from netprobe.judge.holder import holder_word, judge_beside, must_run
from netprobe.judge.multicast import judge_multicast
from netprobe.judge.name_troubles import judge_names
from netprobe.judge.quality import judge_quality
from netprobe.judge.rehearsed import judge_rehearsal
from netprobe.judge.rows import ALLOWED, DENIED, VerdictRow
from netprobe.judge.segments import judge_segment
from netprobe.judge.served import judge_served
from netprobe.judge.stopped import fill_counted
from netprobe.judge.symptom import is_down, reply_failure, symptom
from netprobe.judge.witness import RETURN_ROUTE, denied_witness_word, witness_word
from netprobe.judge.words import fill, fill_reason, next_hop, warn_of_service
from netprobe.model.balanced import BalancerFacts
from netprobe.model.decision import first_match
from netprobe.model.evidence import (
    OWN_ADDRESS,
    UNDIALLED,
    Evidence,
    Outcome,
    PathMtu,
    RehearsedFacts,
    Witness,
)
from netprobe.model.matrix import Requirement
from netprobe.model.multicast import MulticastFacts
from netprobe.model.plan import PATH_MTU
from netprobe.model.quality import QualityLimits, WaySamples
from netprobe.model.reasons import find_reason
from netprobe.model.result import Place, Result
from netprobe.model.segment import SegmentFacts
from netprobe.model.story import Story

# What the errno of the listener's own answer proves (docs/network-facts.md, section 6).
_OWN_OUTPUT = frozenset(("not-permitted",))
# Conclusions that another machine answers.
_OTHERS = ("held-twice", "other-machine")

LIMITED = (
    "; but other ports answered once they were asked slowly (something on the way lets only so "
    "many new connections a second through), and there was no time to ask this one so"
)

SLOW_START = (
    "a slow start: every new connection opens a second late, because something on the way drops "
    "its first packet (SYN) and lets only the repeated one through"
)
SAID_LIVE = "with --live everything is supposed to run"
SAID_EXISTING = "the matrix says that this service runs before the installation (existing: true)"


class Rules(Struct, frozen=True):
    """``strict``: handshake and refusal prove nothing. ``live``: everything is supposed to run."""

    strict: bool = False
    live: bool = False


def judge(evidence: Evidence, order: tuple[int, int, int], rules: Rules) -> list[Result]:
    """The results of one evidence: one for each run of neighbouring ports, or one without ports."""
    base = begin_result(evidence, order)
    outcome = evidence.heard
    if outcome is None:
        reason, words = evidence.untested or ("not-tested", "nobody looked")
        verdict = replace(base, reason=reason, because=words)
    elif evidence.rehearsed is not None:
        verdict = _judge_rehearsed(base, evidence.rehearsed, evidence.flow.block.requirement)
    else:
        row = find_row(evidence, outcome, rules)
        verdict = judge_row(row, base, evidence, outcome, rules)
        if evidence.mtu is not None and _counts_mtu(evidence, evidence.mtu, verdict):
            verdict = _judge_path_mtu(base, evidence.mtu)
    played = evidence.rehearsed is not None
    if evidence.outcome is not None and verdict.verdict != "pass" and not played:
        verdict = replace(verdict, story=_tell_story(evidence))
    if not evidence.ports:
        return [verdict]
    return [replace(verdict, port=first, end_port=last) for first, last in evidence.ports]


def _judge_rehearsed(base: Result, facts: RehearsedFacts, row: Requirement) -> Result:
    if isinstance(facts, SegmentFacts):
        return judge_segment(base, facts)
    if isinstance(facts, WaySamples):
        return judge_quality(base, facts, row.quality or QualityLimits())
    if isinstance(facts, BalancerFacts):
        return judge_balancer(base, facts, row.persistence)
    if isinstance(facts, MulticastFacts):
        return judge_multicast(base, facts)
    return judge_rehearsal(base, facts)


def begin_result(evidence: Evidence, order: tuple[int, int, int]) -> Result:
    """Give the result of evidence that nobody has judged yet, without its ports."""
    flow = evidence.flow
    block = flow.block
    requirement = block.requirement
    return Result(
        order=order, matrix=block.matrix, requirement=requirement.id,
        purpose=requirement.purpose, row=requirement.row, optional=requirement.optional,
        expect=requirement.expect, waived=block.waiver.reason if block.waiver else None,
        source=flow.source.name, destination=flow.destination.name, address=evidence.address,
        protocol=block.protocol, port=None, end_port=None,
        verdict="not-tested", state="unknown", reason="not-tested", proof="none",
        where=("source",), because="", warnings=block.warnings + evidence.warnings,
        stops=requirement.weight,
        any_of=block.group_name,
        also=block.also,
    )  # fmt: skip


def _counts_mtu(evidence: Evidence, measured: PathMtu, verdict: Result) -> bool:
    """Tell whether what a path carries is the verdict: not where anything else is worse.

    Nor of what must not answer: the path of the pair's other flows says nothing of it.
    """
    if verdict.expect == "denied":
        return False
    if evidence.outcome is None or evidence.outcome.operation != PATH_MTU:
        return verdict.verdict == "pass"
    if evidence.concluded in _OTHERS:
        return False  # what another machine answers says nothing of the path to this one
    return measured.path is not None or not is_down(evidence)


def _judge_path_mtu(base: Result, measured: PathMtu) -> Result:
    row = mtu.ROWS[mtu.fit(measured, base.protocol)]
    return replace(
        base,
        verdict=row.verdict,
        state=row.state,
        reason=row.reason,
        proof=measured.proof if row.verdict == "pass" else "none",
        where=row.where,
        because=mtu.because(row, measured),
        rejected_by=measured.limited_by if row.verdict != "pass" else None,
        path_mtu_bytes=measured.path,
        needed_mtu_bytes=measured.needed,
        attempts=1,
    )


def judge_row(
    row: VerdictRow, base: Result, evidence: Evidence, outcome: Outcome, rules: Rules
) -> Result:
    """Give the result that a row of the tables makes of an evidence, with all later steps."""
    result = replace(
        base,
        verdict=row.verdict,
        state=row.state,
        reason=fill_reason(row.reason, outcome),
        proof=row.proof,
        where=narrowed(row, evidence),
        because=fill(row.because, evidence, outcome),
        rejected_by=_rejected_by(row, evidence, outcome),
        last_hop=evidence.trace.last_hop if evidence.trace else None,
        next_hop=next_hop(evidence),
        rtt_ms=outcome.rtt_ms,
        attempts=outcome.attempts,
        holder=evidence.listener.owner if find_reason(row.reason).shares == "holder" else None,
    )
    result = replace(result, warnings=base.warnings + _collect_warnings(evidence, outcome, result))
    if result.verdict != "pass":
        result = replace(
            result,
            sent_from=evidence.sent_from,
            came_from=None if evidence.witness is None else evidence.witness.seen_from,
        )
    if evidence.limited and result.verdict == "blocked":
        result = replace(result, verdict="inconclusive", because=result.because + LIMITED)
    result = judge_beside(_apply_rules(result, evidence, rules), evidence)
    result = judge_served(result, evidence)
    result = judge_clock(result, evidence, rules.live)
    return judge_names(result, evidence, rules.live)


def find_row(evidence: Evidence, outcome: Outcome, rules: Rules) -> VerdictRow:
    """Find the first row of the flow's table that matches; a test walks them all: there is one."""
    block = evidence.flow.block
    denied = block.requirement.expect == "denied"
    protocol = block.protocol.partition("/")[0]
    state = holder_word(evidence, rules.live)
    word = symptom(evidence, outcome)
    if denied:
        seen = denied_witness_word(evidence, outcome, word)
        row: VerdictRow = first_match(DENIED, (word, protocol, state, seen))
    else:
        row = first_match(ALLOWED, (word, protocol, state, witness_word(evidence, word)))
    return row


def narrowed(row: VerdictRow, evidence: Evidence) -> tuple[Place, ...]:
    """Give the row's places, less those that the story and further facts exclude."""
    places = row.where
    if not places:
        return places
    # Something on the way may have answered for a host of which a router says that it is down.
    given_up = row.reason == "host-down" or evidence.given_up_by is not None
    unproved = given_up and evidence.listener.state in ("unknown", "lost")
    # An agent that lives does not show that its host's link does.
    is_up = evidence.host_up and row.reason != "host-down"
    if (evidence.control_answered or is_up) and not unproved:
        places = _exclude_places(places, "host")
    # A port that takes what must not come is open to it.
    silent = row.reason == "no-response" and row.verdict != "exposed"
    if silent and reply_failure(evidence) in _OWN_OUTPUT:
        return ("destination",)
    story, witness = evidence.story or Story(), evidence.witness or Witness()
    failure = reply_failure(evidence)
    # A kernel itself stops what comes from an address that it has.
    taken_in = failure == OWN_ADDRESS and evidence.stopped.request
    came = story.destination_in.seen == "yes" or witness.socket or taken_in
    # A host without a way back says nothing of the way there.
    if silent and came and failure in RETURN_ROUTE:
        return ("return-path",)
    if silent or row.reason in _NARROWED:
        left = _list_left(_fill_story(row, evidence), silent=silent)
        places = tuple(one for one in places if _ALIKE.get(one, one) in left)
        if not places and _is_of_router(evidence):
            return row.where  # of several equal ways one is rejected; others got there
        places = places or tuple(sorted(left)) or row.where
    return places


def _is_of_router(evidence: Evidence) -> bool:
    """Tell whether a router rejected it in its own name: it is on the way there."""
    icmp = evidence.outcome.icmp if evidence.outcome is not None else None
    return icmp is not None and icmp.origin == "router"


# What lies before each place of a story.
_BEFORE: Final[tuple[Place, ...]] = (
    "source", "path", "destination", "destination", "return-path", "source",
)  # fmt: skip
# Of a request that was answered or refused only the first ones count: its way there.
_THERE = 3
# What may be made on the way there.
_NARROWED = ("reset", "false-open", "port-unreach", "proto-unreach", "{icmp}")
# A service that keeps quiet looks like the destination's firewall, a dead host like the path.
_ALIKE: Final[dict[Place, Place]] = {"service": "destination", "host": "path"}


def _list_left(story: Story, *, silent: bool) -> frozenset[Place]:
    """List where it may end: behind the last place that saw it, up to the first that did not."""
    seen = [place.seen for _, place in story.places()][: None if silent else _THERE]
    first = max((at + 1 for at, sight in enumerate(seen) if sight == "yes"), default=0)
    last = next((at for at in range(first, len(seen)) if seen[at] == "no"), len(seen) - 1)
    return frozenset(_BEFORE[first : last + 1])


def _fill_story(row: VerdictRow, evidence: Evidence) -> Story:
    """Give the story with what other facts tell of it.

    A hop that answered a TTL walk shows that packets leave the source; a reset that lost a hop was
    not made there. So does an IPv4 echo request
    that was sent without an error: an OUTPUT chain that drops it makes the send fail. For IPv6 the
    send may succeed (docs/network-facts.md, section 1).
    """
    story = _tell_story(evidence)
    echo = evidence.flow.block.protocol == "icmp" and ":" not in evidence.address
    walked = evidence.trace is not None and evidence.trace.last_hop is not None
    if story.source_out.seen == "unknown" and row.reason == "no-response" and (walked or echo):
        story = replace(story, source_out=replace(story.source_out, seen="yes"))
    far = evidence.reset.full_ttl is False
    if story.source_out.seen == "unknown" and row.reason == "reset" and far:
        story = replace(story, source_out=replace(story.source_out, seen="yes"))
    return fill_counted(story, evidence)


def _tell_story(evidence: Evidence) -> Story:
    """Give what recorders and the destination's listener saw."""
    story, witness = evidence.story or Story(), evidence.witness or Witness()
    if witness.socket and story.socket.seen == "unknown":
        return replace(story, socket=replace(story.socket, seen="yes"))
    return story


def _exclude_places(places: tuple[Place, ...], *excluded: Place) -> tuple[Place, ...]:
    """Give the places without the excluded ones; all of them where nothing would be left."""
    return tuple(place for place in places if place not in excluded) or places


def _rejected_by(row: VerdictRow, evidence: Evidence, outcome: Outcome) -> str | None:
    if row.verdict not in ("blocked", "inconclusive"):
        return None
    if outcome.refusal is not None:
        return outcome.answered_by
    if outcome.icmp is None:
        return None
    if row.where == ("service",):
        return None  # no process holds the port there
    if row.state == "unreachable" and row.reason not in ("net-unreach", "routing-loop"):
        return None  # the offender reports a dead neighbour, or is not who should answer
    came = evidence.story.destination_in.seen if evidence.story is not None else "unknown"
    if outcome.icmp.origin == "destination" and came == "no":
        return None  # a translation put the destination's address there
    return outcome.icmp.offender


def _collect_warnings(evidence: Evidence, outcome: Outcome, result: Result) -> tuple[str, ...]:
    listener, witness = evidence.listener, evidence.witness
    # Of another run's listener, whatever it said, nobody expects the service.
    other_run = holder_word(evidence, live=False) == "other-run"
    found = [] if other_run else warn_of_service(evidence)
    name = evidence.flow.destination.name
    if listener.state == "loopback" and listener.owner and result.expect != "denied":
        found.append(f"on {name} the port is held on loopback only: {listener.owner}")
    if listener.nat:
        found.append(
            f"{name} does not have the address {evidence.address}: either the inventory's address "
            "is wrong, or it is translated (NAT)"
        )
    if evidence.slow_start:
        found.append(SLOW_START)
    if witness is not None and witness.seen_from is not None:
        found.append(
            f"the source address is translated: {name} saw it come from {witness.seen_from}"
        )
    elif evidence.sent_from is not None and result.verdict != "pass":
        found.append(
            f"{evidence.flow.source.name} sends from {evidence.sent_from}, which the inventory "
            "does not have: firewalls see that address"
        )
    # What a firewall of the destination stops says so itself.
    is_said = listener.note == UNDIALLED and result.where == ("destination",)
    if listener.state == "ours" and listener.note and not is_said:
        found.append(f"{name}: {listener.note}")
    return tuple(found)


def _apply_rules(result: Result, evidence: Evidence, rules: Rules) -> Result:
    """Apply ``--strict``, and ``--live`` of a run or a row; none touches what must not answer."""
    if result.expect == "denied":
        return result
    unheld = result.state == "closed" and result.where == ("service",)
    if must_run(evidence, rules.live) and (result.proof == "refusal" or unheld):
        existing, listener = evidence.flow.block.existing, evidence.listener
        why = SAID_EXISTING if existing else SAID_LIVE
        return replace(
            result,
            verdict="blocked",
            reason="nothing-listens" if existing else result.reason,
            proof="none",
            where=("service",),
            because=f"{result.because}; {why}",
            holder=listener.owner if listener.state == "loopback" else None,
        )
    doubted = evidence.maker is not None and not evidence.maker.own and result.state == "closed"
    if must_run(evidence, rules.live) and doubted and result.verdict == "inconclusive":
        # Whoever refuses it: the flow to a service that must be there does not get through.
        there: tuple[Place, ...] = tuple(sorted({*result.where, "service"}))
        return replace(result, verdict="blocked", where=there)
    if result.reason == "unknown-holder" and evidence.given_up_by is not None:
        because = (
            f"{result.because}; and {evidence.given_up_by}, a router on the way, says that nobody "
            f"answers for {evidence.address}, so that something on the way may have accepted it"
        )
        return replace(result, where=("host", "path", "service"), because=because)
    if result.reason == "unknown-holder" and evidence.maker and not evidence.maker.own:
        because = f"{result.because}; and {evidence.maker.doubt}"
        return replace(result, where=("path", "service"), because=because)
    if rules.strict and result.verdict == "pass" and result.proof in ("refusal", "handshake"):
        because = f"{result.because}; with --strict that is no proof"
        places: tuple[Place, ...] = ("destination", "path", "service")
        return replace(result, verdict="inconclusive", where=places, because=because)
    return result

"""A run's findings, or a plan before any packet → the fewest rules that open exactly that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.firewall import (
    RULE_PLACES,
    Action,
    Enforcer,
    FirewallRequest,
    FirewallRule,
    RuleNeed,
    Unmended,
)
from netprobe.model.plan import PATH_MTU, Block, Plan
from netprobe.model.ports import text as ports_text
from netprobe.model.result import PORTLESS, Also, Finding, Result
from netprobe.model.run import RunInfo, info_before
from netprobe.request import mends
from netprobe.request.rules import AskedFlow, RequestWishes, make_rules
from netprobe.request.safe import check_words, digest_of
from netprobe.request.unprobed import list_unprobed

# Verdicts of results that no finding holds and no rule is asked for, and what to do about them.
_LEFT_OUT = {
    "inconclusive": "The evidence allows both. Run again with agents at both ends, or ask all the "
    "same: --include inconclusive.",
    "not-tested": "Nobody could look: see what the run says of these flows.",
}
# Of inconclusive flows that were to be asked for, too.
_NO_RULE = "No rule is known to help: see what the run says of these flows."
# How many flows a finding has stands at the end of its title.
_COUNT = re.compile(r" \([\d,]+ flows?\)$")


def request_of_run(
    info: RunInfo,
    findings: Sequence[Finding],
    doubtful: Iterable[Result],
    path: str,
    wishes: RequestWishes,
) -> FirewallRequest:
    """Ask for what a run found blocked; ``findings`` are those of its report, in their order.

    ``doubtful`` are its results without a finding, which are asked for only where it is wished.
    """
    asked: list[AskedFlow] = []
    unmended: list[Unmended] = []
    documents = _documents_of(info)
    for finding in findings:
        found = list(_ask_for_finding(finding, wishes))
        members = [one for one in finding.members if not one.is_excused]
        if found:
            asked += found
        elif members and (finding.verdict != "exposed" or "exposed" in wishes.include):
            flows = sum(one.port_count for one in members)
            title = _COUNT.sub("", finding.title)
            unmended.append(Unmended(title, finding.advice, flows))
    unmended += _leave_out_unprobed(info)
    asked += (
        _ask_for_result(one, None, mends.enforcers_of(one))
        for one in _choose_doubtful(doubtful, unmended, wishes)
    )
    asked = [_name_documents(one, documents) for one in asked]
    why_none = _explain_absence(findings, wishes)
    made = _finish_request(info, asked, unmended, path, wishes, why_none)
    return replace(made, unprobed=tuple(list_unprobed(info)))


def _name_documents(one: AskedFlow, documents: Mapping[str, str]) -> AskedFlow:
    need, *also = (
        replace(need, document=documents.get(need.matrix, "")) for need in (one.need, *one.also)
    )
    return one._replace(need=need, also=tuple(also))


def _leave_out_unprobed(info: RunInfo) -> Iterator[Unmended]:
    """Give what is covered by flows that fail: no rule is asked for what nobody probed."""
    for group in info.coverage.unprobed if info.coverage else ():
        if group.decides and group.by_verdict == "blocked":
            wire = " ".join(filter(None, (group.protocol, ports_text(group.ports))))
            ends = f"from zone {group.from_zone} to zone {group.to_zone}"
            title = f"{group.flows:,} flows that were not probed: {wire} {ends} fails where it was"
            words = f"Allow {wire} {ends}: all hosts of these zones, not only those of the rules."
            yield Unmended(f"not asked for: {title}", words, 0)


def _explain_absence(findings: Iterable[Finding], wishes: RequestWishes) -> str:
    """Say why there may be nothing to ask for, beside what no rule will mend."""
    flows: Counter[str] = Counter()
    for one in (member for finding in findings for member in finding.members):
        flows[""] += one.port_count
        if one.is_excused:
            flows[_word_excuse(one)] += one.port_count
        elif one.verdict == "exposed" and "exposed" not in wishes.include:
            flows["exposed (--include exposed asks to close them)"] += one.port_count
    if not flows:
        return "no flow is known to be blocked"
    told = [
        f"{count:,} {'flow is' if count == 1 else 'flows are'} {what}"
        for what, count in flows.items()
        if what
    ]
    return ", ".join(told) or "no rule will help"


def _word_excuse(one: Result) -> str:
    if one.spared is not None:
        return "spared (another row is enough)"
    return "accepted" if one.accepted is not None else "waived"


def _is_wished(enforcers: Iterable[Enforcer], wishes: RequestWishes) -> bool:
    """Tell whether it is for the place that ``--at`` names."""
    return any(who.is_at(wishes.at) for who in enforcers)


def _documents_of(info: RunInfo) -> Mapping[str, str]:
    """Give the title of the document that each matrix was written from."""
    return {one.name: one.document.get("title", "") for one in info.matrices}


def _choose_doubtful(
    doubtful: Iterable[Result], unmended: list[Unmended], wishes: RequestWishes
) -> Iterator[Result]:
    """Give the inconclusive results that are asked for; count what is left out."""
    left: dict[tuple[str, str], int] = {}
    for one in doubtful:
        is_doubt = one.verdict == "inconclusive"
        helps = mends.may_mend(one) and bool(mends.enforcers_of(one))
        if is_doubt and helps and "inconclusive" in wishes.include and not one.is_excused:
            yield one
        elif one.verdict in _LEFT_OUT:
            hopeless = one.verdict in wishes.include or (is_doubt and not helps)
            key = (one.verdict, _NO_RULE if hopeless else _LEFT_OUT[one.verdict])
            left[key] = left.get(key, 0) + one.port_count
    for (verdict, words), flows in left.items():
        unmended.append(Unmended(f"not asked for: {verdict}", words, flows))


def _finish_request(
    info: RunInfo,
    asked: Sequence[AskedFlow],
    unmended: Iterable[Unmended],
    of: str,
    wishes: RequestWishes,
    why_none: str,
) -> FirewallRequest:
    """Make the rules, and name the request by them: on a device two requests never mix theirs.

    Rules that are left out keep their numbers, so that tickets and devices name the same ones.
    ``why_none`` is said where there is no rule at all. Raises RequestError where rules are wished
    of a router that none is for.
    """
    addresses = {host.name: host.addresses for host in info.hosts}
    rules, unknown = make_rules(asked, addresses, wishes)
    check_words(rules)
    kept = tuple(rule for rule in rules if _is_wished(rule.enforcers, wishes))
    if rules and not kept:
        why_none = _word_elsewhere(rules, wishes.at)
    return FirewallRequest(
        id=digest_of(map(_word_match, rules)),
        of=of,
        started_at=info.started_at,
        matrices=info.matrices,
        roles={host.name: host.roles for host in info.hosts},
        rules=kept,
        why_none=why_none,
        unmended=(*unmended, *unknown),
        asked=tuple(
            one.result
            for one in asked
            if one.result is not None and _is_wished(one.enforcers, wishes)
        ),
        ticket=wishes.ticket,
        into=wishes.into,
        one_per_row=wishes.one_per_row,
        at=wishes.at,
    )


def _word_elsewhere(rules: Iterable[FirewallRule], at: str | None) -> str:
    """Say where the rules are if none is at this place. Raises RequestError for a router.

    A mistyped address would give an empty request, which reads as if nothing were blocked.
    """
    places = dict.fromkeys(who.router or who.place for rule in rules for who in rule.enforcers)
    words = f"the rules are for {', '.join(places)}"
    if at in RULE_PLACES:
        return f"none is for {at}, {words}"
    raise RequestError(f"--at {at}: no rule is for this router, {words}")


def _word_match(rule: FirewallRule) -> str:
    """Give what a rule lets through and where, without what is only told about it."""
    parts = (rule.id, rule.action, rule.protocol, rule.ports, rule.sources, rule.destinations)
    return repr((*parts, rule.answers, rule.enforcers))


def _ask_for_finding(finding: Finding, wishes: RequestWishes) -> Iterator[AskedFlow]:
    """Ask for the members of a finding; nothing where no rule would help."""
    speaker = mends.speaker_of(finding)
    if finding.verdict == "exposed":
        if "exposed" in wishes.include:
            closing = (Enforcer("destination"),)
            yield from (
                _ask_for_result(one, finding, closing, action="deny")
                for one in finding.members
                if not one.is_excused
            )
        return
    if not mends.may_mend(speaker):
        return
    for one, router in zip(finding.members, mends.routers_of(finding.members), strict=True):
        placed = replace(one, where=finding.where, rejected_by=router)
        answers = mends.is_of_answers(placed)
        enforcers = mends.enforcers_of(placed)
        if answers and wishes.stateless:
            enforcers = enforcers or (Enforcer("path"),)
        if enforcers and not one.is_excused and mends.may_mend(one):
            yield _ask_for_result(one, finding, enforcers, answers=answers)


def _ask_for_result(
    result: Result,
    finding: Finding | None,
    enforcers: tuple[Enforcer, ...],
    *,
    action: Action = "allow",
    answers: bool = False,
) -> AskedFlow:
    return AskedFlow(
        source=result.source,
        destination=result.destination,
        address=result.address,
        protocol=result.protocol,
        ports=((result.port or 0, result.end_port or 0),),
        enforcers=enforcers,
        need=RuleNeed(result.matrix, result.requirement, purpose=result.purpose, row=result.row),
        action=action,
        answers=answers,
        finding=0 if finding is None else finding.number,
        packets=None if finding is None else finding.evidence,
        result=result,
        also=_needs_of(result.also),
    )


def _needs_of(rows: Iterable[Also]) -> tuple[RuleNeed, ...]:
    return tuple(RuleNeed(one.matrix, one.requirement, purpose=one.purpose) for one in rows)


def request_of_plan(plan: Plan, started_at: str, wishes: RequestWishes) -> FirewallRequest:
    """Ask for every required flow; nobody knows yet who stops it, so ``at`` says who shall open it.

    ``started_at`` is UTC, ISO 8601 with ``Z``. Without ``at`` it is the firewall on the way.
    """
    plan = replace(plan, blocks=(*plan.blocks, *plan.unable))
    info = info_before(plan, started_at)
    known = (Enforcer(place) for place in RULE_PLACES if place == (wishes.at or "path"))
    at = next(known, Enforcer("path", wishes.at))
    documents = _documents_of(info)
    asked = [
        _name_documents(one, documents)
        for block in plan.blocks
        for one in _ask_for_block(block, at, wishes)
    ]
    why_none = "the plan requires nothing that a firewall stands between"
    made = _finish_request(info, asked, (), "the plan", wishes, why_none)
    return replace(made, unprobed=tuple(list_unprobed(info, asked=True)))


def _ask_for_block(block: Block, at: Enforcer, wishes: RequestWishes) -> Iterator[AskedFlow]:
    requirement = block.requirement
    denied = requirement.expect == "denied"
    if block.waiver is not None or requirement.id == PATH_MTU:
        return
    if denied and "exposed" not in wishes.include:
        return
    action: Action = "deny" if denied else "allow"
    need = RuleNeed(block.matrix, requirement.id, purpose=requirement.purpose, row=requirement.row)
    also, notes = _needs_of(block.also), tuple(_note_requirement(block))
    for flow in block.flows():
        if flow.source.name != flow.destination.name:
            yield AskedFlow(
                source=flow.source.name,
                destination=flow.destination.name,
                address=flow.address.text,
                protocol=block.protocol,
                ports=block.ports or PORTLESS,
                enforcers=(at,),
                need=need,
                action=action,
                also=also,
                notes=notes,
            )


def _note_requirement(block: Block) -> Iterator[str]:
    """Note what a rule between the hosts does not say of a line."""
    requirement = block.requirement
    name = f"{block.matrix}, {requirement.id}"
    if requirement.optional:
        enough = f": one of {requirement.any_of} is enough" if requirement.any_of else ""
        yield f"optional ({name}){enough}"
    if requirement.multicast is not None:
        yield (
            f"sent to the multicast group {requirement.multicast} in truth ({name}): the firewalls "
            "of both hosts must let packets to the group through, which this rule does not"
        )

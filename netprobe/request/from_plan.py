"""A plan → the rules for everything that it requires: what teams ask for weeks ahead."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.firewall import (
    RULE_PLACES,
    Action,
    Enforcer,
    FirewallRequest,
    RuleNeed,
    Unmended,
)
from netprobe.model.plan import PATH_MTU, Block, Plan
from netprobe.model.run import info_before
from netprobe.request.build import documents_of, finish_request
from netprobe.request.rules import PORTLESS, AskedFlow, RequestWishes


def request_of_plan(plan: Plan, started_at: str, wishes: RequestWishes) -> FirewallRequest:
    """Ask for every required flow; nobody knows yet who stops it, so ``at`` says who shall open it.

    ``started_at`` is UTC, ISO 8601 with ``Z``. Without ``at`` it is the firewall on the way.
    """
    info = info_before(plan, started_at)
    known = (Enforcer(place) for place in RULE_PLACES if place == (wishes.at or "path"))
    at = next(known, Enforcer("path", wishes.at))
    documents = documents_of(info)
    asked = [
        one
        for block in plan.blocks
        for one in _ask_for_block(block, at, documents.get(block.matrix, ""), wishes)
    ]
    skipped = [item for item in plan.skipped if item.source != item.destination]
    words = f"not asked for: what the plan skips ({len(skipped):,})"
    unmended = [Unmended(words, _SKIPPED, 0)] if skipped else []
    why_none = "the plan requires nothing that a firewall stands between"
    return finish_request(info, asked, unmended, "the plan", wishes, why_none)


_SKIPPED = (
    "`netprobe plan` lists them with the reasons: conditions, roles without hosts, "
    "sources that nobody can probe from (vantage: none)."
)


def _ask_for_block(
    block: Block, at: Enforcer, document: str, wishes: RequestWishes
) -> Iterator[AskedFlow]:
    requirement = block.requirement
    denied = requirement.expect == "denied"
    if block.waiver is not None or requirement.id == PATH_MTU:
        return
    if denied and "exposed" not in wishes.include:
        return
    action: Action = "deny" if denied else "allow"
    need = RuleNeed(block.matrix, requirement.id, document, requirement.purpose, requirement.row)
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
            )

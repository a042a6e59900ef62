"""The steps of an explanation as far as the source sees them: who looks, the way out, the probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from netprobe.agent.wire.host_messages import Resolved, Routed
from netprobe.explain.seen_steps import word_leaving
from netprobe.explain.view import BY_VERDICT, View
from netprobe.model.notes import LookNote, ResetNote, word_resolved, word_route
from netprobe.model.story import Step, TrailStatus


def agents_step(view: View) -> Step:
    """Show the agents at both ends, and their rights."""
    hosts = dict.fromkeys((view.source.name, view.destination.name))
    words = tuple(_agent_words(view, name) for name in hosts)
    reports = {name: view.reports.get(name) for name in hosts}
    states = {name: "none" if one is None else one.state for name, one in reports.items()}
    status: TrailStatus = "ok"
    if states[view.source.name] != "agent":
        status = "bad"
    elif "failed" in states.values() or "lost" in states.values():
        status = "doubt"
    return Step("agents", status, words, {"states": states})


def _agent_words(view: View, name: str) -> str:
    report = view.reports.get(name)
    if report is None or report.state == "none":
        return f"{name}: no agent (vantage: none); what arrives there cannot be seen"
    if report.state != "agent":
        return f"{name}: no agent: {report.words.removeprefix(f'{name}: ')}"
    kernel = report.facts.kernel or "of an unknown version"
    rights = "with raw sockets and captures" if report.privileged else "without raw sockets"
    cost = f"; {'; '.join(report.cost)}" if report.cost else ""
    return f"{name}: Linux {kernel}, Python {report.python}, user {report.user}, {rights}{cost}"


def name_step(view: View) -> Step:
    """Show the name, as the source resolves it."""
    asked = view.evidence.flow.address
    if asked.family is not None:
        return Step("name", "not-needed", (f"{asked.text} is an address",))
    answer = view.note(Resolved)
    if answer is None:
        return Step("name", "not-possible", (view.no_agent(view.source),))
    words = word_resolved(view.source.name, asked.text, answer)
    return Step("name", "ok" if answer.addresses else "bad", (words,), wire_facts(answer))


def route_step(view: View) -> Step:
    """Show the source's own route, and the address that it sends from."""
    route = view.further.route
    if route is None:
        return Step("route", "not-possible", (view.unasked(),))
    words = word_route(view.source.name, view.address, route)
    return Step("route", "bad" if route.failure else "ok", (words,), wire_facts(route))


def wire_facts(answer: Routed | Resolved) -> dict[str, Any]:
    """Give an answer for programs, without the wire's own number."""
    return {key: value for key, value in answer._asdict().items() if key != "id"}


def listener_step(view: View) -> Step:
    """Show the holder of the port at the destination while it is probed."""
    listener = view.evidence.listener
    name, wire = view.destination.name, view.wire
    facts = {"state": listener.state, "owner": listener.owner, "nat": listener.nat,
             "note": listener.note}  # fmt: skip
    if view.protocol == "icmp":
        return Step("listener", "not-needed", ("the kernel itself answers echo requests",))
    if listener.state == "unknown" and view.result.expect == "denied":
        words = f"{wire} must not answer, so no listener is opened on {name}"
        return Step("listener", "not-needed", (words,), facts)
    if listener.state in ("unknown", "lost"):
        words = f"who holds {wire} cannot be known: {_why_unknown(view)}"
        return Step("listener", "not-possible", (words,), facts)
    status, words = _describe_listener(view)
    return Step("listener", status, (words, *_say_nat(view)), facts)


def _why_unknown(view: View) -> str:
    if view.evidence.listener.state == "lost":
        return f"the agent of {view.destination.name} was lost meanwhile"
    if view.has_agent(view.destination):
        return f"the source could not be probed from ({view.result.reason})"
    return view.no_agent(view.destination)


def _describe_listener(view: View) -> tuple[TrailStatus, str]:
    listener, name, wire = view.evidence.listener, view.destination.name, view.wire
    if view.result.reason == "port-taken" and listener.owner:
        return "bad", f"on {name} {wire} is taken by {listener.owner}; it is probed as it is"
    if listener.state == "live":
        return "ok", f"on {name} {wire} is held by {listener.owner}; it is probed as it is"
    if listener.state == "loopback":
        return "bad", f"on {name} {wire} is held on loopback only, by {listener.owner}"
    if listener.state in ("closed", "bound"):
        note = listener.note
        why = f"no listener of netprobe: {note}" if note else "netprobe opened none"
        status: TrailStatus = "ok" if listener.state == "closed" else "doubt"
        return status, f"nothing listens on {name} {wire}, and {why}"
    if listener.beside_loopback:
        return "doubt", (
            f"on {name} {wire} is held on loopback, by {listener.beside}; netprobe's own listener "
            f"is bound to {view.address}"
        )
    if listener.note:
        return "doubt", f"netprobe's listener on {name} {wire} is bound, but {listener.note}"
    where = "all its addresses" if listener.nat else view.address
    # By some flow, or by the agent's own dial, where it was asked what it saw.
    works = "" if view.evidence.witness is None else f", and works: {name} or a flow reached it"
    return "ok", (
        f"nothing held {wire} on {name}; netprobe's own listener is bound to {where}{works}"
    )


def _say_nat(view: View) -> Iterator[str]:
    if view.evidence.listener.nat:
        yield (
            f"{view.destination.name} does not have {view.address}: either the inventory's address "
            "is wrong, or it is translated on the way (NAT)"
        )


def probe_step(view: View) -> Step:
    """Show the packets sent, and everything that came back, ICMP errors included."""
    outcome = view.evidence.outcome
    looks = view.evidence.notes(LookNote)
    if outcome is None:
        reason, words = view.evidence.untested or ("not-tested", "nobody looked")
        return Step("probe", "not-possible", (words,), {"reason": reason, "looks": []})
    if outcome.operation == "resolve":
        words = f"nothing was sent: {outcome.said or outcome.failure}"
        return Step("probe", "not-possible", (words,), {"looks": []})
    if not looks:
        # Asked over a stream of its own, which leaves no probe order.
        return Step("probe", BY_VERDICT[view.result.verdict], (view.result.because,))
    probe = view.evidence.flow.block.requirement.probe
    packet = None if probe is None else str(probe)
    lines = [look.words(outcome.said, packet) for look in looks]
    lines = [lines[0], *(f"again: {line}" for line in lines[1:])]
    facts = {"looks": [look.facts() for look in looks], "forged": view.evidence.reset.forged}
    return Step("probe", BY_VERDICT[view.result.verdict], tuple(lines), facts)


def reset_step(view: View) -> Step:
    """Tell whether a reset is the destination's: by its TTL, and by what leaves the source."""
    outcome, origin = view.evidence.heard, view.evidence.reset
    is_reset = outcome is not None and outcome.failure == "refused" and outcome.icmp is None
    if outcome is None or not is_reset or view.protocol != "tcp":
        return Step("reset", "not-needed", ("no reset came back",))
    if view.result.expect == "denied":
        return Step("reset", "not-needed", ("any refusal will do where nothing must answer",))
    left = view.evidence.has_left
    facts: dict[str, Any] = {"forged": origin.forged, "left_host": left}
    for reset in view.story.errors:
        if reset.type is None and (reset.left or reset.not_left):
            facts["forged"] = reset.left != view.destination.name
            return Step("reset", "bad" if reset.not_left else "ok", (word_leaving(reset),), facts)
    if origin.own:
        why = f"it came in by {view.source.name}'s loopback device: its own firewall made it"
        return Step("reset", "bad", (why,), facts)
    note = view.note(ResetNote)
    if note is None or note.min_ttl is None:
        why = "whose reset it is cannot be checked: no TTL of a genuine answer is known"
        return Step("reset", "not-possible", (why,), facts)
    known = {"min_ttl": note.min_ttl, "refused_again": note.refused_again,
             "answer_ttl": note.answer_ttl, "full_ttl": origin.full_ttl}  # fmt: skip
    facts |= {name: value for name, value in known.items() if value is not None}
    by_word: dict[bool | None, TrailStatus] = {False: "ok", True: "bad", None: "doubt"}
    words = [*note.words(view.address, origin.full_ttl)]
    maker = view.evidence.maker
    if maker is not None and not maker.own:
        words.append(f"{maker.doubt}: whose reset it is nobody can say")
        return Step("reset", "doubt", tuple(words), facts)
    words.append(_conclude_reset(view, origin.forged, left))
    return Step("reset", by_word[origin.forged], tuple(words), facts)


def _conclude_reset(view: View, forged: bool | None, left: bool | None) -> str:
    if forged is None:
        return "so nobody can say whose reset it is"
    if not forged:
        return f"so the reset came from the distance of {view.address}: it is the destination's own"
    if left is False:
        return f"no SYN left {view.source.name}: its own firewall made the reset"
    return f"so the reset came from nearer than {view.address}: something on the way forged it"

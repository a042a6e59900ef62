"""The steps of an explanation at the far end and beside the flow: arrival, way back, controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from netprobe.explain.looks import outcome_words
from netprobe.explain.near_steps import route_facts, route_words, unasked
from netprobe.explain.view import NO_RECORDER, View
from netprobe.model.evidence import Outcome, Witness
from netprobe.model.notes import InterceptionNote
from netprobe.model.story import Story
from netprobe.model.trail import Step, TrailEntry, TrailStatus


def arrival_step(view: View) -> Step:
    """Tell whether the destination's recorder and listener saw the requests."""
    witness, story = view.evidence.witness, view.evidence.story
    name = view.destination.name
    if not view.has_agent(view.destination):
        return Step("arrival", "not-possible", (view.no_agent(view.destination),))
    if witness is None and story is None:
        said = f"{name}'s agent noted nothing: {_why_unwitnessed(view)}"
        return Step("arrival", "not-possible", (said,))
    witness, story = witness or Witness(), story or Story()
    facts = {
        "socket": _is_at_socket(witness, story),
        "interface": story.destination_in.seen,
        "seen_from": witness.seen_from,
    }
    words = [*_socket_words(view, _is_at_socket(witness, story)), *_interface_words(view, story)]
    if witness.seen_from is not None:
        words.append(f"it came from {witness.seen_from}: the source address is translated")
    words = words or [_why_unwitnessed(view)]
    return Step("arrival", _arrival_status(view, witness, story), tuple(words), facts)


def _why_unwitnessed(view: View) -> str:
    if view.result.verdict == "pass":
        return "its own answer says enough"
    if view.protocol == "icmp" or view.evidence.listener.state != "ours":
        return "no listener of netprobe is there, and no packet recorder ran"
    return "no probe was sent"


def _arrival_status(view: View, witness: Witness, story: Story) -> TrailStatus:
    came = story.destination_in.seen
    if _is_at_socket(witness, story) or view.result.verdict == "pass":
        return "ok"
    if came == "unknown" and view.evidence.listener.state != "ours":
        return "not-possible"
    if came == "yes" and view.evidence.listener.state != "ours":
        return "ok"
    return "bad"


def _is_at_socket(witness: Witness, story: Story) -> bool:
    """Tell whether a socket got the probe: its listener's word, or a SYN-ACK that left."""
    return witness.socket or story.socket.seen == "yes"


def _socket_words(view: View, got_it: bool) -> Iterator[str]:
    if view.evidence.listener.state == "ours":
        got = "received the probe" if got_it else "never got the probe"
        yield f"netprobe's listener on {view.destination.name} {got}"


def _interface_words(view: View, story: Story) -> Iterator[str]:
    name, place = view.destination.name, story.destination_in
    if place.seen == "yes":
        times = "1 request" if place.count == 1 else f"{place.count} requests"
        yield f"{name}'s recorder saw {times} come in on {place.interface}, before its firewall"
    elif place.seen == "no":
        yield f"{name}'s recorder never saw a request come in"
    elif not view.recorded:
        yield NO_RECORDER
    elif view.evidence.story is None and view.result.verdict == "pass":
        return  # its answer says enough: nobody asked the recorder
    elif not view.captures(view.destination):
        yield f"no packet recorder on {name}: its agent may not (give it root: become: sudo)"
    else:
        yield f"whether a request came in is not known: {name}'s recorder saw nothing of the source"


def way_back_step(view: View) -> Step:
    """Show the destination's route to the source, and what became of its answers."""
    if not view.has_agent(view.destination):
        return Step("way-back", "not-possible", (view.no_agent(view.destination),))
    back = view.further.back
    witness = view.evidence.witness or Witness()
    story = view.evidence.story or Story()
    facts: dict[str, Any] = {
        "route": None if back is None else route_facts(back),
        "answer_left": story.destination_out.seen,
        "answer_arrived": story.source_in.seen,
        "reply_failure": witness.reply_failure,
    }
    routed, way = _route_back(view)
    answered, answers = _describe_answers(view)
    if not way and not answers:
        return Step("way-back", "not-possible", (unasked(view),), facts)
    status: TrailStatus = "bad" if "bad" in (routed, answered) else "ok"
    return Step("way-back", status, (*way, *answers), facts)


def _route_back(view: View) -> tuple[TrailStatus, tuple[str, ...]]:
    """Give the destination's own routing table, asked from the address that was probed."""
    back = view.further.back
    if back is None:
        return "ok", ()
    if view.evidence.listener.nat:
        # Asked about an address that it does not have, a kernel answers as for a blackhole.
        words = f"{view.destination.name} lacks {view.address}, so its way back is not known"
        return "ok", (words,)
    route = view.further.route
    sender = (route.source if route is not None else None) or view.source.name
    return route_words(view.destination, sender, back)


def _describe_answers(view: View) -> tuple[TrailStatus, list[str]]:
    """Describe the answers by recorders and by the listener's own errno."""
    story, witness = view.evidence.story or Story(), view.evidence.witness or Witness()
    left, came = story.destination_out.seen, story.source_in.seen
    words: list[str] = []
    if witness.reply_failure is not None:
        words.append(f"{view.destination.name}'s own answer fails there: {witness.reply_failure}")
    if left != "unknown":
        saw = "saw its answers leave" if left == "yes" else "saw no answer leave"
        words.append(f"{view.destination.name}'s recorder {saw}")
    if came != "unknown":
        saw = "saw an answer come in" if came == "yes" else "saw no answer come in"
        words.append(f"{view.source.name}'s recorder, before its firewall, {saw}")
    failed = witness.reply_failure is not None or left == "yes" or came == "yes"
    return ("bad" if failed and view.result.reason == "no-response" else "ok"), words


def control_step(view: View) -> Step:
    """Show the address's answers to echo requests and on unused ports."""
    controls = view.further.controls
    if not controls:
        return Step("control", "not-possible", (unasked(view),))
    names = {name: f"{name}, which nobody uses" for name in controls} | {"icmp": "icmp echo"}
    words = [f"{names[name]}: {outcome_words(one)}" for name, one in controls.items()]
    facts: dict[str, Any] = {name: _outcome_facts(one) for name, one in controls.items()}
    status: TrailStatus = "ok" if lives(view) else "doubt"
    opened = [name for name, one in controls.items() if name != "icmp" and one.answer is not None]
    intercepted = view.evidence.concluded == "intercepted"
    if opened or intercepted:
        status = "doubt"
    facts |= {"false_open": intercepted}
    return Step("control", status, (*words, *_open_checks(view)), facts)


def lives(view: View) -> bool:
    """Tell whether the destination itself said anything to the controls."""
    return any(_from_destination(one) for one in view.further.controls.values())


def _from_destination(outcome: Outcome) -> bool:
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination" and outcome.icmp.code != 1
    return outcome.answer == "echo"


def _open_checks(view: View) -> Iterator[str]:
    """Give the run's own checks of a port that opened without our listener's word."""
    note = view.note(InterceptionNote)
    if note is None:
        return
    ports = ", ".join(map(str, note.control_ports))
    words = "accept connections too" if note.control_opened else "do not accept connections"
    yield f"tcp {ports}, asked because {view.wire} opened: they {words}"
    if note.ttl is not None:
        opened = "opens too" if note.opened else "does not open"
        yield f"a connection whose packets only live for {note.ttl} hops {opened}"


def _outcome_facts(outcome: Outcome) -> dict[str, Any]:
    icmp = outcome.icmp
    return {
        "answer": outcome.answer, "failure": outcome.failure,
        "icmp": None if icmp is None else [icmp.type, icmp.code, icmp.offender],
        "ttl": outcome.ttl, "rtt_ms": outcome.rtt_ms,
    }  # fmt: skip


def path_mtu_step(view: View) -> Step:
    """Show the largest packet that the path carries unfragmented."""
    if view.source.name == view.destination.name:
        return Step("path-mtu", "not-needed", ("source and destination are one host",))
    if view.mtu is None or view.mtu[0].mtu is None:
        untested = view.mtu[0].untested if view.mtu is not None else None
        words = unasked(view) if untested is None else untested[1]
        return Step("path-mtu", "not-possible", (words,))
    evidence, result = view.mtu
    mtu = evidence.mtu
    assert mtu is not None
    facts = {
        "path_mtu_bytes": mtu.path, "needed": mtu.needed, "limited_by": mtu.limited_by,
        "limit": mtu.limit, "how": mtu.how or None,
    }  # fmt: skip
    by_verdict: dict[str, TrailStatus] = {"pass": "ok", "blocked": "bad"}
    status = by_verdict.get(result.verdict if mtu.path is not None else "", "not-possible")
    return Step("path-mtu", status, (result.because,), facts)


def checks_step(view: View) -> Step:
    """Show the follow-up checks that looked at the flow, as the run's trail has them."""
    facts = {name: _check_facts(entry) for name, entry in view.checks().items()}
    if not facts:
        return Step("checks", "not-needed", ("no follow-up check looked at the flow",))
    return Step("checks", "ok", tuple(_check_words(*item) for item in facts.items()), facts)


def _check_facts(entry: TrailEntry) -> dict[str, Any]:
    """Tell what a check noted in plain values; the steps tell of records and lists."""
    plain = {
        k: v for k, v in entry.facts().items() if v is None or isinstance(v, str | int | float)
    }
    return plain | {"elapsed_ms": entry.elapsed_ms}


def _check_words(name: str, facts: dict[str, Any]) -> str:
    *values, (_, elapsed_ms) = facts.items()
    return f"{name}: " + ", ".join(
        [f"{key} {value}" for key, value in values] + [f"{elapsed_ms} ms"]
    )

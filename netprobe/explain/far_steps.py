"""The steps of an explanation at the far end and beside the flow: arrival, way back, controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from netprobe.explain.near_steps import wire_facts
from netprobe.explain.view import NO_RECORDER, View
from netprobe.judge.words import word_root
from netprobe.model.balanced import BalancerFacts
from netprobe.model.evidence import Outcome, RehearsedFacts, Witness
from netprobe.model.multicast import MulticastFacts
from netprobe.model.notes import InterceptionNote, word_failure, word_route
from netprobe.model.quality import WaySamples
from netprobe.model.segment import SegmentFacts
from netprobe.model.story import Sight, Step, StoryPlace, TrailEntry, TrailStatus
from netprobe.probe.flows.reachability import is_answer


def arrival_step(view: View) -> Step:
    """Tell whether the destination's recorder and listener saw the requests."""
    evidence, name = view.evidence, view.destination.name
    if not view.has_agent(view.destination):
        return Step("arrival", "not-possible", (view.no_agent(view.destination),))
    if evidence.witness is None and evidence.story is None:
        said = f"{name}'s agent noted nothing: {_why_unwitnessed(view)}"
        return Step("arrival", "not-possible", (said,))
    witness, came = evidence.witness or Witness(), view.story.destination_in
    # Its listener's word, or a SYN-ACK that left.
    socket = witness.socket or view.story.socket.seen == "yes"
    facts = {"socket": socket, "interface": came.seen, "seen_from": witness.seen_from}
    words = [*_interface_words(view, came)]
    if evidence.listener.state == "ours":
        got = "received the probe" if socket else "never got the probe"
        words.insert(0, f"netprobe's listener on {name} {got}")
    if witness.seen_from is not None:
        words.append(f"it came from {witness.seen_from}: the source address is translated")
    status = _arrival_status(view, socket, came.seen)
    return Step("arrival", status, tuple(words) or (_why_unwitnessed(view),), facts)


def _why_unwitnessed(view: View) -> str:
    if view.result.verdict == "pass":
        return "its own answer says enough"
    if view.protocol == "icmp" or view.evidence.listener.state != "ours":
        return "no listener of netprobe is there, and no packet recorder ran"
    return "no probe was sent"


def _arrival_status(view: View, socket: bool, came: Sight) -> TrailStatus:
    if socket or view.result.verdict == "pass":
        return "ok"
    others: dict[Sight, TrailStatus] = {"unknown": "not-possible", "yes": "ok", "no": "bad"}
    return "bad" if view.evidence.listener.state == "ours" else others[came]


def _interface_words(view: View, place: StoryPlace) -> Iterator[str]:
    name = view.destination.name
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
        rights = word_root(name, sudo_failed=name in view.evidence.sudo_failed)
        yield f"no packet recorder on {name}: its agent may not; {rights}"
    else:
        yield f"whether a request came in is not known: {name}'s recorder saw nothing of the source"


def way_back_step(view: View) -> Step:
    """Show the destination's route to the source, and what became of its answers."""
    if not view.has_agent(view.destination):
        return Step("way-back", "not-possible", (view.no_agent(view.destination),))
    back, story = view.further.back, view.story
    failure = view.evidence.witness.reply_failure if view.evidence.witness is not None else None
    left, came = story.destination_out.seen, story.source_in.seen
    facts: dict[str, Any] = {
        "route": None if back is None else wire_facts(back),
        "answer_left": left, "answer_arrived": came, "reply_failure": failure,
    }  # fmt: skip
    words = (*_route_back(view), *_describe_answers(view, failure, left, came))
    if not words:
        return Step("way-back", "not-possible", (view.unasked(),), facts)
    failed = failure is not None or left == "yes" or came == "yes"
    unrouted = back is not None and back.failure is not None and not view.evidence.listener.nat
    is_bad = unrouted or (failed and view.result.reason == "no-response")
    return Step("way-back", "bad" if is_bad else "ok", words, facts)


def _route_back(view: View) -> Iterator[str]:
    """Give the destination's own routing table, asked from the address that was probed."""
    back, route = view.further.back, view.further.route
    if back is None:
        return
    if view.evidence.listener.nat:
        # Asked about an address that it does not have, a kernel answers as for a blackhole.
        yield f"{view.destination.name} lacks {view.address}, so its way back is not known"
    else:
        sender = (route.source if route is not None else None) or view.source.name
        yield word_route(view.destination.name, sender, back)


def _describe_answers(view: View, failure: str | None, left: Sight, came: Sight) -> Iterator[str]:
    """Describe the answers by the listener's own errno, and by recorders."""
    source, destination = view.source.name, view.destination.name
    if failure is not None:
        yield f"{destination}'s own answer fails there: {failure}"
    if left != "unknown":
        saw = "saw its answers leave" if left == "yes" else "saw no answer leave"
        yield f"{destination}'s recorder {saw}"
    if came != "unknown":
        saw = "saw an answer come in" if came == "yes" else "saw no answer come in"
        yield f"{source}'s recorder, before its firewall, {saw}"


def control_step(view: View) -> Step:
    """Show the address's answers to echo requests and on unused ports."""
    controls = view.further.controls
    if not controls:
        return Step("control", "not-possible", (view.unasked(),))
    names = {name: f"{name}, which nobody uses" for name in controls} | {"icmp": "icmp echo"}
    names |= {name: f"{name}, which the matrix requires, too" for name in view.further.beside}
    words = [f"{names[name]}: {_outcome_words(one)}" for name, one in controls.items()]
    facts: dict[str, Any] = {name: _outcome_facts(one) for name, one in controls.items()}
    used = ("icmp", *view.further.beside)
    opened = any(one.answer is not None for name, one in controls.items() if name not in used)
    intercepted = view.evidence.concluded == "intercepted"
    is_odd = opened or intercepted or not lives(view)
    facts["false_open"] = intercepted
    return Step("control", "doubt" if is_odd else "ok", (*words, *_open_checks(view)), facts)


def lives(view: View) -> bool:
    """Tell whether the destination itself said anything to the controls.

    A port that is required counts as in a run, whose other flows it stands for.
    """
    answers = (view.further.controls[name] for name in view.further.beside)
    if view.evidence.concluded != "intercepted" and any(map(is_answer, answers)):
        return True
    return any(
        one.answer == "echo" if one.icmp is None
        else one.icmp.origin == "destination" and one.icmp.code != 1
        for one in view.further.controls.values()
    )  # fmt: skip


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


def _outcome_words(outcome: Outcome) -> str:
    """Describe the outcome of one look beside the flow."""
    ttl = f", TTL {outcome.ttl}" if outcome.ttl is not None else ""
    if outcome.answer is not None:
        return f"{'answered' if outcome.answer == 'echo' else 'accepted the connection'}{ttl}"
    # One datagram without a word back has no failure: nobody owes an answer.
    return word_failure(outcome.failure or "no-answer", outcome.icmp)


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
        words = view.unasked() if untested is None else untested[1]
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


def rehearsal_step(view: View) -> Step:
    """Show what passed where the agents played a part of the platform."""
    result, seen = view.result, view.evidence.rehearsed
    if seen is None:
        return Step("rehearsal", "not-possible", (result.because,))
    status: TrailStatus = "ok" if result.verdict == "pass" else "bad"
    words = (result.because, *result.warnings)
    return Step("rehearsal", status, words, _list_rehearsed(seen))


def _list_rehearsed(
    seen: RehearsedFacts,
) -> dict[str, Any]:
    if isinstance(seen, SegmentFacts | MulticastFacts):
        return cast("dict[str, Any]", _list_plainly(seen))
    if isinstance(seen, WaySamples):
        return {
            "by": seen.by,
            "rtts_us": list(seen.rtts_us),
            "lost": seen.lost,
            "refused": seen.refused,
        }
    if isinstance(seen, BalancerFacts):
        checks = [one._asdict() for one in seen.checks]
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in seen._asdict().items()}
        removals = [one._asdict() for one in seen.removals]
        held = None if seen.held is None else seen.held._asdict()
        return {**plain, "checks": checks, "removals": removals, "held": held}
    trial = seen.trial
    return {
        "network": seen.network, "mtu": seen.mtu, "echo": trial.echo, "opened": trial.opened,
        "full": trial.full, "bytes": trial.bytes, "took_us": trial.took_us,
        "device": seen.near.device, "driver": seen.near.driver, "mended_at": seen.mended_at,
    }  # fmt: skip


def _list_plainly(value: object) -> object:
    """Give records as mappings and tuples as lists, as deep as they go."""
    if isinstance(value, tuple):
        as_mapping = getattr(value, "_asdict", None)
        if as_mapping is not None:
            return {name: _list_plainly(one) for name, one in as_mapping().items()}
        return [_list_plainly(one) for one in value]
    return value


def checks_step(view: View) -> Step:
    """Show the follow-up checks that looked at the flow, as the run's trail has them."""
    trail = (entry for entry in view.evidence.trail if entry.name not in ("probe", "name"))
    facts = {entry.name: _check_facts(entry) for entry in trail}
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
    shown = [_value_words(key, value) for key, value in values if value is not None]
    return f"{name}: " + ", ".join([*shown, f"{elapsed_ms} ms"])


def _value_words(key: str, value: str | int | float) -> str:
    """``next hop 10.0.0.1``; of what is true or false ``limited`` or ``limited: no``."""
    if isinstance(value, bool):
        word = "recorded" if key == "told" else key.replace("_", " ")
        return word if value else f"{word}: no"
    word = "answered" if key == "told" else key.replace("_", " ")
    return f"{word} {value}"

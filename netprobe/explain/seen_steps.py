"""The steps of an explanation that recorders tell: the six places, and why silence is believed."""

from __future__ import annotations

from typing import Any

from netprobe.explain.view import NO_RECORDER, View
from netprobe.model.codec import story_to_json
from netprobe.model.icmp import icmp_words
from netprobe.model.notes import SilenceNote
from netprobe.model.story import Step, Story, StoryError, StoryPlace

# What a "yes" at a place means; {source} and {destination} are the hosts.
_PLACES = {
    "source-out": "left {source}",
    "destination-in": "came to {destination}, before its firewall",
    "socket": "reached a socket of {destination}",
    "destination-out": "answer left {destination}, after its firewall",
    "source-in": "answer came to {source}, before its firewall",
    "prober": "answer reached the prober",
}


def story_step(view: View) -> Step:
    """Show the six places in their order, and the errors and resets with who saw them leave."""
    story = view.evidence.story
    if story is None:
        if view.result.verdict == "pass":
            return Step("story", "not-needed", ("the answer itself says where it was",))
        if not view.recorded:
            return Step("story", "not-possible", (NO_RECORDER,))
        ends = [host for host in (view.source, view.destination) if not view.captures(host)]
        lacking = " and ".join(host.name for host in ends) or "this run"
        return Step("story", "not-possible", (f"no packet recorder for {lacking}",))
    words = [_word_place(view, name, place) for name, place in story.places()]
    words += [_word_error(view, error) for error in story.errors]
    is_bad = view.result.verdict == "blocked"
    return Step("story", "bad" if is_bad else "ok", tuple(words), story_to_json(story))


def _word_place(view: View, name: str, place: StoryPlace) -> str:
    means = _PLACES[name].format(source=view.source.name, destination=view.destination.name)
    times = f", {place.count} times" if place.count > 1 else ""
    device = f", on {place.interface}" if place.interface else ""
    ttl = f", TTL {place.ttl}" if place.ttl is not None else ""
    clock = f", first at {_print_clock(place.first_ns)}" if place.first_ns else ""
    return f"{name:<15} {place.seen:<7} {means}{times}{device}{ttl}{clock}"


def _print_clock(time_ns: int) -> str:
    """Print the time of day in UTC, to the nanosecond, by the clock of the host that saw it."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    minutes, second = divmod(seconds % 86_400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{rest:09}"


def _word_error(view: View, error: StoryError) -> str:
    what = "reset"
    if error.type is not None and error.code is not None:
        word = icmp_words(error.type, error.code, error.sender).word
        what = f"ICMP {error.type}/{error.code} ({word})"
    times = f"{error.count} times " if error.count > 1 else ""
    arrived = f"{'came' if error.arrived else 'did not come'} to {view.source.name}"
    left = word_leaving(error)
    if error.left == view.source.name:
        arrived, left = f"{view.source.name}'s own, which never left the host", ""
    about = f" about {error.quoted}" if error.type is not None else f" of {error.quoted}"
    said = f"{what} from {error.sender}{about}: {times}{arrived}, TTL {error.ttl}"
    return f"{said}; {left}" if left else said


def word_leaving(error: StoryError) -> str:
    """Say whether the recorder saw an error leave that must have seen it; "" where none must."""
    if error.not_left is not None:
        return f"{error.not_left}'s recorder never saw it leave: it was made on the way"
    return f"{error.left}'s recorder saw it leave" if error.left is not None else ""


def silence_step(view: View) -> Step:
    """Show how many looks were silent, and the chance that only loss kept them so."""
    note = view.note(SilenceNote)
    if note is None or not _is_silent(view):
        was = "silent, and not asked more often" if _is_silent(view) else "not silent"
        return Step("silence", "not-needed", (f"the flow was {was}",))
    looks, words = _count_silent(view, view.story, note.looks)
    loss = note.loss
    chance = loss**looks
    odds = f"at {loss * 100:.3g} % loss the chance is 1 in {_word_odds(chance)}"
    facts: dict[str, Any] = {"looks": looks, "loss": loss, "chance": chance}
    return Step("silence", "ok", (f"{words}; {odds}",), facts)


def _is_silent(view: View) -> bool:
    """Tell whether nobody said a word; of one-way packets, whether their listener did not."""
    outcome, witness = view.evidence.outcome, view.evidence.witness
    if outcome is None or outcome.failure is not None or outcome.answer is not None:
        return outcome is not None and outcome.failure == "no-answer"
    return witness is not None and not witness.socket


def _count_silent(view: View, story: Story, looks: int) -> tuple[int, str]:
    """Count the packets that the last recorder on the way saw, of which the next place got none."""
    source, destination = view.source.name, view.destination.name
    left, came, answered = story.source_out, story.destination_in, story.destination_out
    if answered.seen == "yes" and answered.count:
        return answered.count, f"{answered.count} answers left {destination}, none reached {source}"
    sent = left.count if left.seen == "yes" and left.count else looks
    went = f"{sent} looks left {source}" if left.seen == "yes" else f"{source} looked {sent} times"
    if came.seen == "yes":
        return came.count, f"{went}, {came.count} reached {destination}, none was answered"
    none = f"none reached {destination}" if came.seen == "no" else "none was answered"
    return sent, f"{went}, {none}"


def _word_odds(chance: float) -> str:
    """Word one in so many, to three digits: nobody knows the loss better."""
    odds = 1 / chance
    digits = max(0, len(str(int(odds))) - 3)
    return f"{round(odds, -digits):,.0f}"

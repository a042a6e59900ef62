"""What syntaxes share: their type, the words above their rules, and which rule goes where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TextIO

from netprobe.model.firewall import (
    RULE_PLACES,
    Enforcer,
    FirewallRequest,
    FirewallRule,
    RulePlace,
)
from netprobe.request.safe import plain
from netprobe.request.services import service_text

RuleWriter = Callable[[FirewallRequest, TextIO], None]
WriteLines = Callable[[FirewallRequest], Iterator[str]]
Direction = Literal["forward", "input", "output"]

_DIRECTIONS: dict[tuple[RulePlace, bool], Direction] = {
    ("path", False): "forward",
    ("path", True): "forward",
    ("destination", False): "input",
    ("destination", True): "output",
    ("source", False): "output",
    ("source", True): "input",
}


class IntoPlace(NamedTuple):
    """What ``--into`` may say of a syntax: a pattern for all of it, and its words for people."""

    pattern: str
    words: str


@dataclass(frozen=True, slots=True)
class Syntax:
    """How one kind of firewall or ticket is written; ``undo`` takes the same rules away again.

    ``library`` is what must be installed for it, with the extra of that name. ``into`` is None
    where the rules have no place to choose.
    """

    write: RuleWriter
    undo: RuleWriter | None = None
    library: str | None = None
    into: IntoPlace | None = None


def of_lines(make_lines: WriteLines) -> RuleWriter:
    """Make a writer out of a function that gives lines."""

    def write(request: FirewallRequest, stream: TextIO) -> None:
        stream.writelines(f"{line}\n" for line in make_lines(request))

    return write


class Section(NamedTuple):
    """The rules that one device, or every host of one end, has to apply."""

    enforcer: Enforcer
    rules: tuple[FirewallRule, ...]


def sections(
    request: FirewallRequest, places: Sequence[RulePlace] = RULE_PLACES
) -> Iterator[Section]:
    """Give the rules by who can apply them; a rule that several can apply stands with each."""
    found: dict[Enforcer, list[FirewallRule]] = {}
    for rule in request.rules:
        for enforcer in rule.enforcers:
            if enforcer.place in places:
                found.setdefault(enforcer, []).append(rule)
    for enforcer, rules in found.items():
        yield Section(enforcer, tuple(rules))


def rules_at(
    request: FirewallRequest, places: Sequence[RulePlace] = RULE_PLACES
) -> tuple[FirewallRule, ...]:
    """Give every rule that somebody at one of these places can apply, each once."""
    return tuple(
        rule for rule in request.rules if any(one.place in places for one in rule.enforcers)
    )


def left_out(
    request: FirewallRequest, places: Sequence[RulePlace], sign: str = "#"
) -> Iterator[str]:
    """Say which rules are for another kind of firewall."""
    written = {rule.id for rule in rules_at(request, places)}
    for rule in request.rules:
        if rule.id not in written:
            yield cannot(
                rule, f"it is for {plain(rule.who)}, not for a firewall of this kind", sign
            )


def direction(rule: FirewallRule, place: RulePlace) -> Direction:
    """Tell which way the packets of a rule go, seen from who applies it."""
    return _DIRECTIONS[place, rule.answers]


def heading(request: FirewallRequest, sign: str = "#", *, undo: bool = False) -> Iterator[str]:
    """Give the comment above all rules."""
    what = "takes away again what was added for" if undo else "adds, and replaces nothing:"
    yield f"{sign} netprobe request {request.id} of {plain(request.of)}: {what}"
    for rule in request.rules:
        yield f"{sign}   {rule.id} {word_ends(rule)}"
    if not request.rules:
        yield f"{sign}   no rule: {plain(request.why_none)}"


def word_ends(rule: FirewallRule) -> str:
    """``R1 answers of 2 addresses to 1: allow tcp 6443``."""
    ends = f"from {count_ends(rule.sources)} to {count_ends(rule.destinations)}"
    answers = "answers to " if rule.answers else ""
    return f"{rule.action} {answers}{plain(service_text(rule))} {ends}"


def count_ends(ends: Sequence[object]) -> str:
    """``1 address``, ``2 addresses``."""
    return f"{len(ends)} address{'' if len(ends) == 1 else 'es'}"


def remarks(rule: FirewallRule, sign: str = "#") -> Iterator[str]:
    """Give the comment above one rule: who, why, and until when."""
    yield f"{sign} {rule.id} on {plain(rule.who)}, until {plain(rule.until)}"
    yield from (f"{sign}   {plain(words)}" for words in rule.why)


def cannot(rule: FirewallRule, why: str, sign: str = "#") -> str:
    """Say that a rule cannot be written in this syntax: it must not get lost without a word."""
    return f"{sign} NOT WRITTEN: {rule.id} ({plain(service_text(rule))}): {why}"


def write_script(
    request: FirewallRequest,
    write: Callable[[FirewallRule, RulePlace], Iterator[str]],
    *,
    undo: bool,
) -> Iterator[str]:
    """Give a shell script: who applies which rule and why, and the commands that ``write`` gives
    for a rule at a place."""
    yield "#!/bin/sh"
    yield from heading(request, undo=undo)
    yield "set -e"
    for section in sections(request):
        yield f"\n# --- on {plain(section.enforcer.words)} ---"
        for rule in section.rules:
            yield from remarks(rule)
            yield from write(rule, section.enforcer.place)

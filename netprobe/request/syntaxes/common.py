"""What syntaxes share: their type, the words above their rules, and which rule goes where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TextIO

from msgspec import Struct

from netprobe.model.firewall import RULE_PLACES, Enforcer, FirewallRequest, FirewallRule, RulePlace
from netprobe.request.safe import plain
from netprobe.request.services import service_text

RuleWriter = Callable[[FirewallRequest, TextIO], None]
WhyUnwritten = Callable[[FirewallRule], str | None]
WriteLines = Callable[[FirewallRequest], Iterator[str]]
Direction = Literal["forward", "input", "output"]
_CHAINS: tuple[Direction, ...] = ("forward", "input", "output")

PATH: tuple[RulePlace, ...] = ("path",)
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


class Syntax(Struct, frozen=True):
    """How one kind of firewall or ticket is written; ``undo`` takes the same rules away again.

    ``purpose`` says for whom. ``library`` is what must be installed for it, with the extra of that
    name. ``into`` is None where the rules have no place to choose.
    """

    purpose: str
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

    @property
    def title(self) -> str:
        """The comment above them in a script."""
        return f"\n# --- on {plain(self.enforcer.words)} ---"


def sections(
    request: FirewallRequest, places: Sequence[RulePlace] = RULE_PLACES
) -> Iterator[Section]:
    """Give the rules by who can apply them; a rule that several can apply stands with each."""
    found: dict[Enforcer, list[FirewallRule]] = {}
    for rule in request.rules:
        for enforcer in request.enforcers_of(rule):
            if enforcer.place in places:
                found.setdefault(enforcer, []).append(rule)
    for enforcer, rules in found.items():
        yield Section(enforcer, tuple(rules))


def rules_at(
    request: FirewallRequest, places: Sequence[RulePlace] = RULE_PLACES
) -> tuple[FirewallRule, ...]:
    """Give every rule that somebody at one of these places can apply, each once."""
    return tuple(
        rule
        for rule in request.rules
        if any(one.place in places for one in request.enforcers_of(rule))
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


def choose_chain(
    request: FirewallRequest, rule: FirewallRule, place: RulePlace, named: str, own: str
) -> str:
    """Choose the chain of a rule: the one that ``--into`` names, or that of its own direction.

    A chain has one direction: where rules go several ways, a name is that of the first of them.
    """
    ways = {
        direction(each, one.place) for each in request.rules for one in request.enforcers_of(each)
    }
    first = min(ways, key=_CHAINS.index)
    return named if named and direction(rule, place) == first else own


def heading(
    request: FirewallRequest, sign: str = "#", *, undo: bool = False, into: str = ""
) -> Iterator[str]:
    """Give the comment above all rules; ``into`` says how ``--into`` names another place."""
    what = "takes away again what was added for" if undo else "adds, and replaces nothing:"
    yield f"{sign} netprobe request {request.id} of {plain(request.of)}: {what}"
    if into:
        yield f"{sign} another place of the rules: netprobe request ... --into {into}"
    for rule in request.rules:
        yield f"{sign}   {rule.id} {word_ends(rule)}"
    if not request.rules:
        yield f"{sign}   no rule: {plain(request.why_none)}"


def forbid_whole_file(
    request: FirewallRequest, places: Sequence[RulePlace] = RULE_PLACES, sign: str = "#"
) -> Iterator[str]:
    """Forbid to apply a file as a whole, where its rules are for several places or routers."""
    enforcers = [one.enforcer for one in sections(request, places)]
    routers = {one.router for one in enforcers} - {None}
    if len({one.place for one in enforcers}) > 1 or len(routers) > 1:
        yield f"\n{sign} NEVER APPLY THE WHOLE FILE: each part is for the place that it names."


def word_ends(rule: FirewallRule) -> str:
    """``R1 answers of 2 addresses to 1: allow tcp 6443``."""
    ends = f"from {count_ends(rule.sources)} to {count_ends(rule.destinations)}"
    answers = "answers to " if rule.answers else ""
    return f"{rule.action} {answers}{plain(service_text(rule))} {ends}"


def count_ends(ends: Sequence[object]) -> str:
    """``1 address``, ``2 addresses``."""
    return f"{len(ends)} address{'' if len(ends) == 1 else 'es'}"


def remarks(rule: FirewallRule, sign: str = "#") -> Iterator[str]:
    """Give the comment above one rule: who, why, until when, and of which finding."""
    yield f"{sign} {rule.id} on {plain(rule.who)}, until {plain(rule.until)}"
    yield from (f"{sign}   {plain(words)}" for words in rule.why)
    if rule.findings:
        yield f"{sign}   finding {plain(rule.findings_text)}"


def cannot(rule: FirewallRule, why: str, sign: str = "#") -> str:
    """Say that a rule cannot be written in this syntax: it must not get lost without a word."""
    return f"{sign} NOT WRITTEN: {rule.id} ({plain(service_text(rule))}): {why}"


def write_unless(
    rule: FirewallRule, why_not: str | None, lines: Iterator[str], sign: str = "#"
) -> Iterator[str]:
    """Give the lines of a rule, or why there are none."""
    if why_not is None:
        yield from lines
    else:
        yield cannot(rule, why_not, sign)


def word_state(rule: FirewallRule, who: str) -> str | None:
    """Say why a firewall that keeps state needs no rule for answers; ``who``: ``an ASA keeps``."""
    return f"{who} state, answers need no rule" if rule.answers else None


def write_script(
    request: FirewallRequest,
    write: Callable[[FirewallRule, RulePlace], Iterator[str]],
    *,
    undo: bool = False,
    into: str = "",
) -> Iterator[str]:
    """Give a shell script with the commands that ``write`` gives for a rule at a place."""
    yield "#!/bin/sh"
    yield from heading(request, undo=undo, into=into)
    yield "set -e"
    yield from write_sections(request, write)


def write_sections(
    request: FirewallRequest,
    write: Callable[[FirewallRule, RulePlace], Iterator[str]],
    places: Sequence[RulePlace] = RULE_PLACES,
) -> Iterator[str]:
    """Give the rules by who applies them, each below its comment."""
    yield from forbid_whole_file(request, places)
    for section in sections(request, places):
        yield section.title
        for rule in section.rules:
            yield from remarks(rule)
            yield from write(rule, section.enforcer.place)


def writable_rules(request: FirewallRequest, why_not: WhyUnwritten) -> list[FirewallRule]:
    """Give the rules for a firewall on the way that its syntax can write."""
    return [rule for rule in rules_at(request, PATH) if why_not(rule) is None]


def write_device(
    request: FirewallRequest,
    write_objects: Callable[[FirewallRequest, Sequence[FirewallRule]], Iterator[str]],
    write_rule: Callable[[FirewallRequest, FirewallRule], Iterator[str]],
    why_not: WhyUnwritten,
    into: str,
    sign: str = "#",
) -> Iterator[str]:
    """Give the lines for a firewall on the way: objects first, then the rules that use them."""
    yield from heading(request, sign, into=into)
    yield from forbid_whole_file(request, PATH, sign)
    yield from left_out(request, PATH, sign)
    yield from write_objects(request, writable_rules(request, why_not))
    for rule in rules_at(request, PATH):
        yield from remarks(rule, sign)
        yield from write_unless(rule, why_not(rule), write_rule(request, rule), sign)

"""Markdown for tickets and chats: who applies what, and why."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.model.names import names_text
from netprobe.model.printable import escape_markdown
from netprobe.request.services import service_text
from netprobe.request.syntaxes.common import sections

# Addresses of one end; the tables of the other formats have them all.
_MOST_ENDS = 40


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the page."""
    yield f"# Firewall request {request.id}"
    yield ""
    made = f" ({escape_markdown(request.started_at)})" if request.started_at else ""
    yield f"From {escape_markdown(request.of)}{made}: {escape_markdown(_word_size(request))}."
    for key, value in request.ticket.items():
        yield f"- **{escape_markdown(key)}**: {escape_markdown(value)}"
    for section in sections(request):
        yield ""
        yield f"## On {escape_markdown(section.enforcer.words)}"
        for rule in section.rules:
            yield from _rule_lines(rule)
    if request.unmended:
        yield ""
        yield "## No rule will help"
        yield ""
        for one in request.unmended:
            count = f" ({_count_nouns(one.flows, 'flow')})" if one.flows else ""
            yield f"- {escape_markdown(one.title)}{count}. {escape_markdown(one.help)}"


def _word_size(request: FirewallRequest) -> str:
    if not request.rules:
        return f"no rule to ask for: {request.why_none}"
    flows = _count_nouns(sum(rule.flows for rule in request.rules), "flow")
    return f"{_count_nouns(len(request.rules), 'rule')} for {flows}"


def _count_nouns(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _rule_lines(rule: FirewallRule) -> Iterator[str]:
    verb = {"allow": "Allow", "deny": "Deny"}[rule.action]
    way = " (answers; the ports are those of the source)" if rule.answers else ""
    yield ""
    yield f"### {rule.id}: {verb} {escape_markdown(service_text(rule))}{way}"
    yield ""
    yield f"- from: {_ends_text(rule.sources)}"
    yield f"- to: {_ends_text(rule.destinations)}"
    for words in rule.why:
        yield f"- why: {escape_markdown(words)}"
    for words in rule.evidence:
        yield f"- seen: {escape_markdown(words)}"
    if not rule.confirmed:
        yield f"- to be confirmed: {escape_markdown(rule.candidates)}"
    for words in rule.notes:
        yield f"- note: {escape_markdown(words)}"
    yield f"- until: {escape_markdown(rule.until)}"


def _ends_text(ends: tuple[RuleEnd, ...]) -> str:
    shown = [f"{end.address} {escape_markdown(f'({end.host})')}" for end in ends[:_MOST_ENDS]]
    rest = [end.host for end in ends[_MOST_ENDS:]]
    more = (
        [f"and {len(rest):,} more: {escape_markdown(names_text(rest, _MOST_ENDS))}"] if rest else []
    )
    return ", ".join([*shown, *more])

"""A request as a page, in plain text and in Markdown: who applies what, and why."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd, Unmended
from netprobe.model.names import names_text
from netprobe.model.printable import clean, escape_markdown
from netprobe.request.services import service_text
from netprobe.request.syntaxes.common import sections

# Addresses of one end; the tables of the other formats have them all.
_MOST_ENDS = 40
_LABEL_WIDTH = 16


def text(request: FirewallRequest) -> Iterator[str]:
    """Give the page for terminals and mails."""
    yield f"Firewall request {request.id}"
    yield clean(_word_origin(request))
    for key, value in request.ticket.items():
        yield clean(f"   {key}: {value}")
    for section in sections(request):
        yield ""
        yield clean(f"On {section.enforcer.words}:")
        for rule in section.rules:
            yield ""
            yield clean(f"   {_word_rule(rule)}")
            for label, words in _list_facts(rule):
                yield clean(f"      {label:<{_LABEL_WIDTH}} {words}")
    if request.unmended:
        yield ""
        yield "No rule will help:"
        yield from (clean(f"   {_word_unmended(one)}") for one in request.unmended)
    if request.unprobed:
        yield ""
        yield "Not probed:"
        yield from (clean(f"   {_word_unmended(one)}") for one in request.unprobed)


def markdown(request: FirewallRequest) -> Iterator[str]:
    """Give the page for tickets and chats."""
    yield f"# Firewall request {request.id}"
    yield ""
    yield escape_markdown(_word_origin(request))
    for key, value in request.ticket.items():
        yield f"- **{escape_markdown(key)}**: {escape_markdown(value)}"
    for section in sections(request):
        yield ""
        yield f"## On {escape_markdown(section.enforcer.words)}"
        for rule in section.rules:
            yield from ("", f"### {escape_markdown(_word_rule(rule))}", "")
            for label, words in _list_facts(rule):
                yield f"- {label}: {escape_markdown(words)}"
    if request.unmended:
        yield from ("", "## No rule will help", "")
        yield from (f"- {escape_markdown(_word_unmended(one))}" for one in request.unmended)
    if request.unprobed:
        yield from ("", "## Not probed", "")
        yield from (f"- {escape_markdown(_word_unmended(one))}" for one in request.unprobed)


def _word_origin(request: FirewallRequest) -> str:
    made = f" ({request.started_at})" if request.started_at else ""
    return f"From {request.of}{made}: {_word_size(request)}."


def _word_size(request: FirewallRequest) -> str:
    if not request.rules:
        return f"no rule to ask for: {request.why_none}"
    flows = _count_nouns(sum(rule.flows for rule in request.rules), "flow")
    return f"{_count_nouns(len(request.rules), 'rule')} for {flows}"


def _count_nouns(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _word_rule(rule: FirewallRule) -> str:
    way = " (answers; the ports are those of the source)" if rule.answers else ""
    return f"{rule.id}: {rule.action.capitalize()} {service_text(rule)}{way}"


def _list_facts(rule: FirewallRule) -> Iterator[tuple[str, str]]:
    """Give what is known of a rule, each with its label."""
    yield "from", _ends_text(rule.sources)
    yield "to", _ends_text(rule.destinations)
    yield from (("why", words) for words in rule.why)
    yield from (("seen", words) for words in rule.evidence)
    if rule.findings:
        yield "finding", rule.findings_text
    if not rule.confirmed:
        yield "to be confirmed", rule.candidates
    yield from (("note", words) for words in rule.notes)
    yield "until", rule.until


def _ends_text(ends: tuple[RuleEnd, ...]) -> str:
    shown = [f"{end.address} ({end.host})" for end in ends[:_MOST_ENDS]]
    rest = [end.host for end in ends[_MOST_ENDS:]]
    more = [f"and {len(rest):,} more: {names_text(rest, _MOST_ENDS)}"] if rest else []
    return ", ".join([*shown, *more])


def _word_unmended(one: Unmended) -> str:
    count = f" ({_count_nouns(one.flows, 'flow')})" if one.flows else ""
    return f"{one.title}{count}. {one.help}"

"""What became of the rules of a request: done, partly done, or still blocked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from netprobe.model.firewall import FirewallRule
from netprobe.model.ports import count, intersect
from netprobe.model.result import Result
from netprobe.report.page.wording import listed, number, plural

_MOST_RULES = 8


def rule_notes(rules: Sequence[FirewallRule], results: Iterable[Result]) -> Iterator[str]:
    """Give one sentence on all that are done, and one on each that is not."""
    counts = _count_by_rule([rule for rule in rules if not rule.answers], results)
    done = [name for name, some in counts.items() if some.total() and some.total() == some["pass"]]
    if done:
        yield f"done: {listed(done, _MOST_RULES)} of the request"
    for name in [name for name in counts if name not in done]:
        yield f"not done: {name} of the request: {_word_counts(counts[name])}"


def _count_by_rule(
    rules: Sequence[FirewallRule], results: Iterable[Result]
) -> dict[str, Counter[str]]:
    by_pair: dict[tuple[str, str, str], list[FirewallRule]] = {}
    for rule in rules:
        hosts = dict.fromkeys(end.host for end in rule.sources)
        for source, end in product(hosts, rule.destinations):
            by_pair.setdefault((source, end.host, end.address), []).append(rule)
    counts: dict[str, Counter[str]] = {rule.id: Counter() for rule in rules}
    for result in results:
        for rule in by_pair.get((result.source, result.destination, result.address), ()):
            counts[rule.id][result.verdict] += _count_in_rule(rule, result)
    return counts


def _count_in_rule(rule: FirewallRule, result: Result) -> int:
    if rule.protocol != result.protocol:
        return 0
    return count(intersect(rule.ports, result.ports)) if result.ports else 1


def _word_counts(counts: Counter[str]) -> str:
    if not counts.total():
        return "none of its flows is in this plan"
    told = ", ".join(
        f"{number(flows)} {verdict}" for verdict, flows in sorted(counts.items()) if flows
    )
    return f"{told} of {plural(counts.total(), 'flow')}"

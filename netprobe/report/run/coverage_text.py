"""What a covering run says: what is certain, what follows, what chance says; the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.result import Result
from netprobe.report.page.page import Line, PageSection, section
from netprobe.report.page.wording import listed, number, plural

MOST_MIXED = 6
MOST_TOLD = 2
# Of a result that stands for a group: no flow of a plan has this place.
NO_PLACE = (-1, -1, -1)
# The sections of flows that were not probed.
_TITLES: Final = {
    "not-covered": "NOT COVERED: not probed, and nothing stands for it",
    "covered-failing": (
        "COVERED BY FLOWS THAT FAIL: not probed, where all hosts of two zones fail alike"
    ),
    "covered": "COVERED: not probed; another flow stands for each",
}


def coverage_line(about: Coverage, verb: str = "were probed") -> str:
    """Say in one line what is certain, what follows for zones, and what only chance says."""
    share = _word_share(about.probed, about.required)
    twice = "" if about.copies == 1 else f" {about.copies} times"
    pairs = _word_share(about.pairs, about.all_pairs)
    left = [one for one in about.unprobed if one.verdict != "covered"]
    missed = f", but for {_word_flows(left)} that nothing stands for" if left else ""
    certain = (
        f"{number(about.probed)} of {plural(about.required, 'flow')} {verb} ({share}), each of "
        f"{plural(about.hosts, 'host')} to and from each of "
        f"{plural(len(about.zones), 'zone')}{twice}, each port between each two zones, between "
        f"{number(about.pairs)} of {plural(about.all_pairs, 'pair')} of hosts ({pairs}){missed}"
    )
    mixed = f" (not so: {listed(about.mixed, MOST_TOLD)})" if about.mixed else ""
    follows = (
        f"for zones that treat their hosts alike{mixed} no rule between zones, nor between a host "
        "and a zone (for part of a range only by chance), was missed"
    )
    return f"{certain}; {follows}; {_word_chance(about)} (seed {about.seed})"


def _word_chance(about: Coverage) -> str:
    sources, ends = about.hidden
    if about.single >= 1 or not sources:
        return "every pair of hosts was probed at the ports that are no range"
    return (
        f"inside two zones only chance finds a rule: for {number(sources)} x {number(ends)} hosts "
        f"with 95 %, for a single pair with {_word_percent(about.single)}"
    )


def _word_share(part: int, total: int) -> str:
    return _word_percent(part / total if total else 1.0)


def _word_percent(share: float) -> str:
    """``0.04 %``: two digits that count, and never 100 % for less than all."""
    percent = min(share, 0.999 if share < 1 else 1.0) * 100
    return f"{float(f'{percent:.2g}') if percent < 10 else round(percent, 1):g} %"


def coverage_sections(coverage: Coverage | None) -> Iterator[PageSection]:
    """Show the flows that were not probed, by requirement and by what is known of them."""
    if coverage is None:
        return
    mixed = (
        "MIXED: these zones do not treat their hosts alike, so that all their hosts were "
        f"probed at the ports that fail ({plural(coverage.completed, 'flow')} more)"
    )
    names = [Line(listed(coverage.mixed, MOST_MIXED))] if coverage.mixed else []
    yield from section("mixed", Line(mixed, "doubt"), names)
    for name, title in _TITLES.items():
        groups = [one for one in coverage.unprobed if _find_section(one) == name]
        yield from _list_groups(name, title, groups)


def _find_section(one: Unprobed) -> str:
    if one.verdict != "covered":
        return "not-covered"
    return "covered" if one.by_verdict == "pass" else "covered-failing"


def _list_groups(name: str, title: str, groups: list[Unprobed]) -> Iterator[PageSection]:
    alike: dict[tuple[object, ...], list[Unprobed]] = {}
    for one in groups:
        key = (one.matrix, one.requirement, one.protocol, one.itself, one.reason, one.by_verdict)
        alike.setdefault(key, []).append(one)
    head = Line(f"{title} ({_word_flows(groups)})", "plain" if name == "covered" else "doubt")
    largest = sorted(alike.values(), key=lambda some: -sum(one.flows for one in some))
    lines = (Line(_word_alike(some), hang=3) for some in largest)
    yield from section(name, head, lines, "more groups")


def _word_flows(groups: Iterable[Unprobed]) -> str:
    return plural(sum(one.flows for one in groups), "flow")


def _word_alike(groups: list[Unprobed]) -> str:
    """Word groups of one requirement with one fate; of those that stand for them, the first."""
    first = groups[0]
    zones = f"{first.from_zone} to {first.to_zone}"
    if first.itself:
        zones = f"hosts of {first.from_zone} to themselves"
    more = len({(one.from_zone, one.to_zone) for one in groups}) - 1
    between = f"{zones} and {plural(more, 'more pair')} of zones" if more else zones
    told = groups[:1] if first.verdict == "covered" else groups
    sentences = "; ".join(dict.fromkeys(one.because for one in told))
    advice = ""
    if first.verdict == "covered" and first.by_verdict in ("blocked", "exposed"):
        what = "Allow" if first.by_verdict == "blocked" else "Close"
        advice = f". {what} it for all hosts of these zones, not only for those that were probed"
    return (
        f"{first.requirement} ({first.matrix}) {first.protocol}: {_word_flows(groups)}, "
        f"{between}: {sentences}{advice}"
    )


def example_of(about: Coverage, group: Unprobed) -> Result:
    """Give a group as one result between the first of its hosts, for reports that group results."""
    ports = group.ports[0] if group.ports else (None, None)
    destination = about.destinations(group)[0]
    return Result(
        order=NO_PLACE, matrix=group.matrix, requirement=group.requirement, purpose="", row="",
        optional=group.optional, expect=group.expect, waived=group.waived, also=group.also,
        source=about.sources(group)[0], destination=destination, address=destination,
        protocol=group.protocol, port=ports[0], end_port=ports[1], verdict=group.verdict,
        state="unknown", reason=group.reason, proof="none", where=(), because=group.because,
    )  # fmt: skip

"""What a report says of a run, before anybody prints it: every format for people prints this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from netprobe.model.result import Finding
from netprobe.report.page.flow_groups import Addresses
from netprobe.report.page.page import Line, PageSection
from netprobe.report.record.collector import Report
from netprobe.report.run import sections
from netprobe.report.run.headline import Headline, headline, origin, totals

# What stands beside the findings, in its order; news stand before findings that are no failures.
NEWS: Final[tuple[Callable[[sections.RunSurvey], Iterator[PageSection]], ...]] = (
    sections.changed_sections,
    sections.warning_sections,
)
REST: Final[tuple[Callable[[sections.RunSurvey], Iterator[PageSection]], ...]] = (
    sections.open_sections,
    sections.unprobed_sections,
    sections.refusal_sections,
    sections.accepted_sections,
    sections.excused_sections,
    sections.limit_sections,
    sections.skipped_sections,
    sections.note_sections,
)


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run from its headline to its totals; ``findings`` are those that count, failures first.

    A format gives each finding as much room as it has (``finding_section``).
    """

    headline: Headline
    origin: tuple[Line, ...]
    findings: tuple[Finding, ...]
    addresses: Addresses
    news: tuple[PageSection, ...]
    rest: tuple[PageSection, ...]
    totals: Line

    @property
    def sections(self) -> tuple[PageSection, ...]:
        """All sections beside the findings."""
        return self.news + self.rest


def make_page(report: Report) -> RunPage:
    """Make the page of a run; its failures are read once."""
    about = sections.survey_run(report)
    return RunPage(
        headline(report),
        tuple(origin(report)),
        tuple(report.deciding_findings),
        about.addresses,
        tuple(one for list_sections in NEWS for one in list_sections(about)),
        tuple(one for list_sections in REST for one in list_sections(about)),
        totals(report),
    )

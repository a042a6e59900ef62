"""A run for strangers: every host, address and person of it becomes a number, the same everywhere.

Roles, requirements and what was seen stay as they are: they say what is to be mended. It is done
before failures are folded, so that titles and advice are made of the new names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from netprobe.model.accepted import CheckedAcceptance
from netprobe.model.coverage import Coverage
from netprobe.model.host_key import HostKey
from netprobe.model.kept_finding import KeptFinding
from netprobe.model.plan import PlannedRequirement
from netprobe.model.result import AcceptedBy, HostFacts, HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.story import Story
from netprobe.model.struct_json import to_json
from netprobe.report.page.wording import fill_holes, make_holes
from netprobe.report.record.changes import Changes, Fate, Unshared
from netprobe.report.record.collector import Collector, collect
from netprobe.report.record.hidden_names import HiddenNames

# What may name a host, an address or a person; everything else is a word of netprobe or a number.
_OF_RUN = ("selection", "earlier", "sample", "baseline", "notes")
_OF_HOST = ("name", "words", "cost", "addresses")
_OF_FACTS = HostFacts.__struct_fields__
_OF_SKIPPED = ("reason", "source", "destination")
_OF_REQUIREMENT = ("purpose", "row", "waive")
_OF_RESULT = (
    "source", "destination", "address", "purpose", "row", "waived", "rejected_by", "last_hop",
    "next_hop", "holder", "known", "sent_from", "came_from",
)  # fmt: skip
_OF_MEMBER = ("source", "destination", "address")
_OF_UNPROBED = ("from_zone", "to_zone", "because", "by", "waived")
_OF_ACCEPTANCE = ("id", "from_", "to", "addresses", "reason", "ticket")

Some = TypeVar("Some")
Acceptance = TypeVar("Acceptance", AcceptedBy, CheckedAcceptance)


def redact_run(
    info: RunInfo, collector: Collector, changes: Changes | None
) -> tuple[RunInfo, Collector, Changes | None]:
    """Give the same run without the names of its hosts; the old collector is closed."""
    redactor = Redactor(info, collector)
    hidden = collect(map(redactor.result, collector.results()))
    collector.close()
    return redactor.run(info), hidden, changes and redactor.changes(changes)


class Redactor:
    """Gives the new names of one run; what was once called host-3 stays host-3."""

    def __init__(self, info: RunInfo, collector: Collector) -> None:
        hosts = {host.name for host in info.hosts}
        addresses = {address for host in info.hosts for address in host.addresses}
        public = {one.name for one in info.matrices} | {*_list_public(info)}
        for result in collector.results():
            hosts |= {result.source, result.destination}
            addresses.add(result.address)
            public |= {word for name in result.names for word in name}
        hosts |= {end for one in info.skipped for end in (one.source, one.destination) if end}
        zones = {host.zone for host in info.hosts if host.zone}
        self._names = names = HiddenNames(public)
        names.list_names(hosts, "host")
        names.list_names(addresses - hosts, "address")
        names.list_names((_text_of(host.facts.hostname) for host in info.hosts), "machine")
        names.list_names(zones.union(info.coverage.zones if info.coverage else ()), "zone")
        names.list_logins(_list_users(info), _list_foreign_texts(info))
        self.text = names.text

    def run(self, info: RunInfo) -> RunInfo:
        """Give all that is known of a run but its results."""
        return replace(
            self._with_texts(info, _OF_RUN),
            hosts=tuple(map(self._hide_host, info.hosts)),
            skipped=tuple(self._with_texts(one, _OF_SKIPPED) for one in info.skipped),
            accepted=tuple(self._hide_acceptance(one, _OF_ACCEPTANCE) for one in info.accepted),
            findings=info.findings and tuple(map(self._hide_finding, info.findings)),
            coverage=info.coverage and self._hide_coverage(info.coverage),
            requirements=tuple(map(self._hide_requirement, info.requirements)),
            matrices=tuple(
                replace(one, settings=self._hide_value(one.settings)) for one in info.matrices
            ),
        )

    def _hide_requirement(self, one: PlannedRequirement) -> PlannedRequirement:
        # A reader who guesses names and addresses could confirm them by it.
        return replace(self._with_texts(one, _OF_REQUIREMENT), question="")

    def result(self, result: Result) -> Result:
        """Give one result."""
        hidden = self._with_texts(result, _OF_RESULT)
        names = (hidden.source, hidden.destination, hidden.address)

        def hide(text: str) -> str:
            return fill_holes(self.text(make_holes(text, result)), names)

        warnings = tuple(map(hide, result.warnings))
        accepted = result.accepted and self._hide_acceptance(result.accepted, ("id", "reason"))
        story = result.story and self._hide_story(result.story)
        also = tuple(replace(one, purpose=self.text(one.purpose)) for one in result.also)
        servers = tuple(map(self.text, result.name_servers))
        return replace(
            hidden, because=hide(result.because), warnings=warnings, accepted=accepted, story=story,
            also=also, name_servers=servers,
        )  # fmt: skip

    def changes(self, changes: Changes) -> Changes:
        """Give what changed since an earlier run."""

        def hide(results: Iterable[Result]) -> list[Result]:
            return [self.result(one) for one in results]

        def hide_fates(by_fate: Mapping[Fate, list[Result]]) -> dict[Fate, list[Result]]:
            return {
                fate._replace(rejected_by=fate.rejected_by and self.text(fate.rejected_by)): hide(
                    some
                )
                for fate, some in by_fate.items()
            }

        return replace(
            changes,
            worse=hide(changes.worse),
            decided=hide(changes.decided),
            fixed=hide(changes.fixed),
            still=hide(changes.still),
            unknown=hide(changes.unknown),
            otherwise=hide_fates(changes.otherwise),
            moved=hide_fates(changes.moved),
            only_later=self._hide_unshared(changes.only_later),
            only_earlier=self._hide_unshared(changes.only_earlier),
        )

    def _hide_coverage(self, about: Coverage) -> Coverage:
        hide = self.text
        return replace(
            about,
            zones={hide(zone): tuple(map(hide, names)) for zone, names in about.zones.items()},
            mixed=self._hide_value(about.mixed),
            host_sets=self._hide_value(about.host_sets),
            unprobed=tuple(self._with_texts(one, _OF_UNPROBED) for one in about.unprobed),
        )

    def _hide_finding(self, one: KeptFinding) -> KeptFinding:
        members = tuple(self._with_texts(member, _OF_MEMBER) for member in one.members)
        return replace(one, members=members, evidence=None, no_evidence=None)

    def _hide_unshared(self, some: Unshared) -> Unshared:
        names = {
            key: replace(
                names,
                sources={self.text(one): None for one in names.sources},
                destinations={(self.text(a), self.text(b)): None for a, b in names.destinations},
            )
            for key, names in some.names.items()
        }
        return replace(some, names=names)

    def _hide_host(self, host: HostReport) -> HostReport:
        facts = replace(host.facts, user=_hide_user(host.facts.user))
        return replace(
            self._with_texts(host, _OF_HOST),
            zone=self.text(host.zone) if host.zone else None,
            user=_hide_user(host.user),
            facts=self._with_texts(facts, _OF_FACTS),
            # The way onto it is nobody else's matter.
            host_key=host.host_key
            and HostKey(state=host.host_key.state, target=self.text(host.name)),
        )

    def _hide_story(self, story: Story) -> Story:
        names = ("sender", "left", "not_left")
        return replace(story, errors=tuple(self._with_texts(one, names) for one in story.errors))

    def _with_texts(self, item: Some, names: Sequence[str]) -> Some:
        new = {name: self._hide_value(getattr(item, name)) for name in names}
        return replace(item, **new)  # type: ignore[type-var]

    def _hide_value(self, value: Any) -> Any:  # Any: whatever JSON has
        """Hide all texts in a value; keys are words of netprobe."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._hide_value(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self._hide_value, value))
        return value

    def _hide_acceptance(self, one: Acceptance, names: Sequence[str]) -> Acceptance:
        owner = self._names.name_anew(one.owner, "owner")
        return replace(self._with_texts(one, names), owner=owner)


def _list_public(info: RunInfo) -> Iterator[str]:
    """Give the names that stay: they say what is to be mended."""
    for one in info.requirements:
        yield from (one.matrix, one.id, *one.from_, *one.to)
    for host in info.hosts:
        yield from host.roles
    for matrix in info.matrices:
        yield from matrix.settings
    yield from (name for one in info.skipped for name in (one.matrix, one.requirement))


def _list_users(info: RunInfo) -> Iterator[str]:
    for host in info.hosts:
        yield from filter(None, (host.user, _text_of(host.facts.user)))


def _list_foreign_texts(info: RunInfo) -> Iterator[str]:
    """Give what ssh and hosts said, where logins may stand."""
    yield from info.notes
    for host in info.hosts:
        yield from (host.words, *host.cost)
        yield from filter(None, map(_text_of, to_json(host.facts).values()))


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _hide_user(name: str | None) -> str | None:
    return name if name in (None, "root") else "user"

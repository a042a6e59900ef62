"""A run for strangers: every host, address and person of it becomes a number, the same everywhere.

Roles, requirements and what was seen stay as they are: they say what is to be mended. It is done
before failures are folded, so that titles and advice are made of the new names.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from netprobe.model.coverage import Coverage
from netprobe.model.result import HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.story import Story
from netprobe.report.changes import Changes, Unshared
from netprobe.report.collector import Collector, collect
from netprobe.report.sentences import fill_holes, make_holes

# What may name a host, an address or a person; everything else is a word of netprobe or a number.
_OF_RUN = ("selection", "earlier", "sample", "baseline", "notes")
_OF_HOST = ("name", "words", "cost", "addresses")
_OF_SKIPPED = ("reason", "source", "destination")
_OF_REQUIREMENT = ("purpose", "row", "waive")
_OF_RESULT = (
    "source", "destination", "address", "purpose", "row", "waived", "rejected_by", "last_hop",
    "next_hop", "holder", "known",
)  # fmt: skip
_OF_UNPROBED = ("from_zone", "to_zone", "because", "by", "waived")
_OF_ACCEPTANCE = ("id", "from_", "to", "addresses", "reason", "ticket")

# What no list of names has: addresses of routers, names that a certificate tells, logins, what
# ssh says of its own names, and names folded to worker-[1-40].
_UNLISTED = re.compile(
    r"(?P<mac>(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:]))"
    r"|(?P<address>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\d{0,3}(?:\.\d{1,3}){3})?(?![\w:]))"
    r"|(?P<hosts>[\w.-]*\[\d+-\d+\][\w.-]*)"
    r"|(?P<user>[\w.+-]+(?=@\S)|(?<=/home/)[^/\s]+|(?<=/Users/)[^/\s]+)"
    r"|(?P<told>(?<=hostname )[^\s:]+|(?<=host )\S+(?= port)|(?<=`ssh )[^`]+"
    # Of manifests: names of clusters, node pools, networks and identity providers.
    r"|(?<=HostedCluster )[^\s:]+|(?<=NodePool )[^\s:]+|(?<=secondary network )[^\s,;:]+"
    r"|(?<=give --network )[^\s=]+|(?<=identity provider )\S+)"
    r"|(?P<name>(?<![\w.-])[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.[a-z][a-z0-9-]+(?![\w-]))",
    re.IGNORECASE,
)

Some = TypeVar("Some")


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
        self._new: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        hosts = {host.name for host in info.hosts}
        addresses = {address for host in info.hosts for address in host.addresses}
        for result in collector.results():
            hosts |= {result.source, result.destination}
            addresses.add(result.address)
        hosts |= {end for one in info.skipped for end in (one.source, one.destination) if end}
        for host in sorted(hosts):
            self._name_anew(host, "host")
        for address in sorted(addresses - hosts):
            self._name_anew(address, "address")
        for machine in sorted(
            {str(host.facts.get("hostname") or "") for host in info.hosts} - {""}
        ):
            self._name_anew(machine, "machine")
        zones = {host.zone for host in info.hosts if host.zone}
        for zone in sorted(zones | set(info.coverage.zones if info.coverage else ())):
            self._name_anew(zone, "zone")
        self._listed = _match_names(self._new)
        self.text = cache(self._hide_names)

    def run(self, info: RunInfo) -> RunInfo:
        """Give all that is known of a run but its results."""
        return replace(
            self._with_texts(info, _OF_RUN),
            hosts=tuple(map(self._hide_host, info.hosts)),
            skipped=tuple(self._with_texts(one, _OF_SKIPPED) for one in info.skipped),
            accepted=tuple(
                replace(self._with_texts(one, _OF_ACCEPTANCE), owner=self._hide_owner(one.owner))
                for one in info.accepted
            ),
            coverage=info.coverage and self._hide_coverage(info.coverage),
            requirements=tuple(self._with_texts(one, _OF_REQUIREMENT) for one in info.requirements),
            matrices=tuple(
                replace(one, settings=self._hide_value(one.settings)) for one in info.matrices
            ),
        )

    def result(self, result: Result) -> Result:
        """Give one result."""
        hidden = self._with_texts(result, _OF_RESULT)
        names = (hidden.source, hidden.destination, hidden.address)

        def hide(text: str) -> str:
            return fill_holes(self.text(make_holes(text, result)), names)

        warnings = tuple(map(hide, result.warnings))
        if accepted := hidden.accepted:
            owner = self._hide_owner(accepted.owner)
            accepted = replace(self._with_texts(accepted, ("id", "reason")), owner=owner)
            hidden = replace(hidden, accepted=accepted)
        story = result.story and self._hide_story(result.story)
        return replace(hidden, because=hide(result.because), warnings=warnings, story=story)

    def changes(self, changes: Changes) -> Changes:
        """Give what changed since an earlier run."""

        def hide(results: Iterable[Result]) -> list[Result]:
            return [self.result(one) for one in results]

        def hide_seen(by_text: Mapping[str, list[Result]]) -> dict[str, list[Result]]:
            return {self.text(seen): hide(results) for seen, results in by_text.items()}

        return replace(
            changes,
            worse=hide(changes.worse),
            fixed=hide(changes.fixed),
            still=hide(changes.still),
            unknown=hide(changes.unknown),
            otherwise=hide_seen(changes.otherwise),
            moved=hide_seen(changes.moved),
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
        facts = {**host.facts, "user": _hide_user(host.facts.get("user"))}
        return replace(
            self._with_texts(host, _OF_HOST),
            zone=self._new[host.zone] if host.zone else None,
            user=_hide_user(host.user),
            facts=self._hide_value({key: facts[key] for key in host.facts}),
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

    def _hide_names(self, text: str) -> str:
        if text in self._new:
            return self._new[text]
        listed = self._listed.sub(lambda found: self._new.get(found[0].lower(), "name"), text)
        return _UNLISTED.sub(self._hide_unlisted, listed)

    def _hide_unlisted(self, found: re.Match[str]) -> str:
        text, kind = found[0], str(found.lastgroup)
        if kind == "hosts":
            return "several hosts"
        if kind == "user":
            return "user"
        if kind == "address" and not _is_telling(text):
            return text
        return self._name_anew(text, "address" if kind in ("address", "mac") else "name")

    def _hide_owner(self, owner: str) -> str:
        return self._new.get(owner) or self._name_anew(owner, "owner")

    def _name_anew(self, old: str, kind: str) -> str:
        """Give the new name of something, the next of its kind where it has none."""
        if old not in self._new:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._new[old] = f"{kind}-{self._counts[kind]}"
            self._new.setdefault(old.lower(), self._new[old])
        return self._new[old]


def _hide_user(name: str | None) -> str | None:
    return name if name in (None, "root") else "user"


def _match_names(names: Iterable[str]) -> re.Pattern[str]:
    """Match these names, the longest first, where they are not a part of a longer word.

    A name of one letter would be found in any sentence: as an end of its flow it is known.
    """
    known = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    words = "|".join(map(re.escape, known))
    return re.compile(f"(?<![a-z0-9])(?:{words})(?![a-z0-9])" if words else "(?!)", re.IGNORECASE)


def _is_telling(text: str) -> bool:
    """Tell an address of somebody from 0.0.0.0, loopback, and what is no address, as 10:00:00."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_loopback)

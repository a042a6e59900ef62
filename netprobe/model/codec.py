"""The JSON form of results, findings and runs: the keys of run and record.

Readers ignore keys that they do not know and give every key that may be missing its default, so
that an older netprobe reads a newer file of the same schema number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.coverage import Coverage
from netprobe.model.firewall import FirewallRule, FirewallRules
from netprobe.model.kept_finding import KeptFinding, Member
from netprobe.model.plan import Skipped
from netprobe.model.ports import MAX_PORT, MIN_PORT, WITH_PORTS, Ports
from netprobe.model.result import UNPROBED, Finding, Result, Summary
from netprobe.model.run import RunInfo
from netprobe.model.shapes import Name, ProtocolText, RowId
from netprobe.model.story import NAMES_OF_PLACES, Story, StoryError, StoryPlace
from netprobe.model.struct_json import Json, WrongValue, from_json, to_json

RUN_SCHEMA = "netprobe.run/1"
RECORD_SCHEMA = "netprobe.record/1"
REQUEST_SCHEMA = "netprobe.request/1"

PlanOrder = tuple[int, int, int]

# What every run has; a file without them is none.
NEEDED_OF_RUN = ("started_at", "matrices")

# The keys of a result that a file may lack although the field has no default.
RESULT_DEFAULTS: Json = {
    "purpose": "", "row": "", "optional": False, "expect": "allowed", "waived": None,
    "proof": "none", "where": [], "because": "",
}  # fmt: skip
# The keys of a result that are not there where they are null.
LEFT_OUT_OF_RESULT = (
    "path_mtu_bytes", "needed_mtu_bytes", "holder", "device", "driver", "accepted", "known",
    "stops", "story", "any_of", "spared", "also", "name_servers", "quality",
    "sent_from", "came_from",
)  # fmt: skip
LEFT_OUT_OF_FINDING = ("evidence", "stops", "everything", "no_evidence")
# The keys by which a member of a finding names its result.
MEMBER_KEYS = Member.__struct_fields__
# A line with the members of more could not be read again: such a record keeps no numbers.
MOST_KEPT_MEMBERS = 100_000


class RecordHeader(Struct, frozen=True):
    """What a record's first line has beside the keys of a run: the port ranges of the plan.

    An element of ``ranges`` is matrix, requirement, protocol and its ranges.
    """

    ranges: tuple[tuple[Name, RowId, ProtocolText, tuple[tuple[int, int], ...]], ...] = ()


class NamedPlace(StoryPlace, frozen=True):
    """One of the six, with its name as ``source-out``."""

    place: str = ""


class StoryJson(Struct, frozen=True):
    """``story`` of a result: the six places in their order, and errors and resets."""

    places: tuple[NamedPlace, ...] = ()
    errors: tuple[StoryError, ...] = ()


def result_to_json(result: Result) -> Json:
    """Give one element of ``results``, with the keys in the order of docs/result-json.md.

    A result about a path MTU has two more keys, one about a port that is taken has ``holder``, one
    about a network card ``device`` and ``driver``. One that does not decide may have ``accepted``
    or ``known``. One whose row says what it stops has ``stops``, and one that was probed and is not
    ``pass`` has ``story``.
    """
    data: Json = to_json(result)
    del data["order"]
    for key in LEFT_OUT_OF_RESULT:
        if data[key] in (None, ()):
            del data[key]
    if "story" in data:
        data["story"] = _list_places(data.pop("story"))
    return data


def story_to_json(story: Story) -> Json:
    """Give ``story`` of a result."""
    return _list_places(to_json(story))


def _list_places(story: Json) -> Json:
    """Give a story, of which each place is a key, with one list of its places."""
    places = [{"place": name, **story[key]} for key, name in NAMES_OF_PLACES.items()]
    return {"places": places, "errors": story["errors"]}


def _story_from_json(data: object) -> Story:
    """Read ``story`` of a result; places of other names are ignored. Raises WrongValue."""
    try:
        read = from_json(StoryJson, data)
    except WrongValue as error:
        error.add_step("story")
        raise
    named = {one.place: one for one in read.places}
    places = {key: named[name] for key, name in NAMES_OF_PLACES.items() if name in named}
    return Story(
        errors=read.errors,
        **{
            key: StoryPlace(*(getattr(one, field) for field in StoryPlace.__struct_fields__))
            for key, one in places.items()
        },
    )


def result_from_json(data: Mapping[str, Any], order: object) -> Result:
    """Read one element of ``results``. Raises WrongValue, which names the key, where it is none."""
    place = list(order) if isinstance(order, tuple) else order
    known = {"end_port": data.get("port"), **RESULT_DEFAULTS, **data, "order": place}
    told = known.pop("story", None)
    result = from_json(Result, known)
    if told is not None:
        result = replace(result, story=_story_from_json(told))
    first, last = result.port, result.end_port
    if (first, last) != (None, None):
        check_range(first, last)
    check_service(result.protocol, result.ports)
    return result


def rules_from_json(data: Mapping[str, Any]) -> tuple[FirewallRule, ...]:
    """Read the rules of a request. Raises WrongValue."""
    rules = from_json(FirewallRules, data).rules
    for rule in rules:
        check_ranges(rule.ports)
        check_service(rule.protocol, rule.ports)
    return rules


def check_service(protocol: str, ports: Ports) -> None:
    """Raise WrongValue unless a protocol with ports has some, and one without has none.

    Many firewalls take a rule without ports for one that opens all of them.
    """
    if bool(ports) is not (protocol in WITH_PORTS):
        told, expected = ("no ports", "some") if protocol in WITH_PORTS else ("ports", "none")
        raise WrongValue(f"{protocol} with {told}, expected {expected}")


def check_range(first: int | None, last: int | None) -> None:
    """Raise WrongValue unless these are the first and the last port of a range."""
    if first is None or last is None or not MIN_PORT <= first <= last <= MAX_PORT:
        words = f"{first} to {last} is no range of ports"
        raise WrongValue(f"{words}, expected {MIN_PORT} to {MAX_PORT}, or null twice")


def check_ranges(ports: Ports) -> None:
    """Raise WrongValue unless all of these are ranges of ports."""
    for first, last in ports:
        check_range(first, last)


def finding_to_json(finding: Finding) -> Json:
    """Give one element of ``findings``; ``count`` is in flows, ``members`` name their results."""
    data: Json = to_json(replace(finding, members=(), shown_by=None))
    del data["members"], data["shown_by"]
    data = {"number": data.pop("number"), **data}
    for key in LEFT_OUT_OF_FINDING:
        if not data[key]:
            del data[key]
    data["count"] = sum(member.port_count for member in finding.members)
    data["members"] = to_json(keep_finding(finding).members)
    return data


def keep_finding(finding: Finding) -> KeptFinding:
    """Give what a file keeps of a finding."""
    members = tuple(
        Member(*(getattr(member, key) for key in MEMBER_KEYS)) for member in finding.members
    )
    kept = KeptFinding(finding.number, members, finding.everything, finding.evidence)
    return replace(kept, no_evidence=finding.no_evidence)


def keep_findings(findings: Sequence[Finding]) -> tuple[KeptFinding, ...] | None:
    """Give what a record keeps of the findings of its run; None where they are too large for it."""
    if sum(len(one.members) for one in findings) > MOST_KEPT_MEMBERS:
        return None
    return tuple(map(keep_finding, findings))


def summary_to_json(summary: Summary) -> Json:
    """Give the ``summary`` object: flows per verdict, JSON keys with an underscore."""
    data = {verdict.replace("-", "_"): number for verdict, number in summary.counts.items()}
    further = ("skipped", "refusals", "waived", "optional", "accepted", "known", "spared")
    return data | {name: getattr(summary, name) for name in further}


def info_to_json(info: RunInfo) -> Json:
    """Give the keys of a run beside its results; the last line of a record holds the same."""
    data: Json = to_json(replace(info, elapsed_s=round(info.elapsed_s, 3)))
    for key in ("live", "names_set", "quality_samples", "findings"):
        if data[key] is None:
            del data[key]
    if not info.some_ports:
        del data["some_ports"]
    return {**data, "skipped": [skipped_to_json(skipped) for skipped in info.skipped]}


def info_from_json(data: Mapping[str, Any]) -> RunInfo:
    """Read a run's own keys, from ``netprobe.run/1`` or from a record's first or last line.

    Raises WrongValue for a value of another type, and where a key is missing that every run has.
    """
    missing = next((key for key in NEEDED_OF_RUN if key not in data), None)
    if missing is not None:
        raise WrongValue(f'the key "{missing}" is missing')
    info = from_json(RunInfo, data)
    for ports in (one.ports for one in info.requirements):
        check_ranges(ports)
    for finding in info.findings or ():
        if finding.number < 1:
            raise WrongValue(f"findings: the number {finding.number}, expected 1 or more")
    if info.coverage is not None:
        _check_coverage(info.coverage)
    return info


def _check_coverage(about: Coverage) -> None:
    """Raise WrongValue where a group names no ports or hosts that there are."""
    for group in about.unprobed:
        check_ranges(group.ports)
        for place in (group.sources, group.destinations):
            if not 0 <= place < len(about.host_sets) or not about.host_sets[place]:
                raise WrongValue(f"coverage: {place} is no place of a list of hosts")
        if group.verdict not in UNPROBED or group.flows < 0:
            raise WrongValue("coverage: expected flows that were not probed")
        if (group.verdict == "covered") != bool(group.by):
            raise WrongValue("coverage: what is covered has flows that stand for it")


def header_from_json(data: Mapping[str, Any]) -> RecordHeader:
    """Read a record's first line. Raises WrongValue."""
    header = from_json(RecordHeader, data)
    for *_, ports in header.ranges:
        check_ranges(ports)
    return header


def skipped_to_json(skipped: Skipped) -> Json:
    """One element of ``skipped``; the host keys are there only where the reason is about hosts."""
    return {key: value for key, value in to_json(skipped).items() if value is not None}

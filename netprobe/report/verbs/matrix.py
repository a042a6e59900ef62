"""A matrix as people and programs read it: a table, or the file that it could have been."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from msgspec.structs import asdict

from netprobe.model.matrix import (
    ChosenMatrix,
    Condition,
    DocumentedPorts,
    DocumentSource,
    Keepalive,
    Matrix,
    PortEntry,
    Requirement,
    Role,
    Setting,
    SettingRef,
    SettingValue,
    Stops,
    Waiver,
    Warn,
    probe_to_file,
    write_time,
)  # fmt: skip
from netprobe.model.printable import yaml_scalar
from netprobe.model.quality import QualityLimits
from netprobe.model.struct_json import to_json
from netprobe.report.page.page import Field, Line, PagePart, field, write_page
from netprobe.report.page.wording import plural

SCHEMA = "netprobe.matrix/1"
_EXISTING = {True: "runs before the installation", False: "need not run before the installation"}
_SHORT_LIST = 90  # a list of scalars that fits on a line is written on one

WhyNot = Callable[[Requirement], str | None]


def write_matrix_json(chosen: ChosenMatrix, stream: TextIO) -> None:
    """Write the matrix as the file it could have been, in JSON."""
    stream.write(json.dumps(matrix_document(chosen), indent=1, ensure_ascii=False) + "\n")


def write_matrix_yaml(chosen: ChosenMatrix, stream: TextIO) -> None:
    """Write the matrix as a file that loads again, with the chosen values as its defaults."""
    stream.write(to_yaml(matrix_document(chosen)))


def matrix_document(chosen: ChosenMatrix) -> dict[str, Any]:
    """Give the keys of ``netprobe.matrix/1``; whatever was extended or overridden is worked in."""
    matrix = chosen.matrix
    return _without_empty(
        {
            "schema": SCHEMA,
            "name": matrix.name,
            "title": matrix.title,
            "document": _document_to_data(matrix),
            "layer": matrix.layer,
            "claims": {name: _claim_to_data(value) for name, value in matrix.claims.items()},
            "local": matrix.local,
            "overlay-mtu": matrix.overlay_mtu,
            "roles": {role.name: _fields_below(role, "name") for role in matrix.roles.values()},
            "settings": {
                setting.name: _setting_to_data(setting, chosen.settings)
                for setting in matrix.settings.values()
            },
            "requirements": [
                _requirement_to_data(requirement) for requirement in matrix.requirements
            ],
            "ranges": [_group_to_data(group) for group in matrix.ranges],
            "retired": [_group_to_data(group) for group in matrix.retired],
            "waive": {
                waiver.requirement: _fields_below(waiver, "requirement")
                for waiver in matrix.waivers.values()
            },
        }
    )


def _document_to_data(matrix: Matrix) -> dict[str, Any]:
    sources = [_without_empty(to_json(one)) for one in matrix.sources]
    return _without_empty({**matrix.document, "sources": sources})


def _claim_to_data(value: str | SettingRef) -> str | dict[str, str]:
    if isinstance(value, SettingRef):
        return asdict(value)
    return value


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, "", [], (), {}, False)}


def _fields_below(item: Role | Waiver, key: str) -> dict[str, Any]:
    """Give what a file says of something below its key."""
    return _without_empty({name: one for name, one in to_json(item).items() if name != key})


def _setting_to_data(setting: Setting, settings: Mapping[str, SettingValue]) -> dict[str, Any]:
    data: dict[str, Any] = {"type": setting.type}
    value = settings[setting.name]
    followed = setting.default
    if setting.values:
        data["values"] = list(setting.values)
    if isinstance(followed, SettingRef) and settings[followed.setting] == value:
        data["default"] = {"setting": followed.setting}
    else:
        data["default"] = list(value) if isinstance(value, tuple) else value
    if setting.description:
        data["description"] = setting.description
    if setting.resolves_to is not None:
        data["resolves_to"] = list(setting.resolves_to)
    return data


def _requirement_to_data(requirement: Requirement) -> dict[str, Any]:
    data = _without_empty(
        {
            "id": requirement.id,
            "from": _one_or_many(requirement.sources),
            "to": _one_or_many(requirement.destinations),
            "tcp": [_value_to_data(entry) for entry in requirement.tcp],
            "udp": [_value_to_data(entry) for entry in requirement.udp],
            "family": requirement.family and f"ipv{requirement.family}",
            "icmp": "echo" if requirement.icmp else None,
            "ipproto": list(requirement.ipproto),
            "purpose": requirement.purpose,
            "row": requirement.row,
            "when": _condition_to_data(requirement.when),
            "unless": _condition_to_data(requirement.unless),
            "optional": requirement.optional,
            "stops": requirement.stops and _stops_to_data(requirement.stops),
            "expect": None if requirement.expect == "allowed" else requirement.expect,
            "probe": probe_to_file(requirement.probe),
            "sni": _value_to_data(requirement.sni),
            "process": list(requirement.process),
            "owner": list(requirement.owner),
            "binds": requirement.binds,
            "any_of": requirement.any_of,
            "multicast": requirement.multicast,
            "quality": requirement.quality and requirement.quality.to_file(),
            "keepalive": requirement.keepalive and requirement.keepalive.to_file(),
            "persistence": requirement.persistence,
            "warnings": [
                _without_empty({"text": warn.text, "when": _condition_to_data(warn.when)})
                for warn in requirement.warnings
            ],
        }
    )
    # Unlike other keys ``existing: false`` says more than no key: it overrules the role.
    return data if requirement.existing is None else {**data, "existing": requirement.existing}


def _stops_to_data(stops: Stops) -> str | dict[str, str]:
    return {stops.weight: stops.reason} if stops.reason else stops.weight


def _group_to_data(group: DocumentedPorts) -> dict[str, Any]:
    return _without_empty(
        {
            "tcp": [_value_to_data(entry) for entry in group.tcp],
            "udp": [_value_to_data(entry) for entry in group.udp],
            "purpose": group.purpose,
            "when": _condition_to_data(group.when),
        }
    )


def _one_or_many(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _value_to_data(value: PortEntry | str | None) -> Any:
    """Ports or a server name as the file has them, or the setting that gives them."""
    if isinstance(value, SettingRef):
        return {"setting": value.setting}
    if value is None or isinstance(value, str):
        return value
    first, last = value
    return first if first == last else f"{first}-{last}"


def _condition_to_data(condition: Condition) -> dict[str, Any]:
    return {
        name: wanted[0] if len(wanted) == 1 else list(wanted) for name, wanted in condition.terms
    }


def write_matrix_text(chosen: ChosenMatrix, why_not: WhyNot, stream: TextIO) -> None:
    """Write the matrix for people; each requirement says whether these settings skip it."""
    write_page(_page_parts(chosen, why_not), stream)


def _page_parts(chosen: ChosenMatrix, why_not: WhyNot) -> Iterator[PagePart]:
    matrix = chosen.matrix
    layer = " (a layer, chosen beside the matrix of a platform)" if matrix.layer else ""
    yield Line(f"{matrix.name}: {matrix.title}{layer}", "strong")
    yield from field("document", [", ".join(map(str, matrix.document.values()))])
    yield from field("sources", [_source_line(one) for one in matrix.sources])
    yield from field("claims", [_claim_line(chosen, name) for name in matrix.claims])
    yield from field("roles", [_role_line(chosen, name) for name in matrix.roles])
    yield from field("settings", [_setting_line(chosen, name) for name in matrix.settings])
    yield from field("ranges", [_group_line(group, chosen) for group in matrix.ranges])
    yield from field("retired", [_group_line(group, chosen) for group in matrix.retired])
    for requirement in matrix.requirements:
        yield Line()
        yield from _requirement_parts(requirement, why_not(requirement), chosen.settings)
        waiver = matrix.waivers.get(requirement.id)
        if waiver is not None:
            until = f", until {waiver.until}" if waiver.until else ""
            yield from field("waived", [f"{waiver.reason}{until}"])
    yield Line()
    applying = sum(1 for requirement in matrix.requirements if why_not(requirement) is None)
    total = plural(len(matrix.requirements), "requirement")
    yield Line(f"{total}, {applying} of them with these settings", "strong")


def _source_line(source: DocumentSource) -> str:
    return f"{source.repository}, {source.path} at {source.commit}"


def _claim_line(chosen: ChosenMatrix, name: str) -> str:
    value = chosen.matrix.claims[name]
    by = f" (setting {value.setting})" if isinstance(value, SettingRef) else ""
    return f"{name}: {chosen.read_claim(name)}{by}"


def _role_line(chosen: ChosenMatrix, name: str) -> str:
    role = chosen.matrix.roles[name]
    marks = [
        *([f"is {', '.join(role.implies)} too"] if role.implies else []),
        *(["runs before the installation"] if role.existing else []),
        *(["nothing can run there"] if role.vantage == "none" else []),
    ]
    head = f"{name} ({'; '.join(marks)})" if marks else name
    words = f": {role.description}" if role.description else ""
    called = chosen.matrix.words_of(name)
    aliases = f" Also called {', '.join(called)}." if called else ""
    return f"{head}{words}{aliases}"


def _setting_line(chosen: ChosenMatrix, name: str) -> str:
    setting = chosen.matrix.settings[name]
    values = f" [{', '.join(setting.values)}]" if setting.values else f" [{setting.type}]"
    words = f": {setting.description}" if setting.description else ""
    return f"{name}={_value_text(chosen.settings[name])}{values}{words}"


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _requirement_parts(
    requirement: Requirement, why_not: str | None, settings: Mapping[str, SettingValue]
) -> Iterator[PagePart]:
    marks = [
        *(["optional"] if requirement.optional else []),
        *([f"IPv{requirement.family} alone"] if requirement.family else []),
        *(["must NOT get through"] if requirement.expect == "denied" else []),
        *([_EXISTING[requirement.existing]] if requirement.existing is not None else []),
        *([f"not with these settings: {why_not}"] if why_not else []),
    ]
    words = f" ({'; '.join(marks)})" if marks else ""
    yield Line(f"{requirement.id}{words}", "quiet" if why_not else "strong")
    ends = f"{', '.join(requirement.sources)} → {', '.join(requirement.destinations)}"
    yield Field("flows", (f"{ends}  {_word_ports(requirement, settings)}",))
    yield from field("purpose", [requirement.purpose])
    yield from field("row", [requirement.row])
    yield from field("stops", [_stops_text(requirement.stops)])
    yield from field("when", [_condition_text(requirement.when)])
    yield from field("unless", [_condition_text(requirement.unless)])
    yield from field("probe", [str(requirement.probe or "")])
    sni = "" if requirement.sni is None else _entry_text(requirement.sni, settings)
    yield from field("sni", [sni])
    yield from field("process", [", ".join(requirement.process)])
    yield from field("owner", [", ".join(requirement.owner)])
    yield from field("binds", [requirement.binds or ""])
    yield from field("any of", [requirement.any_of or ""])
    yield from field("multicast", [requirement.multicast or ""])
    yield from field("quality", [_quality_text(requirement.quality)])
    yield from field("keepalive", [_keepalive_text(requirement.keepalive)])
    yield from field("persistence", [requirement.persistence or ""])
    yield from field("warning", [_warning_text(warn) for warn in requirement.warnings])


def _keepalive_text(keepalive: Keepalive | None) -> str:
    if keepalive is None:
        return ""
    data = write_time(keepalive.data_s) if keepalive.data_s else ""
    tcp = f"TCP keepalives {write_time(keepalive.tcp_s)}" if keepalive.tcp_s else ""
    return ", ".join(one for one in (data, tcp) if one)


def _stops_text(stops: Stops | None) -> str:
    if stops is None:
        return ""
    return f"{stops.weight}: {stops.reason}" if stops.reason else stops.weight


def _quality_text(limits: QualityLimits | None) -> str:
    given = {} if limits is None else limits.to_file()
    return ", ".join(key if value is True else f"{key} {value}" for key, value in given.items())


def _warning_text(warn: Warn) -> str:
    """Give a warning with the settings for which it holds; a reader's own may be others."""
    return f"{warn.text} (when {_condition_text(warn.when)})" if warn.when.terms else warn.text


def _group_line(group: DocumentedPorts, chosen: ChosenMatrix) -> str:
    when = f" (when {_condition_text(group.when)})" if group.when.terms else ""
    words = f": {group.purpose}" if group.purpose else ""
    return f"{_word_ports(group, chosen.settings)}{when}{words}"


def _word_ports(rows: Requirement | DocumentedPorts, settings: Mapping[str, SettingValue]) -> str:
    listed = (("tcp", rows.tcp), ("udp", rows.udp))
    parts = [
        f"{protocol} {', '.join(_entry_text(entry, settings) for entry in entries)}"
        for protocol, entries in listed
        if entries
    ]
    if isinstance(rows, Requirement):
        parts += ["icmp echo"] if rows.icmp else []
        parts += [f"ipproto {number}" for number in rows.ipproto]
    return "; ".join(parts)


def _entry_text(entry: PortEntry | str, settings: Mapping[str, SettingValue]) -> str:
    """Give ports or a server name as the file has them, or the value of a setting."""
    if isinstance(entry, SettingRef):
        return f"{settings[entry.setting] or 'none yet'} (setting {entry.setting})"
    return str(_value_to_data(entry))


def _condition_text(condition: Condition) -> str:
    return " and ".join(
        f"{name} is {' or '.join(_value_text(value) for value in wanted)}"
        for name, wanted in condition.terms
    )


def to_yaml(data: Mapping[str, Any]) -> str:
    """Plain data as YAML 1.2 for people to read and edit, mappings in their own order."""
    return "".join(f"{line}\n" for line in _mapping_lines(data))


def _mapping_lines(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry_lines(f"{yaml_scalar(key)}:", value)


def _entry_lines(head: str, value: Any) -> Iterator[str]:
    """Give a head (``key:`` or ``-``) and its value, on the same line where that is short."""
    flow = _one_line(value)
    scalar = not isinstance(value, Mapping | list | tuple)
    if flow is not None and (scalar or len(flow) <= _SHORT_LIST):
        yield f"{head} {flow}"
        return
    yield head
    lines = _mapping_lines(value) if isinstance(value, Mapping) else _sequence_lines(value)
    for line in lines:
        yield f"  {line}"


def _sequence_lines(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping_lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        else:
            yield from _entry_lines("-", item)


def _one_line(value: Any) -> str | None:
    """Give the value on one line: scalars, and collections of nothing but scalars."""
    if isinstance(value, Mapping):
        parts = [(yaml_scalar(key), _one_line(item)) for key, item in value.items()]
        if len(parts) > 1 or any(text is None for _, text in parts):
            return None
        return "{" + ", ".join(f"{key}: {text}" for key, text in parts) + "}"
    if isinstance(value, list | tuple):
        texts = [_one_line(item) for item in value]
        known = [text for text in texts if text is not None]
        return f"[{', '.join(known)}]" if len(known) == len(texts) else None
    return yaml_scalar(value)

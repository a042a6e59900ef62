"""From a matrix file that was checked to the model's matrix, with the changes of ``extends``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from netprobe.load.matrix.models import ChangeFile, DocumentedPortsFile, MatrixFile
from netprobe.load.matrix.probe_models import ProbeFile
from netprobe.load.matrix.quality_models import build_quality
from netprobe.load.matrix.setting_values import parse_term
from netprobe.load.matrix.settings import Known
from netprobe.load.yaml.document import Document
from netprobe.model.matrix import (
    AnyProbe,
    Condition,
    DocumentedPorts,
    DocumentSource,
    HttpProbe,
    Matrix,
    Requirement,
    Role,
    Stops,
    Waiver,
    Warn,
)


def build(
    file: MatrixFile, settings: Known, base: Matrix | None, name: str, document: Document
) -> Matrix:
    """Build the matrix of a file without problems; ``base`` is the one that it extends."""
    start = base or Matrix(name, "", {}, {}, ())
    overridden = (
        replace(
            old,
            **_given_keys(file.override[old.id], settings),
            place=document.place(("override", old.id)),
        )
        if old.id in file.override
        else old
        for old in start.requirements
    )
    added = (
        Requirement(
            id=one.id,
            **_given_keys(one, settings),
            place=document.place(("requirements", index, "id")),
        )
        for index, one in enumerate(file.requirements)
    )
    waivers = {
        name: Waiver(name, waiver.reason.strip(), waiver.until)
        for name, waiver in file.waive.items()
    }
    return Matrix(
        name=name,
        title=file.title or start.title,
        roles=_build_roles(file, start),
        settings={name: setting for name, setting in settings.items() if setting is not None},
        requirements=(*overridden, *added),
        document={**start.document, **_build_document(file)},
        sources=_build_sources(file) or start.sources,
        local=start.local if file.local is None else file.local,
        waivers={**start.waivers, **waivers},
        ranges=(*start.ranges, *_build_groups(file.ranges, settings)),
        overlay_mtu=start.overlay_mtu if file.overlay_mtu is None else file.overlay_mtu,
        retired=(*start.retired, *_build_groups(file.retired, settings)),
        layer=start.layer if file.layer is None else file.layer,
        claims={**start.claims, **file.claims},
    )


def _build_document(file: MatrixFile) -> dict[str, str]:
    return file.document.model_dump(exclude_none=True, exclude={"sources"})


def _build_sources(file: MatrixFile) -> tuple[DocumentSource, ...]:
    return tuple(
        DocumentSource(one.repository, one.path, one.commit, one.hash or "", one.note or "")
        for one in file.document.sources
    )


def _build_groups(groups: list[DocumentedPortsFile], settings: Known) -> Iterator[DocumentedPorts]:
    for one in groups:
        yield DocumentedPorts(**_given_keys(one, settings))


def _build_roles(file: MatrixFile, start: Matrix) -> dict[str, Role]:
    roles = dict(start.roles)
    for name, body in file.roles.items():
        given = body.model_dump(exclude_unset=True)
        given |= {key: tuple(given[key]) for key in ("implies", "aliases") if key in given}
        roles[name] = replace(roles.get(name, Role(name)), **given)
    return roles


def _given_keys(
    file: ChangeFile | DocumentedPortsFile, settings: Known
) -> dict[str, Any]:  # Any: arguments of Requirement or DocumentedPorts
    """Give the keys that the file has, as the model wants them."""
    given: dict[str, Any] = {}
    for key in file.model_fields_set - {"id"}:
        value = getattr(file, key)
        if key in ("when", "unless"):
            given[key] = _build_condition(value, settings)
        elif key == "warnings":
            given[key] = tuple(
                Warn(warn.text.strip(), _build_condition(warn.when, settings)) for warn in value
            )
        elif key in _BUILDERS:
            given[key] = _BUILDERS[key](value)
        elif key == "family":
            given[key] = None if value is None else int(value.removeprefix("ipv"))
        elif key == "stops":
            given[key] = None if value is None else Stops(value.weight, value.reason.strip())
        elif key == "icmp":
            given[key] = value == "echo"
        else:
            given[key] = tuple(value) if isinstance(value, list) else value
    return given


def _build_probe(file: ProbeFile | None) -> AnyProbe | None:
    if file is None or file.http is None:
        return None if file is None else file.name
    http = file.http
    header = tuple(http.header.items())
    return HttpProbe(http.path, tuple(http.status), header, http.body, http.tls, http.http2)


_BUILDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "probe": _build_probe,
    "quality": build_quality,
}


def _build_condition(raw: Mapping[str, object], settings: Known) -> Condition:
    """Build a condition that was checked, typed by its settings."""
    terms = []
    for name, wanted in raw.items():
        setting = settings[name]
        assert setting is not None
        values = wanted if isinstance(wanted, list) else [wanted]
        terms.append((name, tuple(parse_term(setting, value) for value in values)))
    return Condition(tuple(terms))

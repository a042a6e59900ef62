"""From a matrix file that was checked to the model's matrix, with the changes of ``extends``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from netprobe.load.matrix.checks import PROTOCOL_KEYS, condition
from netprobe.load.matrix.models import ChangeFile, MatrixFile, RequirementFile, WarnFile
from netprobe.load.matrix.settings import Known
from netprobe.model.matrix import Matrix, Requirement, Role, Setting, Waiver, Warn


def build(file: MatrixFile, settings: Known, base: Matrix | None, name: str) -> Matrix:
    """The matrix of a file without problems; ``base`` is the one that it extends."""
    start = base or Matrix(name, "", {}, {}, ())
    overridden = tuple(
        _change_requirement(requirement, file.override.get(requirement.id), settings)
        for requirement in start.requirements
    )
    added = tuple(_build_requirement(requirement, settings) for requirement in file.requirements)
    return Matrix(
        name=name,
        title=file.title or start.title,
        roles=_build_roles(file, start),
        settings=_build_settings(settings),
        requirements=overridden + added,
        document={**start.document, **file.document.model_dump(exclude_none=True)},
        local=start.local if file.local is None else file.local,
        waivers={**start.waivers, **_build_waivers(file)},
    )


def empty_overrides(matrix: Matrix, overridden: Mapping[str, ChangeFile]) -> list[str]:
    """Requirements that an override left with nothing to test."""
    return [
        requirement.id
        for requirement in matrix.requirements
        if requirement.id in overridden
        and not any(getattr(requirement, key) for key in PROTOCOL_KEYS)
    ]


def _build_roles(file: MatrixFile, start: Matrix) -> dict[str, Role]:
    roles = dict(start.roles)
    for name, body in file.roles.items():
        old = roles.get(name, Role(name))
        given = body.model_dump(exclude_unset=True)
        if "implies" in given:
            given["implies"] = tuple(given["implies"])
        roles[name] = replace(old, **given)
    return roles


def _build_settings(settings: Known) -> dict[str, Setting]:
    return {name: setting for name, setting in settings.items() if setting is not None}


def _build_waivers(file: MatrixFile) -> dict[str, Waiver]:
    return {
        name: Waiver(name, waiver.reason.strip(), waiver.until)
        for name, waiver in file.waive.items()
    }


def _build_requirement(file: RequirementFile, settings: Known) -> Requirement:
    given = _given_keys(file, settings)
    return Requirement(id=file.id, **given)


def _change_requirement(
    old: Requirement, change: ChangeFile | None, settings: Known
) -> Requirement:
    return replace(old, **_given_keys(change, settings)) if change else old


def _given_keys(
    file: ChangeFile, settings: Known
) -> dict[str, Any]:  # Any: arguments of Requirement
    """The keys that the file has, as the model wants them."""
    given: dict[str, Any] = {}
    for key in file.model_fields_set - {"id"}:
        value = getattr(file, key)
        if key in ("when", "unless"):
            given[key] = condition(value, settings)
        elif key == "warnings":
            given[key] = tuple(_build_warning(warn, settings) for warn in value)
        elif key == "icmp":
            given[key] = value == "echo"
        else:
            given[key] = tuple(value) if isinstance(value, list) else value
    return given


def _build_warning(file: WarnFile, settings: Known) -> Warn:
    return Warn(file.text.strip(), condition(file.when, settings))

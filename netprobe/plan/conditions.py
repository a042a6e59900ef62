"""Whether a requirement applies under the settings, and the reason in words where it does not."""

from __future__ import annotations

from collections.abc import Mapping

from netprobe.model.matrix import ChosenMatrix, Condition, Requirement, SettingValue
from netprobe.model.version import in_range


def why_not(requirement: Requirement, chosen: ChosenMatrix) -> str | None:
    """Give the reason why the requirement does not apply, or None where it does."""
    for name, wanted in requirement.when.terms:
        if not _matches_setting(name, wanted, chosen):
            return _word_unmet_condition(name, wanted, chosen.settings)
    if requirement.unless.terms and holds(requirement.unless, chosen):
        name, wanted = requirement.unless.terms[0]
        return f"setting {name} is {_setting_text(chosen.settings[name])}"
    return None


def holds(condition: Condition, chosen: ChosenMatrix) -> bool:
    """Tell whether every setting of a condition has one of the values that it lists.

    A condition without terms holds.
    """
    return all(_matches_setting(name, wanted, chosen) for name, wanted in condition.terms)


def _matches_setting(name: str, wanted: tuple[str | bool | int, ...], chosen: ChosenMatrix) -> bool:
    value = chosen.settings[name]
    if chosen.matrix.settings[name].type == "version":
        return any(in_range(str(value), str(term)) for term in wanted)
    if isinstance(value, tuple):
        return any(term in value for term in wanted)
    return value in wanted


def _word_unmet_condition(
    name: str, wanted: tuple[str | bool | int, ...], settings: Mapping[str, SettingValue]
) -> str:
    value = settings[name]
    words = " or ".join(_setting_text(term) for term in wanted)
    if isinstance(value, tuple):
        return f"setting {name} lacks {words}"
    return f"setting {name} is {_setting_text(value)}, not {words}"


def _setting_text(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value) or "empty"
    return str(value) or "empty"

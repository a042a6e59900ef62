"""What manifests say of settings, as each chosen matrix understands it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from netprobe.errors import Problem
from netprobe.load.manifest.said import Said, SettingSaid
from netprobe.load.matrix.setting_values import parse
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import listed, quoted, word_nearest
from netprobe.model.inventory import Inventory, Taken
from netprobe.model.matrix import Matrix, SettingValue

# Values of settings by the names of matrix and setting.
ChosenValues = dict[str, dict[str, SettingValue]]


class _Choice(Struct):
    """What has been chosen so far, and by whom; beside it what the user gave."""

    inventory: Inventory
    sets: Sequence[str]
    problems: list[Problem]
    values: ChosenValues = field(default_factory=dict)
    by: dict[tuple[str, str], SettingSaid] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unknown_items: dict[str, list[str]] = field(default_factory=dict)


def choose_said(
    said: Sequence[SettingSaid],
    matrices: Sequence[Matrix],
    inventory: Inventory,
    sets: Sequence[str],
    problems: list[Problem],
) -> tuple[ChosenValues, list[Taken], list[str]]:
    """Give the values for each matrix, what was taken for them, and notes.

    Two manifests that contradict each other are a problem; a weak word only gives way.
    """
    choice = _Choice(inventory, sets, problems)
    taken = []
    for one in sorted(said, key=lambda one: one.weak):
        gives: dict[str, list[str]] = {}
        for matrix in matrices:
            if one.name in matrix.settings and _take_value(one, matrix, choice):
                text = _word_value(one, matrix, choice)
                gives.setdefault(text, []).append(matrix.name)
        if gives:
            words = (
                text if len(matrices) == 1 else f"{text} ({listed(names)})"
                for text, names in gives.items()
            )
            said_why = f"; {one.reason}" if one.reason else ""
            taken.append(one.origin.taken(", ".join(words) + said_why))
    for name, items in choice.unknown_items.items():
        choice.notes.append(
            f"manifests also say of {name}: {listed(dict.fromkeys(items))}; no row depends on these"
        )
    return choice.values, taken, choice.notes


def word_unknown_values(said: Sequence[Said], matrices: Sequence[Matrix]) -> Iterator[str]:
    """Give a note for each value that none of the matrices with such a setting knows."""
    for one in said:
        if not isinstance(one, SettingSaid) or one.items:
            continue
        able = [matrix for matrix in matrices if one.name in matrix.settings]
        if able and all(_read_value(one, matrix) is None for matrix in able):
            value = quoted(str(one.values[0]))
            near = word_nearest(
                str(one.values[0]),
                {word for matrix in able for word in matrix.settings[one.name].values},
            )
            yield (
                f"{one.origin.place}: no bundled matrix knows the value {value} of setting "
                f"{one.name}{near}"
            )


def _take_value(one: SettingSaid, matrix: Matrix, choice: _Choice) -> bool:
    """Choose the value for a matrix; tell whether something was taken."""
    value = _read_items(one, matrix, choice) if one.items else _read_value(one, matrix)
    if value is None:
        if not one.items:
            stays = _text_of_value(_value_before(one.name, matrix, choice.inventory))
            near = word_nearest(str(one.values[0]), matrix.settings[one.name].values)
            choice.notes.append(
                f"{one.origin.place}: {matrix.name} does not know the value "
                f"{quoted(str(one.values[0]))} of setting {one.name}; it stays {stays}{near}"
            )
        return False
    key = (matrix.name, one.name)
    earlier = choice.by.get(key)
    given = choice.values.setdefault(matrix.name, {})
    if earlier is not None and not one.items and given[one.name] != value:
        here, there = _text_of_value(value), _text_of_value(given[one.name])
        words = f"setting {one.name} is {here} here and {there} at {earlier.origin.place}"
        if one.weak:
            choice.notes.append(f"{one.origin.place}: {words}, which counts")
        else:
            choice.problems.append(problem_at(one.origin.place, f"{words}, expected one value"))
        return False
    choice.by.setdefault(key, one)
    given[one.name] = value
    return earlier is None or bool(one.items)


def _read_value(one: SettingSaid, matrix: Matrix) -> SettingValue | None:
    setting = matrix.settings[one.name]
    for raw in one.values:
        try:
            return parse(setting.type, setting.values, raw)
        except ValueError:
            continue
    return None


def _read_items(one: SettingSaid, matrix: Matrix, choice: _Choice) -> SettingValue | None:
    """Put items into the list as it is so far, or take them out."""
    setting = matrix.settings[one.name]
    known = {name: on for name, on in one.items.items() if name in setting.values}
    strange = [name for name in one.items if name not in known]
    if strange:
        choice.unknown_items.setdefault(one.name, []).extend(strange)
    if not known:
        return None
    before = _value_before(one.name, matrix, choice.inventory)
    now = choice.values.get(matrix.name, {}).get(one.name, before)
    items = dict.fromkeys(now if isinstance(now, tuple) else ())
    for name, on in known.items():
        if on:
            items[name] = None
        else:
            items.pop(name, None)
    return tuple(items)


def _value_before(name: str, matrix: Matrix, inventory: Inventory) -> object:
    """Give what the setting is without manifests."""
    setting = matrix.settings[name]
    if name in inventory.settings:
        try:
            return parse(setting.type, setting.values, inventory.settings[name])
        except ValueError:
            pass  # told where the inventory's settings are read
    return setting.default


def _word_value(one: SettingSaid, matrix: Matrix, choice: _Choice) -> str:
    inventory = choice.inventory
    if one.items:
        words = [
            f"{one.name} {'with' if on else 'without'} {item}" for item, on in one.items.items()
        ]
        text = ", ".join(words)
    else:
        text = f"{one.name}={_text_of_value(choice.values[matrix.name][one.name])}"
    if one.name in _names_of_sets(choice.sets, matrix):
        return f"{text}, but --set wins"
    if one.name in inventory.settings and not one.items:
        before = _value_before(one.name, matrix, inventory)
        if before != choice.values[matrix.name][one.name]:
            at = inventory.setting_places.get(one.name, "the inventory")
            return f"{text}, instead of {_text_of_value(before)} at {at}"
    return text


def _names_of_sets(sets: Sequence[str], matrix: Matrix) -> set[str]:
    wholes = (text.partition("=")[0].rpartition(":") for text in sets)
    return {key.strip() for name, _, key in wholes if name.strip() in ("", matrix.name)}


def set_by_option(sets: Sequence[str], name: str) -> str | None:
    """Give the value that ``--set`` has for a setting of any matrix; None without one."""
    for text in reversed(sets):
        key, _, value = text.partition("=")
        if key.rpartition(":")[2].strip() == name:
            return value.strip()
    return None


def _text_of_value(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(value) or "none"
    return text_of(value)

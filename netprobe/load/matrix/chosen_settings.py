"""The settings of a run: the defaults, then the inventory, then manifests, then ``--set``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netprobe.errors import Problem, all_problems
from netprobe.load.matrix.setting_values import parse, parse_text
from netprobe.load.yaml.document import problem_at
from netprobe.load.yaml.wording import listed, quoted, unknown
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix, Matrix, SettingValue, choose_settings
from netprobe.model.names import nearest
from netprobe.model.printable import word_command

Chosen = tuple[ChosenMatrix, ...]


def choose(
    matrices: Sequence[Matrix], inventory: Inventory, sets: Sequence[str]
) -> tuple[Chosen, tuple[str, ...]]:
    """Choose every matrix with its settings, and notes for the reader.

    Raises FileErrors with every bad value of the inventory and of ``sets`` (``KEY=VALUE`` or
    ``MATRIX:KEY=VALUE``) at once. The last of several ``--set`` for one key wins.
    """
    with all_problems() as problems:
        chosen = read_settings_of_run(matrices, inventory, sets, problems)
    return chosen, tuple(notes_of_settings(matrices, inventory))


def read_settings_of_run(
    matrices: Sequence[Matrix],
    inventory: Inventory,
    sets: Sequence[str],
    problems: list[Problem],
    said: Mapping[str, Mapping[str, SettingValue]] | None = None,
) -> Chosen:
    """As :func:`choose`, but problems are added to a list; a bad value leaves the default.

    ``said`` holds what manifests say, by the names of matrix and setting: it wins over the
    inventory, and ``--set`` over both.
    """
    wanted = list(_read_sets(matrices, sets, problems))
    chosen: list[ChosenMatrix] = []
    for matrix in matrices:
        given = _of_inventory(matrix, inventory, problems)
        given |= (said or {}).get(matrix.name, {})
        given |= {key: value for name, key, value in wanted if name == matrix.name}
        chosen.append(choose_settings(matrix, given))
    return tuple(chosen)


Given = tuple[str, str, SettingValue]


def _of_inventory(
    matrix: Matrix, inventory: Inventory, problems: list[Problem]
) -> dict[str, SettingValue]:
    found: dict[str, SettingValue] = {}
    for name, raw in inventory.settings.items():
        setting = matrix.settings.get(name)
        if setting is None:
            continue
        try:
            found[name] = parse(setting.type, setting.values, raw)
        except ValueError as error:
            place = inventory.setting_places.get(name, "")
            words = f"setting {quoted(name)} of {matrix.name}: {error}"
            problems.append(problem_at(place or f"settings: {name}", words))
    return found


def _read_sets(
    matrices: Sequence[Matrix], sets: Sequence[str], problems: list[Problem]
) -> Iterator[Given]:
    """``KEY=VALUE`` for every matrix that has the key, then ``MATRIX:KEY=VALUE``, which wins."""
    for text in sorted(sets, key=lambda text: ":" in text.partition("=")[0]):
        whole, separator, value = text.partition("=")
        name, colon, key = (part.strip() for part in whole.partition(":"))
        named = [matrix for matrix in matrices if matrix.name == name]
        if not separator or not whole.strip():
            words = "this sets nothing, expected KEY=VALUE or MATRIX:KEY=VALUE"
            problems.append(_make_problem(text, words))
        elif not colon:
            yield from _find_values(matrices, whole.strip(), value, text, problems)
        elif named:
            yield from _find_values(named, key, value, text, problems)
        else:
            names = [matrix.name for matrix in matrices]
            problems.append(_make_problem(text, unknown("matrix", name, names)))


def _find_values(
    matrices: Iterable[Matrix], key: str, value: str, text: str, problems: list[Problem]
) -> Iterator[Given]:
    having = [matrix for matrix in matrices if key in matrix.settings]
    if not having:
        known = {name for matrix in matrices for name in matrix.settings}
        problems.append(_make_problem(text, unknown("setting", key, sorted(known))))
    taking: list[str] = []
    refused: list[str] = []
    for matrix in having:
        try:
            yield matrix.name, key, parse_text(matrix.settings[key], value)
            taking.append(matrix.name)
        except ValueError as error:
            refused.append(f"setting {quoted(key)} of {matrix.name}: {error}")
    alone = " ".join(word_command(("--set", f"{name}:{key}={value}")) for name in taking)
    hint = f"; for {listed(taking)} alone: {alone}" if taking else ""
    problems.extend(_make_problem(text, f"{words}{hint}") for words in refused)


def _make_problem(text: str, words: str) -> Problem:
    return Problem(f"--set {text}", 0, 0, words)


def notes_of_settings(matrices: Sequence[Matrix], inventory: Inventory) -> Iterator[str]:
    """Settings of the inventory that no chosen matrix knows: fine if it serves several matrices."""
    known = {name for matrix in matrices for name in matrix.settings}
    names = listed(matrix.name for matrix in matrices)
    for name in inventory.settings:
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            place = inventory.setting_places.get(name)
            at = f"{place}: " if place else ""
            yield f"{at}setting {quoted(name)} of the inventory is unknown to {names}{hint}"

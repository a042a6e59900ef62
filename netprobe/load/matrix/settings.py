"""The ``settings:`` of a matrix file: type, values and default of each, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping

from netprobe.errors import Problem
from netprobe.load.matrix.setting_values import parse
from netprobe.load.yaml.document import Document, Path
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import listed, quoted, what_it_is
from netprobe.model.matrix import Setting, SettingType, SettingValue

# The settings of a file by name. None: its declaration is broken, so values cannot be checked.
Known = Mapping[str, Setting | None]


def read_settings(document: Document, base: Mapping[str, Setting], out: list[Problem]) -> Known:
    """All settings that the file may refer to: the base's, changed and added to by the file."""
    known: dict[str, Setting | None] = dict(base)
    raw = document.get(("settings",))
    for name, body in raw.items() if isinstance(raw, dict) else ():
        known[name] = None
        if isinstance(body, dict):
            one = _SettingReader(document, ("settings", name), body, out)
            known[name] = one.changed(base[name]) if name in base else one.added(name)
    return known


class _SettingReader:
    """Reads the declaration of one setting; pydantic reports problems of its shape."""

    def __init__(
        self, document: Document, path: Path, body: Mapping[str, object], out: list[Problem]
    ) -> None:
        self.document = document
        self.path = tuple(path)
        self.body = body
        self.out = out

    def added(self, name: str) -> Setting | None:
        """A setting that is new in this file."""
        kind = self._read_type()
        values = self._read_values(kind)
        if kind is None or values is None:
            return None
        default = self._read_default(kind, values)
        if default is None:
            return None
        return Setting(name, kind, default, values, self._read_description())

    def changed(self, base: Setting) -> Setting:
        """A setting of the base: only its default and its description may be another."""
        for key in ("type", "values"):
            if key in self.body:
                words = f"{quoted(key)} of a setting of the extended matrix cannot be changed"
                self._key_problem(key, f"{words}, expected only default and description")
        default = (
            self._read_default(base.type, base.values) if "default" in self.body else base.default
        )
        if default is None:
            default = base.default
        description = self._read_description() or base.description
        return Setting(base.name, base.type, default, base.values, description)

    def _read_type(self) -> SettingType | None:
        kind = self.body.get("type")
        if kind is None:
            return self._implied_type()
        return _TYPE_NAMES.get(kind) if isinstance(kind, str) else None

    def _implied_type(self) -> SettingType | None:
        if "type" in self.body:
            return None
        if "values" in self.body:
            return "choice"
        if isinstance(self.body.get("default"), bool):
            return "boolean"
        words = 'the key "type" is missing, expected one of: '
        self.out.append(self.document.at_key(self.path, words + listed(_TYPE_NAMES)))
        return None

    def _read_values(self, kind: SettingType | None) -> tuple[str, ...] | None:
        raw = self.body.get("values")
        if kind not in ("choice", "list"):
            if raw is not None and kind is not None:
                self._key_problem("values", f"a {kind} has no list of values, expected none")
            return () if kind else None
        if raw is None and kind == "choice":
            words = 'the key "values" is missing, expected the values of the choice'
            self.out.append(self.document.at_key(self.path, words))
            return None
        return self._value_names(raw) if isinstance(raw, list) else ()

    def _value_names(self, raw: list[object]) -> tuple[str, ...] | None:
        names: list[str] = []
        before = len(self.out)
        for index, item in enumerate(raw):
            if isinstance(item, bool | list | dict) or item is None or item == "":
                self._add_problem(
                    ("values", index), f"{what_it_is(item)}, expected a name in quotes"
                )
            elif text_of(item) in names:
                words = f"{quoted(item)} stands in the list twice, expected it once"
                self._add_problem(("values", index), words)
            else:
                names.append(text_of(item))
        if not raw:
            self._add_problem(("values",), "the list is empty, expected at least one value")
        return tuple(names) if len(self.out) == before else None

    def _read_default(self, kind: SettingType, values: tuple[str, ...]) -> SettingValue | None:
        if "default" not in self.body:
            words = 'the key "default" is missing, expected the value where the user says nothing'
            self.out.append(self.document.at_key(self.path, words))
            return None
        try:
            return parse(kind, values, self.body["default"])
        except ValueError as error:
            self._add_problem(("default",), str(error))
            return None

    def _read_description(self) -> str:
        text = self.body.get("description")
        return text if isinstance(text, str) else ""

    def _add_problem(self, path: Path, text: str) -> None:
        self.out.append(self.document.at((*self.path, *path), text))

    def _key_problem(self, key: str, text: str) -> None:
        self.out.append(self.document.at_key((*self.path, key), text))


_TYPE_NAMES: dict[str, SettingType] = {
    "choice": "choice",
    "list": "list",
    "version": "version",
    "port": "port",
    "string": "string",
    "boolean": "boolean",
    "bool": "boolean",
}

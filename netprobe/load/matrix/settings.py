"""The ``settings:`` of a matrix file: type, values and default of each, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from netprobe.load.matrix.setting_values import TYPES, parse
from netprobe.load.yaml.document import Document
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import listed, quoted, unknown, what_it_is
from netprobe.model.matrix import Setting, SettingRef, SettingType, SettingValue

# The settings of a file by name. None: its declaration is broken, so values cannot be checked.
Known = Mapping[str, Setting | None]

_TYPE_NAMES: dict[str, SettingType] = {**{kind: kind for kind in TYPES}, "bool": "boolean"}


def read_settings(document: Document, base: Mapping[str, Setting]) -> Known:
    """All settings that the file may refer to: the base's, changed and added to by the file."""
    known: dict[str, Setting | None] = dict(base)
    for name, body in document.items(("settings",)).items():
        known[name] = None
        if isinstance(body, dict):
            one = _SettingReader(document, ("settings", name), body)
            known[name] = one.change_setting(base[name]) if name in base else one.read_new(name)
    for name in document.items(("settings",)):
        _check_followed(document, name, known)
    return known


def _check_followed(document: Document, name: str, known: Known) -> None:
    """A default that is another setting's value: that one must fit, and have a value of its own."""
    setting = known[name]
    if setting is None or not isinstance(setting.default, SettingRef):
        return
    path = ("settings", name, "default")
    other = known.get(setting.default.setting)
    if setting.default.setting not in known:
        words = unknown("setting", setting.default.setting, set(known) - {name})
        document.add_problem(path, words)
    elif other is not None and (
        isinstance(other.default, SettingRef)
        or (setting.type, setting.values) != (other.type, other.values)
    ):
        words = f"setting {quoted(other.name)} cannot be followed"
        expected = "expected one of the same type and values, with a default of its own"
        document.add_problem(path, f"{words}, {expected}")


class _SettingReader(Struct, frozen=True):
    """Reads the declaration of one setting; pydantic reports problems of its shape."""

    document: Document
    path: tuple[str, str]
    body: Mapping[str, object]

    def read_new(self, name: str) -> Setting | None:
        """Read a setting that is new in this file."""
        kind = self._read_type()
        values = self._read_values(kind) if kind else None
        if kind is None or values is None:
            return None
        default = self._read_default(kind, values)
        if default is None:
            return None
        return Setting(
            name, kind, default, values, self._read_description(), self._read_roles(kind)
        )

    def _read_roles(self, kind: SettingType) -> tuple[str, ...] | None:
        """Read the roles whose addresses the value, a name, has; checks.py knows the roles."""
        if "resolves_to" not in self.body:
            return None
        raw = self.body["resolves_to"]
        if kind != "string":
            words = f"a {kind} is no DNS name, expected it at a setting of type string"
            self.document.add_key_problem((*self.path, "resolves_to"), words)
        items = raw if isinstance(raw, list) else [raw]
        return tuple(one for one in items if isinstance(one, str))

    def change_setting(self, base: Setting) -> Setting:
        """A setting of the base: only its default and its description may be another."""
        for key in ("type", "values", "resolves_to"):
            if key in self.body:
                words = f"{quoted(key)} of a setting of the extended matrix cannot be changed"
                expected = "expected only default and description"
                self.document.add_key_problem((*self.path, key), f"{words}, {expected}")
        default: SettingValue | SettingRef | None = base.default
        if "default" in self.body:
            default = self._read_default(base.type, base.values)
        return replace(
            base,
            default=base.default if default is None else default,
            description=self._read_description() or base.description,
        )

    def _read_type(self) -> SettingType | None:
        kind = self.body.get("type")
        if kind is not None:
            return _TYPE_NAMES.get(kind) if isinstance(kind, str) else None
        if "values" in self.body:
            return "choice"
        if isinstance(self.body.get("default"), bool):
            return "boolean"
        self._add_missing("type", f"one of: {listed(_TYPE_NAMES)}")
        return None

    def _read_values(self, kind: SettingType) -> tuple[str, ...] | None:
        raw = self.body.get("values")
        if kind not in ("choice", "list"):
            if raw is not None:
                words = f"a {kind} has no list of values, expected none"
                self.document.add_key_problem((*self.path, "values"), words)
            return ()
        if raw is None and kind == "choice":
            self._add_missing("values", "the values of the choice")
            return None
        return self._read_value_names(raw) if isinstance(raw, list) else ()

    def _read_value_names(self, raw: list[object]) -> tuple[str, ...] | None:
        path = (*self.path, "values")
        names: list[str] = []
        for index, item in enumerate(raw):
            if isinstance(item, bool | list | dict) or item is None or item == "":
                words = f"{what_it_is(item)}, expected a name in quotes"
                self.document.add_problem((*path, index), words)
            elif text_of(item) in names:
                words = f"{quoted(item)} stands in the list twice, expected it once"
                self.document.add_problem((*path, index), words)
            else:
                names.append(text_of(item))
        if not raw:
            self.document.add_problem(path, "the list is empty, expected at least one value")
        return tuple(names) if raw and len(names) == len(raw) else None

    def _read_default(
        self, kind: SettingType, values: tuple[str, ...]
    ) -> SettingValue | SettingRef | None:
        if "default" not in self.body:
            self._add_missing("default", "the value where the user says nothing")
            return None
        match self.body["default"]:
            case {"setting": str(name), **rest} if not rest:
                return SettingRef(name)
        try:
            return parse(kind, values, self.body["default"])
        except ValueError as error:
            self.document.add_problem((*self.path, "default"), str(error))
            return None

    def _read_description(self) -> str:
        text = self.body.get("description")
        return text if isinstance(text, str) else ""

    def _add_missing(self, key: str, expected: str) -> None:
        words = f'the key "{key}" is missing, expected {expected}'
        self.document.add_key_problem(self.path, words)

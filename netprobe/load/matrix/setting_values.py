"""Reads values of settings: what each of the six setting types allows.

A value comes as YAML gave it (``parse``), as text of ``--set`` (``parse_text``), or as one of the
values that a condition lists (``parse_term``). What does not fit raises ValueError with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import instead_of, listed, quoted, what_it_is
from netprobe.model.matrix import Setting, SettingType, SettingValue
from netprobe.model.ports import MAX_PORT, MIN_PORT
from netprobe.model.version import is_range, is_version

TYPES: tuple[SettingType, ...] = ("choice", "list", "version", "port", "string", "boolean")

Values = Collection[str]
Term = str | bool | int


def parse(kind: SettingType, values: Values, raw: object) -> SettingValue:
    """Parse a value that stands in a file."""
    return _PARSERS[kind](values, raw)


def parse_text(setting: Setting, text: str) -> SettingValue:
    """A value of ``--set``: lists are ``a,b``, booleans and numbers are written as in YAML."""
    if setting.type == "list":
        items = [part.strip() for part in text.split(",") if part.strip()]
        return _read_list(setting.values, items)
    if setting.type == "boolean":
        if text.lower() not in _WORDS:
            raise ValueError(f"{quoted(text)} is no boolean, expected true or false")
        return _WORDS[text.lower()]
    if setting.type == "port":
        is_number = text.isascii() and text.isdigit() and len(text) < 9
        return _read_port((), int(text) if is_number else text)
    return parse(setting.type, setting.values, text)


def parse_term(setting: Setting, raw: object) -> Term:
    """Parse one value that satisfies a condition; for a version setting that is a range."""
    if setting.type == "list":
        return _check_known(setting.values, _read_text(raw))
    if setting.type == "version":
        return _check_range(_read_text(raw))
    value = parse(setting.type, setting.values, raw)
    assert not isinstance(value, tuple)
    return value


def _read_text(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return text_of(raw)
    raise ValueError(f"{what_it_is(raw)}, expected text")


def _check_known(values: Values, text: str) -> str:
    if values and text not in values:
        raise ValueError(f"unknown value {quoted(text)}, {instead_of(text, values)}")
    if not text:
        raise ValueError("the value is empty, expected a name")
    return text


def _read_choice(values: Values, raw: object) -> str:
    if isinstance(raw, bool | list | dict) or raw is None:
        raise ValueError(f"{what_it_is(raw)}, expected one of: {listed(values)}")
    return _check_known(values, _read_text(raw))


def _read_list(values: Values, raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise ValueError(f"{what_it_is(raw)}, expected a list such as [a, b]")
    items = tuple(_check_known(values, _read_text(item)) for item in raw)
    for index, item in enumerate(items):
        if item in items[:index]:
            raise ValueError(f"{quoted(item)} stands in the list twice, expected it once")
    return items


def _read_version(values: Values, raw: object) -> str:
    text = _read_text(raw)
    if not is_version(text):
        raise ValueError(f"{quoted(text)} is no version, expected numbers and dots such as 4.20")
    return text


def _check_range(text: str) -> str:
    if not is_range(text):
        expected = 'expected comparisons and commas such as ">=4.10,<4.16"'
        raise ValueError(f"{quoted(text)} is no version range, {expected}")
    return text


def _read_port(values: Values, raw: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError(f"{what_it_is(raw)}, expected a port ({MIN_PORT} to {MAX_PORT})")
    if not MIN_PORT <= raw <= MAX_PORT:
        raise ValueError(f"{text_of(raw)} is no port, expected {MIN_PORT} to {MAX_PORT}")
    return int(raw)


def _read_boolean(values: Values, raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    note = " in YAML 1.2" if isinstance(raw, str) and raw.lower() in _WORDS else ""
    raise ValueError(f"{what_it_is(raw)}{note}, expected true or false")


_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}

_PARSERS: dict[SettingType, Callable[[Values, object], SettingValue]] = {
    "choice": _read_choice,
    "list": _read_list,
    "version": _read_version,
    "port": _read_port,
    "string": lambda values, raw: _read_text(raw),
    "boolean": _read_boolean,
}

"""Any dataclass of the model as a JSON object and back: one key a field, in the fields' order."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Json = dict[str, Any]  # Any: JSON holds whatever the file's writer put there
# A reader takes a value of a JSON file and gives one of its field's type.
FieldReader = Callable[[Any], Any]
T = TypeVar("T")

_SCALARS = frozenset({str, int, float, bool, types.NoneType})
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false",
          types.NoneType: "null", list: "a list", dict: "an object"}  # fmt: skip


def to_json(value: Any) -> Any:
    """Give a dataclass, or what a field of one holds, as JSON: tuples become lists."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return {
        name: item if type(item := getattr(value, name)) in _SCALARS else to_json(item)
        for name in value.__dataclass_fields__
    }


def from_json(kind: type[T], data: object) -> T:
    """Read a dataclass; keys without a field are ignored, missing ones take the field's default.

    Raises ValueError, which names the key, for another type and for a key that must be there.
    """
    given = _check_type(data, dict)
    values = {}
    for name, read, default in _field_readers(cast(Hashable, kind)):
        if name in given:
            try:
                values[name] = read(given[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        elif default is MISSING:
            raise ValueError(f'the key "{name}" is missing')
        else:
            values[name] = default
    return kind(**values)


@cache
def _field_readers(kind: Any) -> list[tuple[str, FieldReader, object]]:
    """Each field's name and reader, and what stands for a missing key (MISSING: it must be there).

    All objects share a default that a factory makes: no code writes to values of the model.
    """
    hints = get_type_hints(kind)
    return [
        (field.name, _make_reader(hints[field.name]), _default_of_field(field))
        for field in fields(kind)
    ]


def _default_of_field(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _make_reader(hint: Any) -> FieldReader:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if is_dataclass(hint):
        return lambda value: from_json(cast(type, hint), value)
    if origin is Literal:
        return lambda value: _check_word(value, arguments)
    if origin in (Union, types.UnionType):
        return _make_union_reader(arguments)
    if origin is tuple:
        return _make_tuple_reader(arguments)
    if origin is not None:  # a mapping: the keys of JSON are texts
        item = _make_reader(arguments[1])
        return lambda value: {key: item(inner) for key, inner in _check_type(value, dict).items()}
    return lambda value: _check_type(value, hint)


def _make_union_reader(hints: tuple[Any, ...]) -> FieldReader:
    """Scalars are told by their type; at most one other type is in any union of the model."""
    scalars = _SCALARS.intersection(hints)
    taken = scalars | {int} if float in scalars else scalars
    read_other = next((_make_reader(hint) for hint in hints if hint not in scalars), None)

    def read(value: object) -> object:
        if type(value) in taken:
            return value
        if read_other is None:
            expected = " or ".join(_WORDS[hint] for hint in hints)
            raise ValueError(f"{_WORDS[type(value)]}, expected {expected}")
        return read_other(value)

    return read


def _make_tuple_reader(hints: tuple[Any, ...]) -> FieldReader:
    item = _make_reader(hints[0])
    length = None if hints[-1] is Ellipsis else len(hints)

    def read(value: object) -> tuple[Any, ...]:
        items = tuple(map(item, _check_type(value, list)))
        if length not in (None, len(items)):
            raise ValueError(f"{len(items)} items, expected {length}")
        return items

    return read


def _check_type(value: Any, kind: type) -> Any:
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ValueError(f"{_WORDS[type(value)]}, expected {_WORDS[kind]}")
    return value


def _check_word(value: object, words: tuple[object, ...]) -> object:
    if value not in words:
        raise ValueError(f"{value!r}, expected one of {', '.join(map(str, words))}")
    return value

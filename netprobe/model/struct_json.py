"""Any Struct of the model as a JSON object and back: one key a field, in the fields' order.

A field whose name ends in ``_``, because Python has the word for itself, has a key without it.

Reading is strict: a value of another type or out of all bounds is an error that names its key.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from itertools import repeat
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import NODEFAULT, Struct, to_builtins
from msgspec.structs import FieldInfo, fields

from netprobe.model.shapes import TextShape

Json = dict[str, Any]  # Any: JSON holds whatever the file's writer put there
# A reader takes a value of a JSON file and gives one of its field's type.
FieldReader = Callable[[Any], Any]
T = TypeVar("T")
# A time of a clock in ns, which is the one number above MAX_NUMBER.
Nanoseconds = NewType("Nanoseconds", int)

# What every program that reads JSON can hold exactly (RFC 8259, section 6), and no infinity.
MAX_NUMBER = 2**53
# How deep lists and objects may be nested where a field takes any value.
MAX_DEPTH = 20
# How much of a key or a word is quoted in an error.
MAX_KEY = 60

_SCALARS = frozenset({str, int, float, bool, types.NoneType})
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false",
          types.NoneType: "null", list: "a list", dict: "an object"}  # fmt: skip

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
          Nanoseconds: "integer"}  # fmt: skip


class WrongValue(ValueError):
    """A value that its field cannot hold: ``hosts[0].privileged: null, expected true or false``."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self._words = words
        self._path = ""

    def __str__(self) -> str:
        return f"{self._path}: {self._words}" if self._path else self._words

    def add_step(self, step: str) -> None:
        """Say that the place is inside of this one: a key, or an index in brackets."""
        dot = "." if self._path and not self._path.startswith("[") else ""
        self._path = f"{step}{dot}{self._path}"


def to_json(value: Any) -> Any:
    """Give a Struct, or what a field of one holds, as JSON. Tuples stay: they are written as
    lists."""
    if value is None or isinstance(value, str | int | float):
        return value
    if _is_plain(cast(Hashable, type(value))):
        return to_builtins(value, enc_hook=_drop_subclass)
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return {
        key: item if type(item) in _SCALARS else to_json(item)
        for name, key, left_out in _keys_of_fields(cast(Hashable, type(value)))
        if (item := getattr(value, name)) != left_out
    }


def _drop_subclass(value: object) -> str | int:
    """Give the text or the number that an instance of a subclass is."""
    assert isinstance(value, str | int)
    return str(value) if isinstance(value, str) else int(value)


@cache
def _is_plain(kind: Hashable) -> bool:
    """Tell whether a kind of Struct, and all that it may hold, has a key for every field, named
    like it."""
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return False
    if getattr(kind, "SPARSE", False) or any(one.name.endswith("_") for one in fields(kind)):
        return False
    held = list(get_type_hints(kind).values())
    for hint in held:
        held += get_args(hint)
    return all(_is_plain(one) for one in held if isinstance(one, type) and issubclass(one, Struct))


@cache
def _keys_of_fields(kind: Any) -> tuple[tuple[str, str, object], ...]:
    """Each field's name and key, and the value without which JSON does: of ``SPARSE`` kinds."""
    sparse = getattr(kind, "SPARSE", False)
    return tuple(
        (one.name, key_of_field(one.name), one.default if sparse else NODEFAULT)
        for one in fields(kind)
    )


def key_of_field(name: str) -> str:
    """Give the JSON key of a field: ``from`` of ``from_``."""
    return name.removesuffix("_")


def from_json(kind: type[T], data: object) -> T:
    """Read a Struct; keys without a field are ignored, missing ones take the field's default.

    Raises WrongValue, which names the key, for another type and for a key that must be there.
    """
    given = _check_type(data, dict)
    values = {}
    for name, read, default in _field_readers(cast(Hashable, kind)):
        key = key_of_field(name)
        if key in given:
            values[name] = _read_within(key, read, given[key])
        elif default is NODEFAULT:
            raise WrongValue(f'the key "{key}" is missing')
        else:
            values[name] = default
    return kind(**values)


def _read_within(step: str, read: FieldReader, value: Any) -> Any:
    """Read a part of something larger; an error names the step that leads to it."""
    try:
        return read(value)
    except WrongValue as error:
        error.add_step(step)
        raise


@cache
def _field_readers(kind: Any) -> list[tuple[str, FieldReader, object]]:
    """Each field's name and reader, and what stands for a missing key (NODEFAULT: it must be).

    All objects share a default that a factory makes: no code writes to values of the model.
    """
    hints = get_type_hints(kind, include_extras=True)
    return [
        (field.name, _make_reader(hints[field.name]), _default_of_field(field))
        for field in fields(kind)
    ]


def _default_of_field(field: FieldInfo) -> object:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _make_reader(hint: Any) -> FieldReader:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, Nanoseconds):
        return _check_any if hint is Any else _check_time
    if _is_struct(hint):
        return lambda value: from_json(cast(type, hint), value)
    if origin is Literal:
        return lambda value: _check_word(value, arguments)
    if origin is Annotated:
        return lambda value: _check_shape(value, arguments[1])
    if origin in (Union, types.UnionType):
        return _make_union_reader(arguments)
    if origin is tuple:
        return _make_tuple_reader(arguments)
    if origin is not None:
        return _make_collection_reader(origin, arguments)
    return lambda value: _check_type(value, hint)


def _make_collection_reader(origin: Any, hints: tuple[Any, ...]) -> FieldReader:
    """Make the reader of a set, which is a list in JSON, or of a mapping, whose keys are texts."""
    if origin is frozenset:
        read_list = _make_tuple_reader((*hints, Ellipsis))
        return lambda value: frozenset(read_list(value))
    name, item = map(_make_reader, hints)
    return lambda value: {
        name(key): _read_within(_word_key(key), item, inner)
        for key, inner in _check_type(value, dict).items()
    }


def _word_key(key: str) -> str:
    return key if len(key) < MAX_KEY else f"{key[:MAX_KEY]}..."


def _make_union_reader(hints: tuple[Any, ...]) -> FieldReader:
    """Scalars are told by their type; at most one other type is in any union of the model."""
    scalars = _SCALARS.intersection(hints)
    taken = scalars | {int} if float in scalars else scalars
    read_other = next((_make_reader(hint) for hint in hints if hint not in scalars), None)

    def read(value: object) -> object:
        if type(value) in taken:
            return _check_bounds(value)
        if read_other is None:
            expected = " or ".join(_WORDS[hint] for hint in hints)
            raise WrongValue(f"{_WORDS[type(value)]}, expected {expected}")
        return read_other(value)

    return read


def _make_tuple_reader(hints: tuple[Any, ...]) -> FieldReader:
    endless = hints[-1] is Ellipsis
    readers = [_make_reader(hint) for hint in hints if hint is not Ellipsis]

    def read(value: object) -> tuple[Any, ...]:
        given = value if type(value) is tuple else _check_type(value, list)
        if not endless and len(given) != len(readers):
            raise WrongValue(f"{len(given)} items, expected {len(readers)}")
        each = zip(repeat(readers[0]) if endless else readers, given, strict=False)
        return tuple(_read_within(f"[{at}]", item, one) for at, (item, one) in enumerate(each))

    return read


def _check_type(value: Any, kind: type) -> Any:
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise WrongValue(f"{_WORDS[type(value)]}, expected {_WORDS[kind]}")
    return _check_bounds(value)


def _check_bounds(value: Any) -> Any:
    """Refuse the numbers that no clock or counter gives, and that do not survive arithmetic."""
    if type(value) in (int, float) and not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise WrongValue("a number that is too large, expected one below 2**53")
    return value


def _check_time(value: object) -> object:
    if type(value) is not int or not 0 <= value < 2**63:
        raise WrongValue("no time, expected a whole number of nanoseconds")
    return value


def _check_any(value: Any, depth: int = 0) -> Any:
    """Any JSON value, as long as it is not endlessly nested."""
    if depth > MAX_DEPTH:
        raise WrongValue(f"nested deeper than {MAX_DEPTH} levels, expected fewer")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        _check_any(one, depth + 1)
    return _check_bounds(value)


def _check_shape(value: object, shape: TextShape) -> object:
    if not isinstance(value, str) or not shape.fits(value):
        raise WrongValue(f"{_word_value(value)}, expected {shape.words}")
    return value


def _check_word(value: object, words: tuple[object, ...]) -> object:
    if value not in words:
        raise WrongValue(f"{_word_value(value)}, expected one of {', '.join(map(str, words))}")
    return value


def _word_value(value: object) -> str:
    return repr(value[:MAX_KEY]) if isinstance(value, str) else _WORDS[type(value)]


def schema_of_struct(kind: Any) -> Json:
    """Give the schema of an object; other keys are allowed, those without a default required."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        "description": " ".join((inspect.getdoc(kind) or "").split()),
        "type": "object",
        "properties": {
            key_of_field(one.name): schema_of_hint(hints[one.name]) for one in fields(kind)
        },
        "required": [key_of_field(one.name) for one in fields(kind) if one.required],
    }


def schema_of_hint(hint: Any) -> Json:
    """Give the schema of a field of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if _is_struct(hint):
        return schema_of_struct(hint)
    if origin in (Literal, Annotated):
        return _schema_of_words(arguments)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of_hint(one) for one in arguments]}
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [schema_of_hint(one) for one in arguments]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}
    if origin is tuple:
        return {"type": "array", "items": schema_of_hint(arguments[0])}
    if origin is not None:  # a mapping: the keys of JSON are texts
        return {"type": "object", "additionalProperties": schema_of_hint(arguments[1])}
    return {"type": _TYPES[hint]}


def _schema_of_words(arguments: tuple[Any, ...]) -> Json:
    """Give the schema of words, or of a text and its shape."""
    if isinstance(arguments[-1], TextShape):
        return {"type": "string", "pattern": f"^({arguments[-1].pattern})$"}
    return {"enum": list(arguments)}

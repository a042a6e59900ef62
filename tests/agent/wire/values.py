"""Values of messages, as JSON has them: all numbers in them, and the largest there may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from netprobe.agent.wire.numbers import MOST

# Steps to a value inside of a message: places in lists and keys of objects.
Path = tuple[int | str, ...]


def numbers_in(shape: Any, values: Any, name: str = "") -> Iterator[tuple[Path, str, Any]]:
    """All numbers in a value: the place, the name of the field, and the number."""
    if values is None:
        return
    if shape in (int, float):
        yield (), name, values
    for key, kind, field in list_inside(shape, values, name):
        inside = values if key is None else values[key]
        for path, found, value in numbers_in(kind, inside, field):
            yield (path if key is None else (key, *path)), found, value


def list_inside(shape: Any, values: Any, name: str) -> Iterator[tuple[int | str | None, Any, str]]:
    """What stands in a value: its key (None: the value itself), its annotation, its field."""
    arguments: tuple[Any, ...] = getattr(shape, "__args__", None) or ()
    if hasattr(shape, "_fields"):
        for at, each in enumerate(shape._fields):
            yield at, shape.__annotations__[each], each
    elif type(None) in arguments:
        yield None, arguments[0], name
    elif isinstance(values, dict):
        yield from ((key, arguments[1], name) for key in values)
    elif isinstance(values, list):
        yield from ((at, arguments[at % len(arguments)], name) for at in range(len(values)))


def fullest(shape: Any, name: str = "") -> Any:
    """A value, as JSON has it, with everything there that may be there, and the largest numbers."""
    if hasattr(shape, "_fields"):
        return [fullest(shape.__annotations__[each], each) for each in shape._fields]
    arguments: tuple[Any, ...] = getattr(shape, "__args__", None) or ()
    if type(None) in arguments:
        return fullest(arguments[0], name)
    origin = getattr(shape, "__origin__", None)
    if origin is list:
        return [fullest(arguments[0], name)]
    if origin is dict:
        return {"state": fullest(arguments[1], name)}
    if origin is tuple:
        return [fullest(each, name) for each in arguments]
    plain: dict[Any, Any] = {str: "", bool: True, bytes: ""}
    return plain[shape] if shape in plain else MOST[name]


def put(values: Any, path: Path, value: Any) -> Any:
    """The same with another value at a place."""
    if not path:
        return value
    changed: Any = dict(values) if isinstance(values, dict) else list(values)
    changed[path[0]] = put(values[path[0]], path[1:], value)
    return changed

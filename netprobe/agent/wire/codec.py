"""Messages from JSON: every value is checked against the type and range of its field, once.

A message is a JSON array: its kind, then the fields of its record. Records inside are arrays too,
and bytes are base64. Encoding needs none of this: JSON writes tuples as arrays (``frames``).
"""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from functools import lru_cache
from typing import Any, Callable, Dict, Tuple

from .numbers import MOST

ReadValue = Callable[[Any], Any]

# A list in a frame takes 3 bytes there and 80 in memory.
MOST_VALUES = 1000000
MOST_KEYS = 64

_NONE = type(None)


def decode_message(body: bytes, known: Dict[str, Any]) -> Any:
    """The message that one frame carries. Raises ValueError where it is not as it is defined."""
    # Lists in lists have no commas between them.
    if body.count(b",") > MOST_VALUES or body.count(b"[") + body.count(b"{") > MOST_VALUES:
        raise ValueError("more than %d values in one message" % MOST_VALUES)
    try:
        return _read_message(json.loads(body.decode("utf-8")), known)
    except RecursionError:
        # From ``loads``, or from ``%r`` of a value that ``loads`` could just read.
        raise ValueError("lists are nested too deeply") from None


def _read_message(values: Any, known: Dict[str, Any]) -> Any:
    if not isinstance(values, list) or not values or not isinstance(values[0], str):
        raise ValueError("a message must be a list that begins with its kind")
    record = known.get(values[0])
    if record is None:
        raise ValueError("there is no message %.40r" % (values[0],))
    try:
        return read_record(record, values[1:])
    except ValueError as error:
        raise ValueError("%s: %s" % (values[0], error)) from None


def read_record(record: Any, values: Any) -> Any:
    """Read a record from the list of its values. Raises ValueError."""
    return _record_reader(record)(values)


@lru_cache(maxsize=None)
def _record_reader(record: Any) -> ReadValue:
    """Make the reader of a record class, when the first of its messages comes."""
    names = record._fields
    readers = [_make_reader(record.__annotations__[name], name) for name in names]

    def read(values: Any) -> Any:
        if not isinstance(values, list) or len(values) != len(readers):
            raise ValueError("%s needs %d values" % (record.__name__, len(readers)))
        made = []
        for name, reader, value in zip(names, readers, values):
            try:
                made.append(reader(value))
            except ValueError as error:
                raise ValueError("%s: %s" % (name, error)) from None
        return record(*made)

    return read


def _make_reader(shape: Any, name: str) -> ReadValue:
    """Tell what checks one value of an annotation: a scalar, a record, or a form of ``typing``.

    ``name``: of the field, which says how large numbers may be.
    """
    arguments: Tuple[Any, ...] = getattr(shape, "__args__", None) or ()
    origin = getattr(shape, "__origin__", shape)
    if _NONE in arguments:
        reader = _make_reader(arguments[0], name)
        return lambda value: None if value is None else reader(value)
    if origin is list:
        return _list_reader(_make_reader(arguments[0], name))
    if origin is tuple:
        return _tuple_reader(tuple(_make_reader(each, name) for each in arguments))
    if origin is dict:
        return _dict_reader(_make_reader(arguments[1], name))
    if hasattr(shape, "_fields"):
        return _record_reader(shape)
    if shape in (int, float):
        return _number_reader(shape, MOST[name])
    return _read_bytes if shape is bytes else _exact_reader(shape)


def _list_reader(reader: ReadValue) -> ReadValue:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError("expected a list, not %.40r" % (value,))
        return [reader(each) for each in value]

    return read


def _tuple_reader(readers: Tuple[ReadValue, ...]) -> ReadValue:
    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise ValueError("expected %d values, not %.40r" % (len(readers), value))
        return tuple([reader(each) for reader, each in zip(readers, value)])

    return read


def _dict_reader(reader: ReadValue) -> ReadValue:
    """JSON has only texts as keys; so have these."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) > MOST_KEYS:
            raise ValueError("expected an object, not %.40r" % (value,))
        return {key: reader(each) for key, each in value.items()}

    return read


def _exact_reader(shape: Any) -> ReadValue:
    def read(value: Any) -> Any:
        # Not ``isinstance``: to that a bool is an int, and on the wire it is none.
        if type(value) is not shape:
            raise ValueError("expected %s, not %.40r" % (_WORDS[shape], value))
        return value

    return read


def _number_reader(shape: Any, most: int) -> ReadValue:
    def read(value: Any) -> Any:
        if type(value) is not int and type(value) is not shape:
            raise ValueError("expected %s, not %.40r" % (_WORDS[shape], value))
        # The comparison keeps out NaN and infinity too.
        if not 0 <= value <= most:
            raise ValueError("expected a number from 0 to %d, not %.40r" % (most, value))
        return shape(value)

    return read


def _read_bytes(value: Any) -> bytes:
    try:
        return b64decode(_read_text(value), validate=True)
    except Base64Error:
        raise ValueError("expected base64") from None


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_read_text = _exact_reader(str)

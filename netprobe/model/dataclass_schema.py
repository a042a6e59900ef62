"""The JSON Schema of dataclasses of the model, as :mod:`dataclass_json` writes and reads them."""

from __future__ import annotations

import inspect
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from netprobe.model.dataclass_json import Json, Nanoseconds, key_of_field
from netprobe.model.shapes import TextShape

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
          Nanoseconds: "integer"}  # fmt: skip


def schema_of_dataclass(kind: Any) -> Json:
    """Give the schema of an object; other keys are allowed, those without a default required."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        "description": " ".join((inspect.getdoc(kind) or "").split()),
        "type": "object",
        "properties": {
            key_of_field(one.name): schema_of_hint(hints[one.name]) for one in fields(kind)
        },
        "required": [key_of_field(one.name) for one in fields(kind) if _is_needed(one)],
    }


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def schema_of_hint(hint: Any) -> Json:
    """Give the schema of a field of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if is_dataclass(hint):
        return schema_of_dataclass(hint)
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

"""Writes plain data as YAML 1.2 for people to read and edit; reading YAML is not done here.

The small part of YAML that netprobe's own files need. Texts that any YAML reader, 1.1 or 1.2, could
take for something else are quoted as JSON strings, which YAML 1.2 contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()=+-]+)*")
_NOT_TEXT = re.compile(r"(?i)y|n|yes|no|on|off|true|false|null")
_SHORT_LIST = 90  # a list of scalars that fits on a line is written on one


def to_yaml(data: Mapping[str, Any]) -> str:
    """The document, mappings in their own order."""
    return "".join(f"{line}\n" for line in _mapping(data))


def _mapping(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{_scalar(key)}:", value)


def _entry(head: str, value: Any) -> Iterator[str]:
    """A head (``key:`` or ``-``) and its value, on the same line where that is short."""
    flow = _flow(value)
    scalar = not isinstance(value, Mapping | list | tuple)
    if flow is not None and (scalar or len(flow) <= _SHORT_LIST):
        yield f"{head} {flow}"
        return
    yield head
    lines = _mapping(value) if isinstance(value, Mapping) else _sequence(value)
    for line in lines:
        yield f"  {line}"


def _sequence(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        else:
            yield from _entry("-", item)


def _flow(value: Any) -> str | None:
    """The value on one line: scalars, and collections of nothing but scalars."""
    if isinstance(value, Mapping):
        parts = [(_scalar(key), _flow(item)) for key, item in value.items()]
        if len(parts) > 1 or any(text is None for _, text in parts):
            return None
        return "{" + ", ".join(f"{key}: {text}" for key, text in parts) + "}"
    if isinstance(value, list | tuple):
        texts = [_flow(item) for item in value]
        known = [text for text in texts if text is not None]
        return f"[{', '.join(known)}]" if len(known) == len(texts) else None
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and not _NOT_TEXT.fullmatch(value):
        return value
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(char: str) -> str:
    """JSON leaves characters as they are that YAML refuses or that nobody can see."""
    return char if char.isprintable() else f"\\U{ord(char):08X}"

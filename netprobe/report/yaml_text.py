"""Writes plain data as YAML 1.2 for people to read and edit: the part of YAML that files need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netprobe.model.yaml_scalar import yaml_scalar

_SHORT_LIST = 90  # a list of scalars that fits on a line is written on one


def to_yaml(data: Mapping[str, Any]) -> str:
    """The document, mappings in their own order."""
    return "".join(f"{line}\n" for line in _mapping(data))


def _mapping(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{yaml_scalar(key)}:", value)


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
        parts = [(yaml_scalar(key), _flow(item)) for key, item in value.items()]
        if len(parts) > 1 or any(text is None for _, text in parts):
            return None
        return "{" + ", ".join(f"{key}: {text}" for key, text in parts) + "}"
    if isinstance(value, list | tuple):
        texts = [_flow(item) for item in value]
        known = [text for text in texts if text is not None]
        return f"[{', '.join(known)}]" if len(known) == len(texts) else None
    return yaml_scalar(value)

"""Words of problems: values in quotes, lists of names, and the nearest known name."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Set

from netprobe.load.yaml.scalars import text_of
from netprobe.model.names import nearest

_MAX_QUOTED = 60
_MAX_NAMES = 20
# User and password of an address such as https://user:password@proxy:3128.
_LOGIN = re.compile(r"(?<=//)[^/@\s]+(?=@)")


def quoted(value: object) -> str:
    """A value in double quotes, on one line, without control characters, not longer than a line.

    Of an address with a user and a password both are left out.
    """
    text = _LOGIN.sub("...", text_of(value))
    if len(text) > _MAX_QUOTED:
        text = text[: _MAX_QUOTED - 3] + "..."
    return f'"{text}"' if text.isprintable() else json.dumps(text)


def what_it_is(value: object) -> str:
    """Give the value in the file, for "X, expected Y": ``5 is a number``, ``this is a list`` ..."""
    if value is None:
        return "nothing stands here"
    if isinstance(value, bool):
        return f"{text_of(value)} is a boolean"
    if isinstance(value, int | float):
        return f"{text_of(value)[:_MAX_QUOTED]} is a number"
    if isinstance(value, str):
        return f"{quoted(value)} is text"
    return "this is a list" if isinstance(value, list) else "this is a mapping"


def listed(names: Iterable[object]) -> str:
    """Names as people write them: ``a, b, c``; one that is not printable is quoted."""
    texts = (text_of(name) for name in names)
    return ", ".join(text if text.isprintable() else quoted(text) for text in texts)


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """``unknown role "mastr", did you mean "master"?``, or the list where nothing is near."""
    return f"unknown {kind} {quoted(name)}, {instead_of(name, known)}"


def instead_of(name: str, known: Collection[str]) -> str:
    """Give the names that were probably meant, else all known names."""
    near = word_nearest(name, known)
    if not known:
        return "expected none: there are none here"
    if near:
        return near.removeprefix(", ")
    names = sorted(known) if isinstance(known, Set) else list(known)
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"expected one of: {listed(names[:_MAX_NAMES])}{more}"


def word_nearest(name: str, known: Iterable[str]) -> str:
    """``, did you mean "master"?``; empty where nothing is near."""
    near = nearest(name, known)
    return f", did you mean {' or '.join(quoted(hit) for hit in near)}?" if near else ""

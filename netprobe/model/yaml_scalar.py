"""Writes one scalar of a YAML file, so that every reader, of YAML 1.1 or 1.2, gets it back."""

from __future__ import annotations

import json
import re

# A text that begins with a letter is never a number, a date or a time.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()=+-]+)*")
# YAML 1.1 takes these for booleans and null, YAML 1.2 some of them.
_KEYWORD = re.compile(r"(?i)y|n|yes|no|on|off|true|false|null")


def yaml_scalar(value: object) -> str:
    """A text, number, boolean or None on one line; a text is bare only where nothing is in doubt.

    Other texts become JSON strings, which YAML 1.2 contains.
    """
    if isinstance(value, str) and _BARE.fullmatch(value) and not _KEYWORD.fullmatch(value):
        return value
    return "".join(map(_escape_unprintable, json.dumps(value, ensure_ascii=False)))


def _escape_unprintable(char: str) -> str:
    """JSON leaves characters as they are that YAML refuses or that nobody can see."""
    return char if char.isprintable() else f"\\U{ord(char):08X}"

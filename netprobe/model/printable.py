"""Texts of others (hosts, ssh, Ansible, files) as lines that do nothing to a terminal.

Writes one scalar of a YAML file, so that every reader, of YAML 1.1 or 1.2, gets it back.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

# Whole escape sequences first: without their ESC the rest would stay as litter ("[31m").
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)
_SPACES = re.compile(r"[^\S ]+")
# Whatever Markdown, as GitHub, GitLab and Jira read it, may take for more than text.
_MARKS = re.compile(r"([\\`*_{}\[\]|<>~@&$!#])")

# What makes a cell a formula (CWE-1236), also behind what another locale takes for a separator.
_FORMULA = re.compile(r"(^|[;,\t\r\n|])(\s*)([=+\-@])")

# A text that begins with a letter is never a number, a date or a time.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./()-]*(?: [A-Za-z0-9_./()=+-]+)*")
# YAML 1.1 takes these for booleans and null, YAML 1.2 some of them.
_KEYWORD = re.compile(r"(?i)y|n|yes|no|on|off|true|false|null")


def clean(text: str) -> str:
    """Make one line of characters that can be seen; what a host said may hold anything.

    What goes: control characters, marks that turn the reading direction round, what UTF-8 cannot
    carry, and what is no character yet.
    """
    if text.isprintable():
        return text
    return "".join(filter(str.isprintable, _SPACES.sub(" ", _ESCAPES.sub("", text))))


def disarm_cell(text: str) -> str:
    """Give a text that no spreadsheet takes for a formula: an apostrophe goes before its sign."""
    return _FORMULA.sub(r"\1\2'\3", text)


def word_command(words: Iterable[str]) -> str:
    """Write a command line, or a part of one, that may be pasted into a shell as it is.

    Its words come from inventories, manifests and files: each of them stays one word.
    """
    return shlex.join(map(clean, words))


def word_note(note: str) -> str:
    """Write a note as a line; one that is a warning says so itself."""
    return note if note.startswith("warning: ") else f"note: {note}"


def escape_markdown(text: str) -> str:
    """Give one line of which Markdown makes nothing: no link, no table, no HTML, no mention."""
    escaped = _MARKS.sub(r"\\\1", clean(text))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\@", "&#64;")


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

"""Texts of others (hosts, ssh, Ansible, files) as lines that do nothing to a terminal."""

from __future__ import annotations

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


def clean(text: str) -> str:
    """Make one line of characters that can be seen; what a host said may hold anything.

    What goes: control characters, marks that turn the reading direction round, what UTF-8 cannot
    carry, and what is no character yet.
    """
    if text.isprintable():
        return text
    return "".join(filter(str.isprintable, _SPACES.sub(" ", _ESCAPES.sub("", text))))


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

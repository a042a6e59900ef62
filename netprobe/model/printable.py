"""Texts of others (hosts, ssh, Ansible, files) as lines that do nothing to a terminal."""

from __future__ import annotations

import re

# Whole escape sequences first: without their ESC the rest would stay as litter ("[31m").
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)
_SPACES = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Whatever Markdown, as GitHub, GitLab and Jira read it, may take for more than text.
_MARKS = re.compile(r"([\\`*_{}\[\]|<>~@&$!#])")
# Control characters, the marks that turn the reading direction round, and what UTF-8 cannot carry.
_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Make one line without control characters; what a host said may hold anything."""
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _SPACES.sub(" ", _ESCAPES.sub("", text)))


def word_note(note: str) -> str:
    """Write a note as a line; one that is a warning says so itself."""
    return note if note.startswith("warning: ") else f"note: {note}"


def escape_markdown(text: str) -> str:
    """Give one line of which Markdown makes nothing: no link, no table, no HTML, no mention."""
    escaped = _MARKS.sub(r"\\\1", clean(text))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\@", "&#64;")

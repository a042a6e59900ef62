"""HTML that cannot be broken out of: every text is escaped when an element takes it."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable

from netprobe.model.printable import clean

# Names with hyphens, and the brackets and commas at them, which begin or end no line; what is
# longer must be broken somewhere on a narrow window.
_WORDS = re.compile(r"([^\s,+]+[,+]*)")
_HYPHEN = re.compile(r"\w-\w")
# Elements that have no end.
_VOID = frozenset({"meta", "link", "br", "input"})


class Markup(str):
    """HTML that is safe as it is; only this module makes it of other texts."""

    __slots__ = ()


Child = str | Markup | Iterable["Markup"] | None


def element(name: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """Make an element; ``class_`` is ``class``, ``aria_label`` is ``aria-label``."""
    begin = f"<{name}{''.join(map(_write_attribute, attributes.items()))}>"
    if name in _VOID:
        return Markup(begin)
    return Markup(f"{begin}{''.join(map(escape, children))}</{name}>")


def escape(child: Child) -> str:
    """Give a child as HTML: markup as it is, text as text."""
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(clean(child))
    return "".join(child)


def keep_names(text: str) -> Markup:
    """Give a text whose names are on one line each: browsers break lines at hyphens."""
    words = _WORDS.split(clean(text))
    return Markup("".join(map(_keep_word, words)))


def _keep_word(word: str) -> str:
    return element("span", word, class_="name") if _HYPHEN.search(word) else escape(word)


def _write_attribute(item: tuple[str, str | bool | None]) -> str:
    name, value = item[0].rstrip("_").replace("_", "-"), item[1]
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(clean(value))}"'


def raw_element(name: str, text: str, /, **attributes: str) -> Markup:
    """Make a script or style of our own text. Raises ValueError where its end occurs in it."""
    if f"</{name}" in text.lower() or "<!--" in text:
        raise ValueError(f"this text would end its <{name}>")
    written = "".join(map(_write_attribute, attributes.items()))
    return Markup(f"<{name}{written}>{text}</{name}>")


def source_hash(text: str) -> str:
    """Give what a content security policy calls this text: ``'sha256-...'``."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"

"""Texts of others (hosts, purposes, rows) as words that cannot break out of a syntax; names.

They come from inventories and matrices, which other people write. Addresses and ports need none of
this: they are numbers, and are written as such.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from netprobe.model.printable import clean

# Nothing of this ends a string, begins a comment, a variable or a command, or asks for help in any
# of the syntaxes: scripts of sh and PowerShell, nft, the command lines of devices, HCL and YAML.
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:/,()+=@-]+")
_WORDS = {"→": "to", ";": ","}
_MOST = 200


def plain(text: str, most: int = _MOST) -> str:
    """Give one line of ASCII without any sign that means something to a device."""
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    # A word that begins with a dash could be an option, where a text stands alone.
    return _UNSAFE.sub("_", clean(text)).strip()[:most].strip().lstrip("-")


def symbol(text: str, most: int = 24) -> str:
    """Give a name that every device takes: capital letters, digits and underscores."""
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")[:most].strip("_") or "HOSTS"


def digest_of(words: Iterable[str]) -> str:
    """Give 6 hexadecimal digits that stand for these words."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:6]

"""What of CPython and of the wheels does not travel: one table, each entry with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple


class LeftOut(NamedTuple):
    """Files that stay away: where they lie, their names there as an expression, and the reason."""

    place: str
    names: str
    reason: str


# Files of the standard library, its extension modules, and the wheels as they are unpacked.
STDLIB, EXTENSIONS, WHEELS = "stdlib", "extensions", "wheels"
LEFT_OUT = (
    LeftOut(STDLIB, r"test/.*|.*/tests?/.*|(unittest|__phello__)/.*|doctest\.py", "tests"),
    LeftOut(STDLIB, r"(ensurepip|distutils|lib2to3|venv|config-[^/]+)/.*", "it installs others"),
    LeftOut(
        STDLIB, r"(idlelib|tkinter|turtledemo|curses)/.*|turtle\.py", "needs a screen or a terminal"
    ),
    LeftOut(STDLIB, r"(dbm|xmlrpc)/.*", "nothing here stores or asks so"),
    LeftOut(
        STDLIB,
        r"pydoc_data/.*|(cProfile|modulefinder|pdb|pickletools|profile|pstats|pyclbr|pydoc|tabnanny"
        r"|trace)\.py",
        "it looks at programs while they are written",
    ),
    LeftOut(
        STDLIB,
        r"(aifc|antigravity|asynchat|asyncore|cgi|cgitb|chunk|crypt|imghdr|mailcap|smtpd|sndhdr"
        r"|sunau|telnetlib|this|wave|xdrlib)\.py",
        "deprecated: later Pythons do not have it",
    ),
    LeftOut(STDLIB, r"(ftplib|imaplib|mailbox|nntplib|poplib|smtplib)\.py", "mail and files"),
    LeftOut(STDLIB, r"(_pydecimal|_pyio)\.py", "the same is there in C"),
    LeftOut(STDLIB, r"LICENSE.*", "share/doc/netprobe has it"),
    LeftOut(STDLIB, r"sitecustomize\.py", "the release has one of its own"),
    LeftOut(EXTENSIONS, r"(_test|_xxtest|xxlimited|_xxsubinterpreters).*", "only tests load it"),
    LeftOut(
        EXTENSIONS,
        r"(_curses|_curses_panel|_crypt|_dbm|nis|ossaudiodev|readline|audioop)\..*",
        "needs a library that nothing here uses",
    ),
    LeftOut(EXTENSIONS, r"_codecs_.*", "Chinese, Japanese and Korean encodings other than UTF-8"),
    LeftOut(WHEELS, r".*\.pyi|.*/py\.typed|pydantic/(v1/)?mypy\.py", "only type checkers read it"),
    LeftOut(WHEELS, r"certifi/tests/.*|anyio/pytest_plugin\.py", "tests"),
    LeftOut(WHEELS, r"pycparser[/-].*|cffi/.*", "it builds what _cffi_backend only loads"),
    LeftOut(
        WHEELS, r"(pygments|markdown_it|markdown_it_py|mdurl)[/-].*", "rich prints no source here"
    ),
    LeftOut(WHEELS, r"pydantic/v1/.*", "models of pydantic 1"),
)


def is_left_out(place: str, name: str) -> bool:
    """Whether a file stays away, by its name in its place."""
    return any(one.place == place and re.fullmatch(one.names, name) for one in LEFT_OUT)

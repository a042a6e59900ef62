"""The agent as it crosses the wire: its sources in one bundle, and the Python that loads it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from netprobe.vantage.strip import strip

# One line, because a newline inside quotes is an error in csh; and no exclamation mark, backslash,
# double quote, dollar or backtick, because it crosses sh inside double quotes and the login shell,
# whatever that is. A buffer of one byte leaves what follows the bundle unread. The alarm ends a
# bootstrap whose bundle never comes; later the agent's dead man's switch takes over. What
# every agent needs is imported while the bundle is on its way. Garbage is not looked for before
# ``main`` says how often: imports make none.
BOOTSTRAP = (
    "import gc;gc.disable();import sys,io,zlib,signal;"
    "signal.alarm(60);"
    "print('NETPROBE-READY',flush=True);"
    "import json,socket;"
    "f=io.BufferedReader(io.FileIO(0,closefd=False),1);"
    "p=zlib.decompress(f.read(int(f.readline()))).decode().split(chr(0));"
    "m=dict(zip(p[::2],p[1::2]));"
    "g={'__name__':'netprobe_agent.boot'};"
    "exec(compile(m['boot'],'netprobe_agent/boot.py','exec'),g);"
    "g['boot'](m)"
)

# Only mypy needs ``typing``, whose import would be a tenth of the agent's start.
_TYPING = ("\nfrom typing import ", "\nfrom netprobe_agent.untyped import ")


def sources() -> dict[str, str]:
    """Read every module of the agent, sorted by its dotted name; a package's own is ``__init__``.

    This works from an installed wheel and from a zip file too.
    """
    texts = dict(_read_modules(resources.files("netprobe.agent"), ""))
    return {name: strip(texts[name]).replace(*_TYPING) for name in sorted(texts)}


def _read_modules(folder: Traversable, package: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _read_modules(item, f"{package}{item.name}.")
        elif item.name.endswith(".py"):
            yield package + item.name.removesuffix(".py"), item.read_text(encoding="utf-8")


@cache
def bundle() -> bytes:
    """Pack what the bootstrap reads: the bundle's length as a line, then the bundle.

    Names and sources by turns with a NUL between them, which is read faster than JSON.
    """
    parts = [part for module in sources().items() for part in module]
    packed = zlib.compress("\0".join(parts).encode("utf-8"), 9)
    return b"%d\n%s" % (len(packed), packed)

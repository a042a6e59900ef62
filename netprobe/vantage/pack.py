"""The agent as it crosses the wire: its sources in one bundle, and the Python that loads it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import cache_from_source
from pathlib import Path

from netprobe.vantage.strip import strip

# One line, because a newline inside quotes is an error in csh; and no exclamation mark, backslash,
# double quote, dollar or backtick, because it crosses sh inside double quotes and the login shell,
# whatever that is. A buffer of one byte leaves what follows the bundle unread. The alarm ends a
# bootstrap whose bundle never comes; later the agent's dead man's switch takes over. What
# every agent needs is imported while the bundle is on its way. Garbage is not looked for before
# ``main`` says how often: imports make none.
_BOOTSTRAP = (
    "import gc;gc.disable();import sys,io,zlib,signal;"
    "signal.alarm(60);"
    "print('NETPROBE-READY',flush=True);"
    "import json,socket;"
    "f=io.BufferedReader(io.FileIO(0,closefd=False),1);"
    "p=zlib.decompress(f.read(int(f.readline()))).decode().split(chr(0));"
    "m=dict(zip(p[::2],p[1::2]));"
    "g={'__name__':'netprobe_agent.boot'};"
    "exec(compile(m['boot'],'netprobe_agent/boot.py','exec'),g);"
    "g['boot'](m,'%s')"
)
BOOTSTRAP = _BOOTSTRAP % "main"
# The same for a run that an engine drives: behind the bundle stands the host's script.
ENGINE_BOOTSTRAP = _BOOTSTRAP % "batch.engine"

# Only mypy needs ``typing``, whose import would be a tenth of the agent's start.
_TYPING = ("\nfrom typing import ", "\nfrom netprobe_agent.untyped import ")


# What only an agent without a live coordinator needs.
_BATCH = ("batch.", "wire.batch", "wire.result_lines")


def sources(*, batch: bool = False) -> dict[str, str]:
    """Read every module of the agent, sorted by its dotted name; a package's own is ``__init__``.

    ``batch``: those too that carry out scripts. This works from an installed wheel and from a zip
    file too.
    """
    return {name: strip(text).replace(*_TYPING) for name, text in _read_texts(batch).items()}


def _read_texts(batch: bool) -> dict[str, str]:
    read = _read_modules(resources.files("netprobe.agent"), "")
    return dict(sorted(one for one in read if batch or not one[0].startswith(_BATCH)))


def _read_modules(folder: Traversable, package: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _read_modules(item, f"{package}{item.name}.")
        elif item.name.endswith(".py"):
            yield package + item.name.removesuffix(".py"), item.read_text(encoding="utf-8")


@cache
def bundle(*, batch: bool = False) -> bytes:
    """Pack what the bootstrap reads: the bundle's length as a line, then the bundle.

    Names and sources by turns with a NUL between them, which is read faster than JSON. Stripping
    takes a third of a second, so the bundle is kept beside the bytecode of this module.
    """
    path = _find_cache(batch)
    with contextlib.suppress(OSError):
        if path is not None:
            return path.read_bytes()
    parts = [part for module in sources(batch=batch).items() for part in module]
    packed = zlib.compress("\0".join(parts).encode("utf-8"), 9)
    made = b"%d\n%s" % (len(packed), packed)
    if path is not None:
        _keep_bundle(path, made)
    return made


def _find_cache(batch: bool) -> Path | None:
    """Find where the bundle of these sources is kept, as Python keeps bytecode; None: nowhere."""
    if sys.dont_write_bytecode:
        return None
    try:
        beside = Path(cache_from_source(__file__))
    except NotImplementedError:
        return None  # this Python keeps no bytecode
    own = Path(strip.__code__.co_filename), Path(__file__)
    with contextlib.suppress(OSError):
        known = [*_read_texts(batch).items(), *((one.name, one.read_text()) for one in own)]
        digest = hashlib.sha256("\0".join(part for one in known for part in one).encode("utf-8"))
        kind = "batch" if batch else "agent"
        return beside.with_name(f"{kind}-{digest.hexdigest()[:32]}.bundle")
    return None  # in a zip file


def _keep_bundle(path: Path, made: bytes) -> None:
    """Write the bundle whole or not at all, and remove those of other sources."""
    with contextlib.suppress(OSError):
        for old in path.parent.glob(f"{path.name.partition('-')[0]}-*.bundle"):
            old.unlink()
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(made)
        os.replace(file.name, path)

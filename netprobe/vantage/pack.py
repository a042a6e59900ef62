"""The agent as it crosses the wire: its sources in one bundle, and the Python that loads it."""

from __future__ import annotations

import json
import zlib
from functools import cache
from importlib import resources

# One line, because a newline inside quotes is an error in csh; and no exclamation mark, backslash,
# double quote, dollar or backtick, because it crosses sh inside double quotes and the login shell,
# whatever that is. A buffer of one byte leaves what follows the bundle unread. The alarm ends a
# bootstrap whose bundle never comes; later the agent's dead man's switch takes over.
BOOTSTRAP = (
    "import sys,io,json,zlib,signal;"
    "signal.alarm(60);"
    "print('NETPROBE-READY',flush=True);"
    "f=io.BufferedReader(io.FileIO(0,closefd=False),1);"
    "m=json.loads(zlib.decompress(f.read(int(f.readline()))).decode());"
    "g={'__name__':'netprobe_agent.boot'};"
    "exec(compile(m['boot'],'netprobe_agent/boot.py','exec'),g);"
    "g['boot'](m)"
)


def sources() -> dict[str, str]:
    """Every module of the agent by name, sorted; also from an installed wheel or a zip file."""
    folder = resources.files("netprobe.agent")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".py"))
    return {name[:-3]: (folder / name).read_text(encoding="utf-8") for name in names}


@cache
def bundle() -> bytes:
    """What is written to the bootstrap: the bundle's length as a line, then the bundle."""
    packed = zlib.compress(json.dumps(sources(), sort_keys=True).encode("utf-8"), 9)
    return b"%d\n%s" % (len(packed), packed)

"""Every Python from 3.6 up that is on this machine: one interpreter a version."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from pathlib import Path

PLACES = (
    "/root/.pyenv/versions/*/bin/python3.*",
    os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"),
    "/usr/bin/python3.*",
    "/usr/local/bin/python3.*",
    "/opt/*/bin/python3.*",
    "/usr/libexec/platform-python",
)
# netprobe does not run under it, and says so.
PYTHON_2 = ("/root/.pyenv/versions/2.7*/bin/python2.7", "/usr/bin/python2.7")


def _find_interpreters() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted({path for place in PLACES for path in glob.glob(place)}):
        if not re.fullmatch(r"python3\.\d+|platform-python", Path(path).name):
            continue
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and tuple(map(int, done.stdout.split("."))) >= (3, 6):
            found.setdefault(done.stdout.strip(), path)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


# The oldest first.
INTERPRETERS = _find_interpreters()

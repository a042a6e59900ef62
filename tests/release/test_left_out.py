"""What of CPython and of the wheels stays away from a release: nothing that netprobe needs."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from release.left_out import LEFT_OUT, WHEELS, is_left_out

_WHEELS = Path(sysconfig.get_path("purelib"))
_ROOT = Path(__file__).parents[2]
# Imports every module of netprobe where no module can be found that is left out.
WITHOUT = """
import importlib, json, pkgutil, sys, sysconfig
from importlib.machinery import PathFinder
from pathlib import Path
from release.left_out import STDLIB, WHEELS, is_left_out
PLACES = {WHEELS: sysconfig.get_path("purelib"), STDLIB: sysconfig.get_path("stdlib")}
hidden = set()

class Hides(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        file = Path(spec.origin or "") if spec else Path()
        place = next((one for one in PLACES if file.is_relative_to(PLACES[one])), None)
        if place and is_left_out(place, file.relative_to(PLACES[place]).as_posix()):
            hidden.add(name)
            raise ModuleNotFoundError(name)
        return spec

sys.meta_path.insert(0, Hides)
import netprobe
for module in pkgutil.walk_packages(netprobe.__path__, "netprobe."):
    if not module.name.endswith(("__main__", "ansible_guard", "inside")):
        importlib.import_module(module.name)
import xlsxwriter, h2, yaml._yaml, cryptography.x509
print(sorted(hidden))
"""


def test_netprobe_needs_nothing_that_is_left_out() -> None:
    """Where no module can be found that stays away, all modules of netprobe can be imported. What
    is asked for in vain is the command of a library, in colours."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False, cwd=_ROOT
    )
    assert (done.stdout, done.stderr[-2000:]) == ("['pygments']\n", "")


def test_every_entry_for_wheels_is_used() -> None:
    """An entry that names no file of the wheels that the lock pins is out of date."""
    names = [path.relative_to(_WHEELS).as_posix() for path in _WHEELS.rglob("*") if path.is_file()]
    unused = [
        one.names
        for one in LEFT_OUT
        if one.place == WHEELS and not any(re.fullmatch(one.names, name) for name in names)
    ]
    assert unused == []


def test_licences_of_what_travels_stay() -> None:
    """Of a package that travels, the folder with its licence travels, too."""
    assert not is_left_out(WHEELS, "cffi-2.1.1.dist-info/licenses/LICENSE")
    assert is_left_out(WHEELS, "pycparser-3.12.dist-info/licenses/LICENSE")

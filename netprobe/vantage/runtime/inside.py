"""Runs inside the Python that a runtime is made of (3.6 or later), with nothing of netprobe.

Arguments: a folder, and the modules that an agent may import, separated by commas. It imports
them, writes the pure ones into a zip file of the folder, and prints as JSON what else belongs to
them, and where this Python looks for its library.
"""

import json
import marshal
import os
import sys
import zipfile
from importlib import import_module
from importlib.util import MAGIC_NUMBER

# OpenSSL is larger than the rest together; without it hashlib takes its own code.
NEEDLESS = ("_hashlib", "_ssl")


def collect(folder: str, wanted: "list[str]") -> "dict[str, object]":
    """Import what is wanted, write the zip file, and give the facts of this interpreter."""
    base = sys.base_prefix
    archive = next(path for path in sys.path if path.endswith(".zip"))
    library = os.path.dirname(os.__file__)
    for name in NEEDLESS:
        sys.modules[name] = None  # type: ignore[assignment]
    found = [name for name in wanted if _can_import(name)]
    names = sorted(name for name in sys.modules if name != "__main__")
    origins = [
        getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) for name in names
    ]
    extensions = [origin for origin in origins if origin and origin.endswith(".so")]
    os.makedirs(os.path.join(folder, os.path.dirname(os.path.relpath(archive, base))))
    landmark = os.path.join(folder, os.path.relpath(library, base), "os.pyc")
    dynload = os.path.join(os.path.dirname(landmark), "lib-dynload")
    os.makedirs(dynload)
    with zipfile.ZipFile(os.path.join(folder, os.path.relpath(archive, base)), "w") as packed:
        for name in names:
            for path in (name.replace(".", "/") + end for end in ("/__init__.py", ".py")):
                source = os.path.join(library, path)
                # Others are built in, frozen, an extension, or another name of one of these.
                if os.path.isfile(source):
                    packed.writestr(zipfile.ZipInfo(path + "c"), _compile_module(source, path))
                    break
    # By this file it finds its folder; the zip file comes first, so nobody reads it.
    open(landmark, "wb").close()
    return {
        "found": found,
        "extensions": extensions,
        "dynload": os.path.relpath(dynload, folder),
        "version": sys.version.split()[0],
        "executable": sys.executable,
    }


def _can_import(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def _compile_module(source: str, path: str) -> bytes:
    """Give a module as the bytes of its .pyc file, without a date."""
    with open(source, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    dates = bytes(12 if sys.version_info >= (3, 7) else 8)
    return MAGIC_NUMBER + dates + marshal.dumps(code)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(collect(sys.argv[1], sys.argv[2].split(","))))

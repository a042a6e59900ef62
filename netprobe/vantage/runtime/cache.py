"""Where runtimes are kept on this machine, and which one a host gets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from netprobe.errors import FileErrors, NetprobeError, RequestError
from netprobe.files import MIB
from netprobe.vantage.runtime.build import agent_modules, build_runtime
from netprobe.vantage.runtime.elf import arch_of, read_elf
from netprobe.vantage.runtime.file import Runtime, load_runtime

_HEADER_BYTES = 64 * 1024


def cache_folder() -> Path:
    """Give the folder of all runtimes; it may not be there. XDG_CACHE_HOME is honoured.

    Raises RequestError where the environment and the users' database name none.
    """
    bases = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))
    # As the specification wants it, a relative one is ignored.
    base = next(filter(os.path.isabs, bases), None)
    if base is None:
        raise RequestError("this user has no home for runtimes: set HOME or XDG_CACHE_HOME")
    return Path(base, "netprobe")


def cache_path(arch: str) -> Path:
    """Give the place of the runtime for an architecture."""
    return cache_folder() / f"runtime-{arch}.tar.gz"


def carried_path(arch: str) -> Path:
    """Give where a netprobe that brings its own Python has one for hosts; it may not be there."""
    return Path(sys.prefix, "share", "netprobe", f"runtime-{arch}.tar.gz")


def list_runtimes() -> list[Path]:
    """List the files of all runtimes: those that came with netprobe, then those that are kept.

    Raises RequestError where none came, and the folder of the others cannot be read.
    """
    carried = sorted(carried_path("x").parent.glob("runtime-*.tar.gz"))
    try:
        folder = cache_folder()
        return carried + sorted(folder.glob("runtime-*.tar.gz"))
    except RequestError:
        if carried:
            return carried
        raise
    except OSError as error:
        raise RequestError(f"{folder} cannot be read: {error.strerror}") from None


def keep_runtime(runtime: Runtime, path: Path) -> None:
    """Write a runtime whole or not at all; of folders only that of all runtimes is made.

    Raises OSError.
    """
    if path.parent == cache_folder():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(runtime.payload)
    os.replace(file.name, path)


def make_runtime(python: str | None) -> Runtime:
    """Give the runtime that came with netprobe; build one where none did, or of this Python.

    Raises FileErrors or RequestError.
    """
    carried = carried_path(own_arch())
    if python is None and carried.exists():
        return load_runtime(str(carried))
    return build_runtime(python)


def own_arch() -> str:
    """Give the architecture of this process's program: a 32-bit one may run on a 64-bit kernel."""
    with contextlib.suppress(OSError), open(sys.executable, "rb") as file:
        elf = read_elf(file.read(_HEADER_BYTES))
        if elf is not None:
            return elf.arch
    return arch_of(os.uname().machine)


def lacks_of(runtime: Runtime) -> list[str]:
    """List the modules that this netprobe's agent imports and the runtime was not asked for."""
    return sorted(set(agent_modules()) - set(runtime.manifest.modules))


class NoRuntime(Exception):
    """There is no runtime for a host; the text says why and what to do."""


class Runtimes:
    """The runtimes of one run: those that the user named, and what is kept or can be built here.

    ``tell`` gets a sentence when one is built.
    """

    def __init__(
        self, given: Iterable[Runtime] = (), tell: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._known: dict[str, Runtime | NoRuntime] = {one.arch: one for one in given}
        self._tell = tell
        self._lock = asyncio.Lock()

    async def find(self, machine: str) -> Runtime:
        """Find the runtime for what ``uname -m`` prints on a host; build it where that is needed.

        Raises NoRuntime. Each architecture is looked for once, whatever comes of it.
        """
        arch = arch_of(machine)
        async with self._lock:
            if arch not in self._known:
                # It takes seconds, and other hosts have Pythons.
                try:
                    self._known[arch] = await asyncio.to_thread(self._look_for, arch)
                except (FileErrors, RequestError) as error:
                    self._known[arch] = NoRuntime(f"no Python can be sent: {error}")
        found = self._known[arch]
        if isinstance(found, NoRuntime):
            raise found
        return found

    def _look_for(self, arch: str) -> Runtime | NoRuntime:
        if not arch:
            return NoRuntime("no Python can be sent: the host does not say what it is (uname -m)")
        carried = carried_path(arch)
        return load_runtime(str(carried)) if carried.exists() else self._find_kept(arch)

    def _find_kept(self, arch: str) -> Runtime | NoRuntime:
        path, own = cache_path(arch), own_arch()
        is_kept = os.path.exists(path)
        if is_kept:
            try:
                runtime = load_runtime(str(path))
            except FileErrors as error:
                if arch != own:
                    return NoRuntime(f"no Python can be sent: {error}")
            else:
                if runtime.arch == arch and not lacks_of(runtime):
                    return runtime
        if arch != own:
            why = "the one that is kept is of another version" if is_kept else "none is kept"
            return NoRuntime(
                f"no Python for {arch} can be sent, {why} and this machine is {own}: run `netprobe "
                f"runtime build -o FILE` on a machine that is {arch}, and give it with "
                "--agent-python FILE"
            )
        return self._build_and_keep(path)

    def _build_and_keep(self, path: Path) -> Runtime | NoRuntime:
        try:
            runtime = build_runtime()
        except NetprobeError as error:
            return NoRuntime(f"no Python can be sent: {error}")
        size = f"{len(runtime.payload) / MIB:.1f} MB of {runtime.manifest.built_from}"
        try:
            keep_runtime(runtime, path)
            self._tell(f"built a Python for hosts that have none: {path} ({size})")
        except OSError as error:
            words = f"{path} cannot be written: {error.strerror}"
            self._tell(f"built a Python for hosts that have none ({size}); it is not kept: {words}")
        return runtime

"""The first module of the bundle that runs: it makes the other modules importable from memory.

Nothing of the agent touches the node's disk, so modules come from the bundle, each compiled when
it is first imported. ``get_source`` gives ``linecache`` the lines that tracebacks show.
"""

import sys
from importlib.machinery import ModuleSpec

# What mypy takes for true: this module runs before it can import any other of the bundle.
MYPY = False
if MYPY:
    from typing import Any, Dict, Optional

PACKAGE = "netprobe_agent"


class BundleFinder:
    """Find and load ``netprobe_agent`` and its modules from {dotted name: source}.

    A package is named by its ``__init__``: ``__init__``, ``core.__init__`` ...
    """

    def __init__(self, sources: "Dict[str, str]") -> None:
        self._sources = sources

    def find_spec(
        self, fullname: str, path: "Any" = None, target: "Any" = None
    ) -> "Optional[ModuleSpec]":
        """Find a spec for what the bundle holds, None for everything else."""
        name = self._source_name(fullname)
        if name is None:
            return None
        spec = ModuleSpec(fullname, self, origin=self._file_of(name))  # type: ignore[arg-type]
        if name.endswith("__init__"):
            spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module object."""

    def exec_module(self, module: "Any") -> None:
        """Run a module's source."""
        name = self._source_name(module.__name__) or ""
        module.__file__ = self._file_of(name)
        source = self._sources[name]
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, fullname: str) -> str:
        """Give the source text, for tracebacks."""
        return self._sources[self._source_name(fullname) or ""]

    def _source_name(self, fullname: str) -> "Optional[str]":
        if fullname != PACKAGE and not fullname.startswith(PACKAGE + "."):
            return None
        name = fullname[len(PACKAGE) + 1 :]
        package = name + ".__init__" if name else "__init__"
        if package in self._sources:
            return package
        return name if name in self._sources else None

    def _file_of(self, name: str) -> str:
        return "%s/%s.py" % (PACKAGE, name.replace(".", "/"))


def boot(sources: "Dict[str, str]", name: str = "main") -> None:
    """Make the bundle importable and run the ``main`` of this module; it does not return."""
    sys.meta_path.insert(0, BundleFinder(sources))
    __import__(PACKAGE + "." + name)
    sys.modules[PACKAGE + "." + name].main()

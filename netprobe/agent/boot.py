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
    """Find and load ``netprobe_agent`` and its modules from {module name: source}."""

    def __init__(self, sources):
        # type: (Dict[str, str]) -> None
        self._sources = sources

    def find_spec(self, fullname, path=None, target=None):
        # type: (str, Any, Any) -> Optional[ModuleSpec]
        """A spec for what the bundle holds, None for everything else."""
        if self._source_name(fullname) is None:
            return None
        spec = ModuleSpec(fullname, self, origin=self._file(fullname))  # type: ignore[arg-type]
        if fullname == PACKAGE:
            spec.submodule_search_locations = []
        return spec

    def create_module(self, spec):
        # type: (ModuleSpec) -> None
        """Let the import system make the module object."""

    def exec_module(self, module):
        # type: (Any) -> None
        """Run a module's source."""
        name = module.__name__
        module.__file__ = self._file(name)
        source = self.get_source(name)
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, fullname):
        # type: (str) -> str
        """The source text, for imports and for tracebacks."""
        return self._sources[self._source_name(fullname) or ""]

    def _source_name(self, fullname):
        # type: (str) -> Optional[str]
        if fullname == PACKAGE:
            return "__init__"
        package, _, name = fullname.rpartition(".")
        return name if package == PACKAGE and name in self._sources else None

    def _file(self, fullname):
        # type: (str) -> str
        return "%s/%s.py" % (PACKAGE, self._source_name(fullname))


def boot(sources):
    # type: (Dict[str, str]) -> None
    """Make the bundle importable and run its ``main``; it does not return."""
    sys.meta_path.insert(0, BundleFinder(sources))
    __import__(PACKAGE + ".main")
    sys.modules[PACKAGE + ".main"].main()

"""What a wheel has beside the sources: agents ready to be sent, and manual pages and completions.

The latter belong to it where a release has written them (`make dist`).
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHARE = "build/release/share"


class WheelHook(BuildHookInterface[Any]):
    """Adds them to the wheel, and pages to the sdist, whose wheel has them then, too."""

    PLUGIN_NAME = "custom"
    _bundles: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Do so before a build, unless it is an editable one: there, sources change."""
        if version != "standard":
            return
        folder = Path(self.root, SHARE)
        if self.target_name != "wheel":
            if folder.is_dir():
                build_data["force_include"][str(folder)] = SHARE
            return
        if folder.is_dir():
            build_data["shared_data"][str(folder)] = "share"
        self._bundles = tempfile.TemporaryDirectory()
        for path in _write_bundles(Path(self.root), Path(self._bundles.name)):
            build_data["force_include"][str(path)] = f"netprobe/vantage/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder of the agents: the wheel has them."""
        if self._bundles is not None:
            self._bundles.cleanup()


def _write_bundles(root: Path, folder: Path) -> Iterator[Path]:
    """Strip and pack the agents of these sources."""
    sys.path.insert(0, str(root))
    from netprobe.vantage.pack import make_bundle, name_bundle  # noqa: PLC0415

    for batch in (False, True):
        path = folder / name_bundle(batch=batch)
        path.write_bytes(make_bundle(batch=batch))
        yield path

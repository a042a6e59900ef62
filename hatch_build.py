"""Manual pages and completions belong to a wheel where a release has written them (`make dist`)."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHARE = "build/release/share"


class ShareHook(BuildHookInterface[Any]):
    """Adds them to the wheel, and to the sdist, whose wheel has them then, too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Do so before a build, unless it is an editable one."""
        folder = Path(self.root, SHARE)
        if version != "standard" or not folder.is_dir():
            return
        if self.target_name == "wheel":
            build_data["shared_data"][str(folder)] = "share"
        else:
            build_data["force_include"][str(folder)] = SHARE

"""A bundle for each host, which holds no other host's key, and the plan for who merges."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netprobe.batch.bundle import bring_runtime, pack_bundle, pack_plan
from netprobe.batch.file_names import escape_first, safe_name
from netprobe.batch.script import HostScript
from netprobe.vantage.runtime.file import Runtime

PLAN_NAME = "plan"


def write_host_bundles(
    folder: Path,
    header: Mapping[str, Any],
    scripts: Sequence[HostScript],
    plan: bytes,
    runtime: Runtime | None = None,
) -> None:
    """Write a new folder (mode 0700): ``plan.pyz``, and for each host ``HOST.pyz``, which holds its
    own script and result key alone; with a runtime ``HOST.sh``. Files have mode 0600.

    Raises OSError, also where anything of it is there already.
    """
    folder.mkdir(mode=0o700, parents=True)
    create_private(folder / f"{PLAN_NAME}.pyz", pack_plan(header, plan))
    for script in scripts:
        packed = pack_bundle(header, [script])
        ending = "pyz" if runtime is None else "sh"
        data = packed if runtime is None else bring_runtime(packed, runtime)
        create_private(folder / f"{name_bundle(script.start.name)}.{ending}", data)


def name_bundle(host: str) -> str:
    """Give the name of a host's bundle, without its ending; no host has that of the plan."""
    name = safe_name(host)
    return escape_first(name) if name.lower() == PLAN_NAME else name


def create_private(path: Path, data: bytes) -> None:
    """Create a file that holds keys: nobody else may read it. Raises OSError where one is there."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)

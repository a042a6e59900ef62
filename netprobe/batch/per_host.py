"""A bundle for each host, which holds no other host's key, and the plan for who merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netprobe.batch.bundle import bring_runtime, pack_bundle, pack_plan
from netprobe.batch.file_names import escape_first, safe_name
from netprobe.batch.script import HostScript
from netprobe.files import create_secret
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
    create_secret(str(folder / f"{PLAN_NAME}.pyz"), pack_plan(header, plan))
    for script in scripts:
        packed = pack_bundle(header, [script])
        ending = "pyz" if runtime is None else "sh"
        data = packed if runtime is None else bring_runtime(packed, runtime)
        create_secret(str(folder / f"{name_bundle(script.start.name)}.{ending}"), data)


def name_bundle(host: str) -> str:
    """Give the name of a host's bundle, without its ending; no host has that of the plan."""
    name = safe_name(host)
    return escape_first(name) if name.lower() == PLAN_NAME else name

"""Where a process runs, from its control groups: a unit of systemd, or a pod."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Both drivers of cgroups: `kubepods-burstable-pod12_34.slice` and `/kubepods/burstable/pod12-34`.
# The uid of a static pod is the hash of its file, which has no dashes.
_HEX: Final = "[0-9a-f]"
_POD: Final = re.compile(
    rf"kubepods.*?pod({_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}|{_HEX}{{32}})"
)
_CONTAINER: Final = re.compile(rf"{_HEX}{{64}}")
_UNIT: Final = re.compile(r"[^/]+\.(?:service|scope)")
_SHORT: Final = 12


class GroupPlace(NamedTuple):
    """A unit, or a pod's uid, and the id of a container in short form."""

    unit: str | None
    pod: str | None
    container: str | None


def place_of(text: str) -> GroupPlace:
    """Read the text of ``/proc/PID/cgroup``; what it does not name is None.

    Version 1 has a path for each controller, of which systemd keeps only its own for sure.
    """
    lines = (line.split(":", 2) for line in text.splitlines() if line.count(":") > 1)
    paths = {name: path for _, name, path in lines}
    path = next((paths[name] for name in ("name=systemd", "") if paths.get(name, "/") != "/"), "")
    every = "\n".join((path, *paths.values()))
    pod, container = _POD.search(every), _CONTAINER.findall(path or every)
    units = _UNIT.findall(path)
    # A runtime gives each container a scope of its own, which says nothing more.
    unit = None if pod or not units else units[-1]
    return GroupPlace(
        unit,
        pod[1].replace("_", "-") if pod else None,
        container[-1][:_SHORT] if container else None,
    )

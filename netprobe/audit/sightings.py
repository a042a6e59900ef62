"""What an agent listed, as sockets with their holders: pure, from message to model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from netprobe.agent.wire.frames import PROCESS_NAME
from netprobe.agent.wire.host_messages import Sockets
from netprobe.agent.wire.parts import SocketOwner
from netprobe.model.audit import HostSocket, SocketHolder
from netprobe.model.plan import Pod
from netprobe.model.ports import PortRange
from netprobe.model.printable import clean

KERNEL = SocketHolder("kernel")
# systemd opens sockets for services and keeps them open.
INIT = 1
# Both drivers of cgroups: `kubepods-burstable-pod12_34.slice` and `/kubepods/burstable/pod12-34`.
# The uid of a static pod is the hash of its file, which has no dashes.
_HEX: Final = "[0-9a-f]"
_POD: Final = re.compile(
    rf"kubepods.*?pod({_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}|{_HEX}{{32}})"
)
_CONTAINER: Final = re.compile(rf"{_HEX}{{64}}")
_UNIT: Final = re.compile(r"[^/]+\.(?:service|scope)")
_SHORT: Final = 12


class HostView(Struct, frozen=True):
    """The sockets of a host; ``clients`` and ``ours`` count those that are left out.

    ``clients``: UDP sockets on ports of ``client_ports`` that no row has; ``ours``: sockets of
    other runs of netprobe.
    """

    name: str
    sockets: tuple[HostSocket, ...]
    client_ports: PortRange
    ours: int = 0


def read_view(name: str, told: Sockets, pods: Iterable[Pod]) -> HostView:
    """Give each socket the process that it belongs to."""
    names = {uid: pod.name for pod in pods for uid in pod.uids}
    owners = [_name_holder(one, names) for one in told.owners]
    sockets = []
    ours = 0
    for one in told.sockets:
        mine = [owners[at] for at in one.owners]
        if any(holder.process == PROCESS_NAME for holder in mine):
            ours += 1
        elif one.port:
            holder = _choose_holder(mine) or (KERNEL if told.sees_all else None)
            sockets.append(HostSocket(one.protocol, one.address, one.port, holder))
    return HostView(name, tuple(sockets), told.client_ports, ours)


def _choose_holder(holders: Sequence[SocketHolder]) -> SocketHolder | None:
    """Children inherit sockets, so the first process is the one; but not systemd, which hands its
    sockets to services."""
    return next((one for one in holders if one.pid != INIT), holders[0] if holders else None)


def _name_holder(owner: SocketOwner, pods: Mapping[str, str]) -> SocketHolder:
    """Name a process in texts that harm nothing: whoever starts one chooses its names."""
    place = place_of("\n".join(map(clean, owner.cgroups.splitlines())))
    pod = None if place.pod is None else pods.get(place.pod, place.pod)
    program = None if owner.program is None else clean(owner.program)
    return SocketHolder(clean(owner.process), program, owner.pid, place.unit, pod, place.container)


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

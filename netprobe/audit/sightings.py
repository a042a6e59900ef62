"""What an agent listed, as sockets with their holders: pure, from message to model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netprobe.agent.wire.frames import PROCESS_NAME
from netprobe.agent.wire.host_messages import Sockets
from netprobe.agent.wire.parts import SocketOwner
from netprobe.audit.groups import place_of
from netprobe.model.audit import HostSocket, SocketHolder
from netprobe.model.pods import Pod
from netprobe.model.ports import PortRange
from netprobe.model.printable import clean

KERNEL = SocketHolder("kernel")
# systemd opens sockets for services and keeps them open.
INIT = 1


@dataclass(frozen=True, slots=True)
class HostView:
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

"""Tells which source sent a packet that arrives; its address may be translated on the way.

A nonce tells from which address a source's packets arrive. TCP and echo carry no nonce, so their
senders are compared with those that the nonces of other flows have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from netprobe.model.inventory import Host
from netprobe.model.ports import Ports
from netprobe.probe.flows.work import Task


class Origins:
    """The addresses that packets to one destination come from, as far as nonces have told."""

    def __init__(
        self,
        hosts: Sequence[Host],
        own: Callable[[Host], Set[str]] = lambda host: host.listed_addresses,
    ) -> None:
        # The addresses that a host may send from: those of the inventory, and its agent's word.
        self.own = own
        self._all_hosts = hosts
        self._tasks: tuple[Task, ...] = ()
        self._senders: dict[tuple[str, str], set[str]] = {}
        self._known: frozenset[str] | None = None

    def expect(self, tasks: Iterable[Task]) -> None:
        """Note what is probed at the same time, and what the hosts have told until now."""
        self._tasks = tuple(tasks)
        self._known = None

    def note(self, task: Task, senders: Iterable[str]) -> None:
        """Note that nonces of this source came to the task's address from these."""
        self._senders.setdefault(task.pair, set()).update(senders)

    def is_of(self, task: Task, port: int, sender: str) -> bool | None:
        """Whether a packet that came to this port is the task's source's; None: nobody can say."""
        if sender in self.own(task.source):
            return True
        if sender in self._senders.get(task.pair, ()):
            return None if self._is_shared(task, port, sender) else True
        return False if sender in self._hosts else None

    @property
    def _hosts(self) -> frozenset[str]:
        """The addresses of all hosts; most destinations never need them."""
        if self._known is None:
            self._known = frozenset(one for host in self._all_hosts for one in self.own(host))
        return self._known

    def _is_shared(self, task: Task, port: int, sender: str) -> bool:
        """Tell whether another host that asks the same may come from that address too."""
        rivals = (
            self._senders.get(other.pair)
            for other in self._tasks
            if other.source.name != task.source.name
            and other.protocol == task.protocol
            and (not other.ports or holds(other.ports, port))
        )
        return sender in self._hosts or any(not known or sender in known for known in rivals)


def holds(ports: Ports, port: int) -> bool:
    """Tell whether the port is one of them."""
    return any(first <= port <= last for first, last in ports)

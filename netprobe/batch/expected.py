"""What destinations are asked of packets that others sent to them: each was told beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from netprobe.agent.wire import host_messages, orders
from netprobe.agent.wire.questions import NONCES
from netprobe.model import ports as port_sets
from netprobe.model.inventory import Host
from netprobe.model.ports import Ports


class Packets(NamedTuple):
    """The packets of one kind from one address to another."""

    asker: str
    target: str
    proto: str
    number: int | None


class Expected:
    """Notes what every host sends, and makes questions about it for those who should get it."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._owners = {
            text: host.name for host in hosts if host.may_start for text in host.listed_addresses
        }
        self._ports: dict[Packets, list[Ports]] = {}
        self._numbers: dict[Packets, set[int]] = {}

    def note_probe(self, source: str, order: Any) -> None:
        """Note what an order sends; other orders than probes send nothing."""
        for dst, number, ports in _list_sent(order):
            if self._owners.get(dst, source) == source:
                continue
            for asker in _list_askers(self._hosts[source], order.src, dst):
                for proto, proto_number in _name_protocols(order):
                    packets = Packets(asker, dst, proto, proto_number)
                    self._ports.setdefault(packets, []).append(ports)
                    self._numbers.setdefault(packets, set()).add(number)

    def list_questions(
        self, host: str, told: Iterable[Any], number: Callable[[], int]
    ) -> Iterator[Any]:
        """Give the questions to a host: what its recorder saw, and how it answers each asker.

        ``told`` are questions that it gets anyhow.
        """
        known = {
            (Packets(one.asker, one.target, one.proto, one.number), tuple(one.ports))
            for one in told
            if isinstance(one, orders.StoryOrder) and not one.sent
        }
        mine = [packets for packets in self._ports if self._owners[packets.target] == host]
        for packets in mine:
            ports = port_sets.union(self._ports[packets])
            numbers = [] if packets.proto == "tcp" else sorted(self._numbers[packets])
            if (packets, ports) not in known:
                yield orders.StoryOrder(
                    number(), packets.proto, packets.number, packets.asker, packets.target,
                    list(ports), sent=False, numbers=numbers, own_ports=[],
                )  # fmt: skip
        for asker, target in dict.fromkeys((packets.asker, packets.target) for packets in mine):
            yield host_messages.ReturnPathOrder(number(), asker, target)


def _list_sent(order: Any) -> Iterator[tuple[str, int, Ports]]:
    """Give what a probe sends: to which address, under which id, to which ports."""
    if isinstance(order, orders.EchoOrder):
        for dst, number in zip(order.dsts, order.numbers or [order.id], strict=False):
            yield dst, number, ()
    elif isinstance(order, orders.ProbeOrder):
        ports = port_sets.normalise(entry for block in order.blocks for entry in block.ports)
        yield order.dst, order.id, ports


def _name_protocols(order: Any) -> Iterator[tuple[str, int | None]]:
    """Give what the recorder calls an order's packets: SYNs and, over them, nonces."""
    if isinstance(order, orders.EchoOrder):
        yield "icmp", None
        return
    yield order.proto, order.number
    if order.proto == "tcp" and order.blocks[0].mode == "nonce":
        yield NONCES, None


def _list_askers(host: Host, src: str | None, dst: str) -> list[str]:
    """Give the addresses that a host may probe from."""
    if src is not None:
        return [src]
    family = 6 if ":" in dst else 4
    return [one.text for one in host.addresses if one.family == family]

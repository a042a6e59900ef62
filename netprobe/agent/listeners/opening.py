"""Open a round of listeners, a slice of ports at a time, so that thousands never stall the loop."""

import errno
import socket
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from ..core import loop as looping
from ..core.ranges import each
from ..host.hello import node_ports, runs_kubelet
from ..host.port_owners import Holders
from ..net.binding import bind_raw, bind_tcp, bind_udp, has_address, wildcard
from ..wire.failures import PERMISSION, TOO_MANY_FILES, name_of
from .rounds import Block, Port, Round

SLICE_PORTS = 256


class Opening:
    """The work of one ``listen`` order: calls ``opened`` with every port, ``done`` at the end.

    ``room`` is how many descriptors the round may take.
    """

    def __init__(
        self,
        loop: looping.Loop,
        of_round: Round,
        room: int,
        opened: Callable[[Port], None],
        done: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._room = room
        self._opened = opened
        self._done = done
        self._reserved = node_ports() if runs_kubelet() else None
        self._holders: Dict[str, Holders] = {}
        self._work = self._steps(of_round)
        self._timer = loop.call_later(0, self._slice)

    def cancel(self) -> None:
        """Open no more."""
        self._timer.cancel()

    def _slice(self) -> None:
        for _ in range(SLICE_PORTS):
            if next(self._work, None) is None:
                self._done()
                return
        self._timer = self._loop.call_later(0, self._slice)

    def _steps(self, of_round: Round) -> Iterator[bool]:
        for block in of_round.blocks:
            block.nat = not _is_here(block)
            if block.proto == "ipproto":
                self._open(block, 0, lambda b: bind_raw(_bind_address(b), b.number or 0))
                yield True
                continue
            for number in each(block.ranges):
                self._open_port(block, number)
                yield True

    def _open_port(self, block: Block, number: int) -> None:
        if self._is_reserved(number):
            block.skipped.add(number)
            return
        entry = self._holder(block, number, ("exact", "loopback"))
        if entry is not None:
            block.held.append((number, entry))
        elif block.proto == "udp":
            self._open(block, number, lambda b: bind_udp(_bind_address(b), number))
        else:
            # SO_REUSEADDR only where TIME_WAIT alone is in the way: it would also let us take a
            # port that a service has bound and not yet put into listening.
            reuse = self._table(block.proto).is_closing(number)
            self._open(block, number, lambda b: bind_tcp(_bind_address(b), number, reuse))

    def _open(self, block: Block, number: int, bind: Callable[[Block], socket.socket]) -> None:
        if self._room <= 0:
            block.fail(number, TOO_MANY_FILES)
            return
        try:
            port = Port(block, number, bind(block))
        except OSError as error:
            self._refused(block, number, error)
            return
        self._room -= 1
        beside = self._holder(block, number, ("elsewhere",)) if number else None
        if beside is not None:
            block.beside.append((number, beside))
        block.ports.append(port)
        self._opened(port)

    def _refused(self, block: Block, number: int, error: OSError) -> None:
        if error.errno in PERMISSION:
            block.denied.add(number)
            return
        entry = None
        if error.errno == errno.EADDRINUSE:
            entry = self._holder(block, number, ("exact", "perhaps", "loopback"))
            if entry is None:
                # It came after we looked, or it only connects from that port and listens to none.
                self._holders.pop(block.proto, None)
                entry = self._holder(block, number, ("exact", "perhaps", "loopback"))
        if entry is not None:
            block.held.append((number, entry))
        else:
            block.fail(number, name_of(error.errno))

    def _holder(self, block: Block, number: int, ways: Tuple[str, ...]) -> Optional[Any]:
        return self._table(block.proto).find(block.address, number, ways)

    def _table(self, proto: str) -> Holders:
        if proto not in self._holders:
            self._holders[proto] = Holders(proto)
        return self._holders[proto]

    def _is_reserved(self, number: int) -> bool:
        return self._reserved is not None and self._reserved[0] <= number <= self._reserved[1]


def _bind_address(block: Block) -> str:
    return wildcard(block.address) if block.nat else block.address


def _is_here(block: Block) -> bool:
    try:
        return has_address(block.address)
    except OSError:
        return True  # no such family here ...: binding says what is wrong

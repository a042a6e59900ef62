"""Open a round of listeners, a slice of ports at a time, so that thousands never stall the loop."""

import errno
import socket
from typing import Callable, Dict, Iterator, Optional, Tuple

from ..core import loop as looping
from ..core.ranges import each
from ..host.hello import node_ports, runs_kubelet
from ..host.port_owners import PortHolders, Socket
from ..net.binding import bind_raw, bind_tcp, bind_udp, has_address, wildcard
from ..wire.failures import PERMISSION, SHORT_OF, TOO_MANY_FILES, name_of
from .rounds import ListenerBlock, ListenerPort, ListenerRound

SLICE_PORTS = 256
# Probes of this agent may have its last files for a moment: a round waits for them, so often.
MOST_PAUSES = 40
PAUSE_S = 0.05
# A holder of the port beside which our listener can be. "perhaps": one on :: that is IPv6 only.
BESIDE_WAYS = ("loopback", "elsewhere", "perhaps")


class Opening:
    """The work of one ``ListenOrder``: calls ``opened`` with every port, ``done`` at the end.

    ``files`` is how many descriptors the round may take.
    """

    def __init__(
        self,
        loop: looping.Loop,
        of_round: ListenerRound,
        files: int,
        opened: Callable[[ListenerPort], None],
        done: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._files_left = files
        self._pauses_left = MOST_PAUSES
        self._opened = opened
        self._done = done
        platform_runs = runs_kubelet()
        self._reserved = node_ports() if platform_runs else None
        # What a platform holds on loopback it means to hold there only.
        self._holding_ways = ("exact", "loopback") if platform_runs else ("exact",)
        self._holders: Dict[str, PortHolders] = {}
        self._work = self._open_ports(of_round)
        self._timer = loop.call_later(0, self._open_slice)

    def cancel(self) -> None:
        """Open no more."""
        self._timer.cancel()

    def _open_slice(self) -> None:
        pause_s = 0.0
        for _ in range(SLICE_PORTS):
            is_short = next(self._work, None)
            if is_short is None:
                self._done()
                return
            if is_short:
                pause_s = PAUSE_S
                break
        self._timer = self._loop.call_later(pause_s, self._open_slice)

    def _open_ports(self, of_round: ListenerRound) -> Iterator[bool]:
        """Open one port after the other, and say each time whether files are short: True comes
        again for the same port."""
        for block in of_round.blocks:
            try:
                block.nat = not has_address(block.address)
            except OSError:
                pass  # no such family here ...: binding says what is wrong
            for number in (0,) if block.proto == "ipproto" else each(block.ranges):
                while not self._open_port(block, number):
                    self._pauses_left -= 1
                    yield True
                yield False

    def _open_port(self, block: ListenerBlock, number: int) -> bool:
        """Open a port, or note why not; False where it is to be tried again."""
        if block.proto == "ipproto":
            return self._open_socket(block, 0, bind_raw)
        if self._reserved is not None and self._reserved[0] <= number <= self._reserved[1]:
            block.skipped.add(number)
            return True
        entry = self._find_holder(block, number, self._holding_ways)
        if entry is not None:
            block.held.append((number, entry))
            return True
        return self._open_socket(
            block, number, bind_udp if block.proto == "udp" else self._bind_tcp
        )

    def _bind_tcp(self, address: str, number: int) -> socket.socket:
        """Bind a TCP port. Raises OSError.

        SO_REUSEADDR only where TIME_WAIT alone is in the way: it would also let us take a port that
        a service has bound and not yet put into listening.
        """
        try:
            return bind_tcp(address, number, self._read_holders("tcp").is_closing(number))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        # A connection from that port may have ended after we looked.
        self._holders.pop("tcp", None)
        return bind_tcp(address, number, self._read_holders("tcp").is_closing(number))

    def _open_socket(
        self, block: ListenerBlock, number: int, bind: Callable[[str, int], socket.socket]
    ) -> bool:
        if self._files_left <= 0:
            block.fail(number, TOO_MANY_FILES)
            return True
        try:
            address = wildcard(block.address) if block.nat else block.address
            sock = bind(address, number or block.number or 0)
        except OSError as error:
            if error.errno in SHORT_OF and self._pauses_left > 0:
                return False
            self._note_failure(block, number, error)
            return True
        port = ListenerPort(block, number, sock)
        self._files_left -= 1
        beside = self._find_holder(block, number, BESIDE_WAYS) if number else None
        if beside is not None:
            block.beside.append((number, beside))
        block.ports.append(port)
        self._opened(port)
        return True

    def _note_failure(self, block: ListenerBlock, number: int, error: OSError) -> None:
        if error.errno in PERMISSION:
            block.denied.add(number)
            return
        entry = None
        if error.errno == errno.EADDRINUSE:
            entry = self._find_holder(block, number, ("exact", "perhaps", "loopback"))
            if entry is None:
                # It was opened after we looked, or it connects from that port and does not listen.
                self._holders.pop(block.proto, None)
                entry = self._find_holder(block, number, ("exact", "perhaps", "loopback"))
        if entry is not None:
            block.held.append((number, entry))
        else:
            block.fail(number, name_of(error.errno))

    def _find_holder(
        self, block: ListenerBlock, number: int, ways: Tuple[str, ...]
    ) -> Optional[Socket]:
        return self._read_holders(block.proto).find(block.address, number, ways)

    def _read_holders(self, proto: str) -> PortHolders:
        if proto not in self._holders:
            self._holders[proto] = PortHolders(proto)
        return self._holders[proto]

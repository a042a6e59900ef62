"""An agent's own connection to each of its listeners that nobody else has reached.

A listener that its own host cannot reach (a local firewall, a NAT rule that takes the port) proves
nothing about the network, so it is reported as ``unreached``.
"""

import socket
from collections import deque
from typing import Callable, Deque, Dict, List, Optional, Tuple

from ..core import loop as looping
from ..net.binding import LINGER_RESET, family_of
from ..wire.templates import pack_nonce
from .arrival_log import SELF_DIAL_ORDER
from .rounds import ListenerPort, ListenerRound

# When nothing has come to a round for so long, what nobody has reached is dialled before somebody
# asks. A host that is busy with all others has no time for that.
QUIET_S = 0.8
# So many start in one turn of the loop, which then answers them.
BURST = 128
POLL_S = 0.005
CALL_S = 0.25
ATTEMPTS = 3
# A host with few files dials a few ports at a time; who asks does not wait for all of them.
MOST_S = 10.0


class Call:
    """One dial that is on its way; ``unsent`` is a request that waits for its handshake."""

    __slots__ = ("attempt", "deadline", "sock", "unsent")

    def __init__(self, attempt: int, deadline: float) -> None:
        self.attempt = attempt
        self.deadline = deadline
        self.sock: Optional[socket.socket] = None
        self.unsent = b""

    def push(self) -> None:
        """Send what could not be sent before."""
        if self.unsent and self.sock is not None:
            try:
                self.sock.send(self.unsent, socket.MSG_NOSIGNAL)
                self.unsent = b""
            except OSError:
                pass  # not connected yet, or refused: then the deadline tells

    def close(self) -> None:
        """Reset the connection, if there is one."""
        if self.sock is not None:
            self.sock.close()


class SelfDial:
    """Dials the ports of a round that nothing has reached by then, until time is up.

    ``window`` is how many dials may be on their way at once; each takes two descriptors.
    """

    def __init__(
        self,
        loop: looping.Loop,
        key: bytes,
        of_round: ListenerRound,
        window: int,
    ) -> None:
        self._loop = loop
        self._window = window
        self._key = key
        self._round = of_round
        self._has_ended = False
        # 0: it has not begun.
        self._ends_at = 0.0
        self._done: List[Callable[[], None]] = []
        self._waiting: Deque[Tuple[ListenerPort, int]] = deque()
        self._calls: Dict[ListenerPort, Call] = {}
        self._senders: Dict[Tuple[int, Optional[int]], socket.socket] = {}
        self._timer = loop.call_later(QUIET_S, self._begin_when_quiet)

    def when_done(self, done: Callable[[], None]) -> None:
        """Call this when every port was reached or time is up; whoever asks does not wait for the
        beginning."""
        if self._has_ended:
            done()
            return
        self._done.append(done)
        if not self._ends_at:
            self._timer.cancel()
            self._begin_dialling()

    def end(self) -> None:
        """Dial no more, and call who waits."""
        self.close()
        self._has_ended = True
        done, self._done = self._done, []
        for call in done:
            call()

    def close(self) -> None:
        """Close every socket."""
        self._timer.cancel()
        for call in self._calls.values():
            call.close()
        for sock in self._senders.values():
            sock.close()
        self._calls.clear()
        self._senders.clear()
        self._waiting.clear()

    def _begin_when_quiet(self, arrived: int = 0) -> None:
        known = self._round.arrivals
        if known == arrived:
            self._begin_dialling()
        else:
            self._timer = self._loop.call_later(QUIET_S, lambda: self._begin_when_quiet(known))

    def _begin_dialling(self) -> None:
        self._ends_at = self._loop.now() + MOST_S
        self._waiting.extend((port, 1) for port in self._round.ports() if not port.reached)
        self._start_calls()

    def _start_calls(self) -> None:
        self._end_calls(self._loop.now())
        for _ in range(BURST):
            if not self._waiting or len(self._calls) >= self._window:
                break
            self._dial_port(*self._waiting.popleft())
        if (self._waiting or self._calls) and self._loop.now() < self._ends_at:
            has_room = self._waiting and len(self._calls) < self._window
            self._timer = self._loop.call_later(0 if has_room else POLL_S, self._start_calls)
        else:
            self.end()

    def _end_calls(self, now: float) -> None:
        """Close the calls that arrived or took too long; those are tried once more."""
        for port, call in list(self._calls.items()):
            call.push()
            late = call.deadline < now
            if port.reached or late:
                self._calls.pop(port).close()
            if late and not port.reached:
                port.unreached = call.attempt == ATTEMPTS
                if not port.unreached:
                    self._waiting.append((port, call.attempt + 1))

    def _dial_port(self, port: ListenerPort, attempt: int) -> None:
        template = port.template
        if template is None or template.nonce_at is None:
            port.reached = True  # nothing could recognise the call
            return
        call = self._calls[port] = Call(attempt, self._loop.now() + CALL_S)
        request = template.fill(self._key, pack_nonce(SELF_DIAL_ORDER, port.number, attempt))
        try:
            if port.block.proto == "tcp":
                self._connect_call(call, port, request)
            else:
                self._find_sender(port).sendto(request, (_choose_target(port), port.number))
        except OSError:
            pass  # the deadline tells, as for a call that got lost

    def _connect_call(self, call: Call, port: ListenerPort, request: bytes) -> None:
        target = _choose_target(port)
        call.sock = socket.socket(family_of(target), socket.SOCK_STREAM)
        call.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        call.sock.setblocking(False)
        call.sock.connect_ex((target, port.number))
        # To an address of its own host the handshake is mostly over before connect() returns.
        call.unsent = request
        call.push()

    def _find_sender(self, port: ListenerPort) -> socket.socket:
        family, number = family_of(port.block.address), port.block.number
        raw = port.block.proto == "ipproto"
        key = (family, number if raw else None)
        if key not in self._senders:
            kind = socket.SOCK_RAW if raw else socket.SOCK_DGRAM
            sock = socket.socket(family, kind, (number or 0) if raw else 0)
            sock.setblocking(False)
            self._senders[key] = sock
        return self._senders[key]


def _choose_target(port: ListenerPort) -> str:
    """Choose the probed address; where the host lacks it (NAT), its loopback."""
    if not port.block.nat:
        return port.block.address
    return "::1" if ":" in port.block.address else "127.0.0.1"

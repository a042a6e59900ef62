"""The sockets that echo orders share: one a family, interface and source address."""

from typing import Callable, Dict, NamedTuple, Optional, Tuple

from ...core.loop import Loop
from ...net.icmp import open_echo
from ..datagram.orders import Channel
from .orders import RunningEchoOrder

# A raw socket takes the kernel milliseconds to close: orders that follow each other share one.
IDLE_S = 1.0
SEQUENCE_NUMBERS = 1 << 16

ChannelKey = Tuple[int, Optional[str], int, bool]


class SentRequest(NamedTuple):
    """A request that went: whose, what its reply must carry, and when."""

    order: RunningEchoOrder
    port: int
    payload: bytes
    sent_at: float


class EchoChannel(Channel):
    """A socket of several orders; it knows its packets by their sequence numbers."""

    def __init__(
        self,
        loop: Loop,
        order: RunningEchoOrder,
        on_ready: Callable[[Channel], None],
        key: ChannelKey,
    ) -> None:
        opened = open_echo(order.target)
        self.kind, self.number = opened.kind, opened.number
        self.key = key
        self.users = 0
        self._sent: Dict[int, SentRequest] = {}
        self._next = 0
        Channel.__init__(self, loop, opened.sock, order.size is not None, on_ready)

    def note_request(self, request: SentRequest) -> int:
        """Give the sequence number of a request that is about to go."""
        sequence = self._next
        self._sent[sequence] = request
        self._next = (sequence + 1) % SEQUENCE_NUMBERS
        return sequence

    def find_request(self, sequence: Optional[int]) -> Optional[SentRequest]:
        """Find the latest request with this number; None where none had it."""
        return self._sent.get(sequence)  # type: ignore[arg-type]  # None has none


class EchoSockets:
    """Opens them when they are needed, and closes them when nobody has needed them for a while."""

    def __init__(self, loop: Loop, on_ready: Callable[[Channel], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._channels: Dict[ChannelKey, EchoChannel] = {}

    def share(self, order: RunningEchoOrder) -> EchoChannel:
        """Give the socket that an order is to use. Raises OSError."""
        target = order.target
        key = (target.family, target.source, target.scope, order.size is not None)
        channel = self._channels.get(key)
        if channel is None:
            channel = EchoChannel(self._loop, order, self._on_ready, key)
            self._channels[key] = channel
        channel.users += 1
        return channel

    def release(self, channel: EchoChannel) -> None:
        """Note that an order needs it no more."""
        channel.users -= 1
        if not channel.users:
            self._loop.call_later(IDLE_S, lambda: self._close_idle(channel))

    def close(self) -> None:
        """Close all."""
        for channel in list(self._channels.values()):
            self._close_channel(channel)

    def _close_idle(self, channel: EchoChannel) -> None:
        if channel.is_open and not channel.users:
            self._close_channel(channel)

    def _close_channel(self, channel: EchoChannel) -> None:
        del self._channels[channel.key]
        channel.close()

"""An echo order: its destinations, and the payloads that only their replies can have."""

import hashlib
import socket
import struct
from typing import Any, Dict, List, Tuple

from ...core.agent import AgentCore
from ...core.pace import Answers
from ...core.pauses import Pauses
from ...wire.answers import EchoOutcomes
from ...wire.orders import EchoOrder, ProbeOrder
from ...wire.parts import ProbeBlock
from ...wire.templates import NONCE_BYTES, pack_nonce
from ..datagram.orders import WAITS, DatagramOrder, PendingFlow, list_due
from ..outcomes import DestinationOutcomes

TOKEN_BYTES = 16
PAYLOAD_BYTES = NONCE_BYTES + TOKEN_BYTES
_TOKEN_SEED = struct.Struct(">IH")


class RunningEchoOrder(DatagramOrder):
    """An order of one destination or many; their places in it, from 1 on, are its ports."""

    # The coordinator waits for each destination by itself, so outcomes go as they come.
    flush_s = 0.0
    # Each destination gets a single packet.
    hold_s = 0.0

    def __init__(self, agent: AgentCore, order: EchoOrder) -> None:
        DatagramOrder.__init__(self, agent, _number_destinations(order))
        self.outcomes = DestinationOutcomes(
            lambda kinds, runs, _own_port: agent.send(EchoOutcomes(self.id, kinds, runs))
        )
        # Written as the kernel writes them. Raises OSError where one is no address of the family.
        family = self.target.family
        self._addresses = [
            socket.inet_ntop(family, socket.inet_pton(family, name.partition("%")[0]))
            for name in order.dsts
        ]
        # What a socket address has behind the address.
        self._rest = self.target.sockaddr(0)[1:]
        self._numbers = order.numbers or [order.id] * len(order.dsts)
        self._tokens: Dict[int, bytes] = {}

    def address_of(self, port: int) -> str:
        """Give the destination with this number."""
        return self._addresses[port - 1]

    def sockaddr_of(self, port: int) -> Tuple[Any, ...]:
        """Tell where the packets to the destination with this number go."""
        return (self._addresses[port - 1], *self._rest)

    def payload_of(self, flow: PendingFlow) -> bytes:
        """Give the nonce of a flow's present attempt, and a token that nobody can guess."""
        at = TOKEN_BYTES * (flow.port - 1)
        token = self._tokens_of(flow.attempt)[at : at + TOKEN_BYTES]
        return pack_nonce(self._numbers[flow.port - 1], flow.port, flow.attempt) + token

    def _tokens_of(self, attempt: int) -> bytes:
        """Make the tokens of all destinations: one hash costs far less than one for each."""
        tokens = self._tokens.get(attempt)
        if tokens is None:
            seed = self.key + b"e" + _TOKEN_SEED.pack(self.id, attempt)
            length = TOKEN_BYTES * len(self._addresses)
            tokens = self._tokens[attempt] = hashlib.shake_128(seed).digest(length)
        return tokens

    def find_due(
        self, answers: Answers, pauses: Pauses, now: float
    ) -> List[Tuple[PendingFlow, bool]]:
        """As of any order, but each destination has a first look of its own."""
        flows = self.out.values()
        waits = ((one, WAITS[one.tries] * self._look_s(answers, one)) for one in flows)
        return list_due(waits, pauses, now)

    def _look_s(self, answers: Answers, flow: PendingFlow) -> float:
        if flow.look > 1:
            return self.look_s
        return answers.first_look_s(self.address_of(flow.port), self.first_ms, self.look_ms)


def _number_destinations(order: EchoOrder) -> ProbeOrder:
    """Give a probe order whose ports are the places of the destinations, which count from 1.

    Its own destination is the first one: the socket needs to know the family and interface, which
    all of them share.
    """
    return ProbeOrder(
        id=order.id,
        proto="icmp",
        number=None,
        dst=order.dsts[0],
        src=order.src,
        blocks=[ProbeBlock([(1, len(order.dsts))], "nonce", 0)],
        first_ms=order.first_ms,
        look_ms=order.look_ms,
        looks=order.looks,
        pace=None,
        min_ttl=None,
        ttl=None,
        size=order.size,
        host=None,
        sport=None,
        more=[],
    )

"""A round of listeners: its bound ports, and what becomes of that which arrives at them."""

import socket
from typing import Any, Dict, List, Optional, Tuple

from ..core.ranges import PortSet
from ..wire.frames import Template, read_nonce
from .arrival_log import SELF_DIAL_ORDER, OrderLog, RoundLog

Answer = Tuple[bytes, OrderLog]


class Port:
    """A bound socket of a round. ``number`` is 0 for an IP protocol, which has no ports."""

    __slots__ = ("block", "dialled", "number", "request_bytes", "round", "sock", "template")

    def __init__(self, block: "Block", number: int, sock: socket.socket) -> None:
        self.round = block.round
        self.block = block
        self.number = number
        self.sock = sock
        self.template = block.template
        self.request_bytes = max(1, len(block.template.request)) if block.template else 1
        self.dialled = False


class Block:
    """One block of a ``listen`` order and what became of its ports."""

    def __init__(
        self, of_round: "Round", item: Dict[str, Any], template: Optional[Template]
    ) -> None:
        self.round = of_round
        self.proto: str = item["proto"]
        self.address: str = item["addr"]
        self.ranges: List[List[int]] = item.get("ports") or []
        self.number: Optional[int] = item.get("number")
        self.template = template
        self.nat = False
        self.ports: List[Port] = []
        self.held: List[Tuple[int, Any]] = []
        # Who holds a port on another address of this host; here it is free.
        self.beside: List[Tuple[int, Any]] = []
        self.denied = PortSet()
        self.skipped = PortSet()
        self.failed: Dict[str, PortSet] = {}

    def fail(self, number: int, failure: str) -> None:
        """A port that could not be bound, and not because somebody listens there."""
        self.failed.setdefault(failure, PortSet()).add(number)

    def json(self, held: List[Dict[str, Any]], beside: List[Dict[str, Any]]) -> Dict[str, Any]:
        """The block as ``listening`` carries it."""
        return {
            "up": PortSet(port.number for port in self.ports).pairs(),
            "held": held,
            "beside": beside,
            "denied": self.denied.pairs(),
            "failed": [
                [first, last, failure]
                for failure, ports in sorted(self.failed.items())
                for first, last in ports.pairs()
            ],
            "skipped": self.skipped.pairs(),
            "undialled": PortSet(p.number for p in self.ports if not p.dialled).pairs(),
            "nat": self.nat,
        }


class Round:
    """The listeners of one ``listen`` order, and the log of what they saw."""

    def __init__(self, key: bytes, host: int) -> None:
        self._key = key
        self._host = host
        self.blocks: List[Block] = []
        self.log = RoundLog()
        self.is_open = True

    def ports(self) -> List[Port]:
        """Every bound port of the round."""
        return [port for block in self.blocks for port in block.ports]

    def arrived(self, port: Port, data: bytes, source: str) -> Optional[Answer]:
        """Log what reached a socket; the answer it deserves, with the log that notes its fate."""
        template = port.template
        nonce = template.recognise(self._key, data) if template is not None else None
        if template is None or nonce is None:
            self.log.stranger(port.number, source)
            return None
        said = read_nonce(nonce)
        astray = said.port != port.number
        if said.order == SELF_DIAL_ORDER:
            port.dialled = port.dialled or not astray
            return None
        if astray and template.answer is not None:
            # Its port was rewritten: it never reached the one that was asked. The MAC says so.
            log: Optional[OrderLog] = OrderLog()
        else:
            log = self.log.saw(said.order, said.port, source)
        if log is None or template.answer is None:
            return None
        return template.reply(self._key, nonce, self._host, port.number, data), log

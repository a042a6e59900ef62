"""The listening side of the agent: rounds of listeners, what they saw, and who holds ports."""

import os
import resource
from typing import Any, Dict, List, Union

from ..core.ranges import each
from ..host.port_owners import Holders, held_json
from .arrival_log import half_open
from .datagram_server import DatagramServer
from .opening import Opening
from .rounds import Block, Port, Round
from .self_test import SelfDial
from .tcp_server import TcpServer

# Rounds that were closed can still be asked what they saw.
KEPT_ROUNDS = 16
# What accepted connections, self-dials and probes need beside the listeners; of few files, half.
RESERVED_FILES = 256
MAX_DIALS = 1024


class Listeners:
    """Every round of an agent; that has ``loop``, ``key``, ``host``, ``templates`` and ``send``."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._tcp = TcpServer(agent.loop)
        self._datagrams = DatagramServer(agent.loop)
        self._rounds: Dict[int, Round] = {}
        self._busy: Dict[int, Union[Opening, SelfDial]] = {}

    def listen(self, message: Dict[str, Any]) -> None:
        """Open a round; ``listening`` follows when every port is bound and dialled."""
        identity = message["id"]
        self._close_round(identity)
        self._forget_oldest()
        opened = Round(self._agent.key, self._agent.host)
        opened.blocks = [self._block(opened, item) for item in message["blocks"]]
        self._rounds[identity] = opened
        self._busy[identity] = Opening(
            self._agent.loop,
            opened,
            self._room(),
            self._serve,
            lambda: self._dial(identity, opened),
        )

    def close_round(self, message: Dict[str, Any]) -> None:
        """Close a round's listeners; what they saw can still be asked for."""
        self._close_round(message["id"])
        self._agent.send({"t": "closed", "id": message["id"]})

    def seen(self, message: Dict[str, Any]) -> None:
        """Tell what arrived for these orders at the listeners of a round."""
        answer: Dict[str, Any] = {
            "t": "seen",
            "id": message["id"],
            "orders": [],
            "half_open": [],
            "strangers": [],
        }
        asked = self._rounds.get(message["round"])
        if asked is not None:
            numbers = {p.number for p in asked.ports() if p.block.proto == "tcp"}
            answer["orders"] = asked.log.orders_json(message["orders"])
            answer["half_open"] = half_open(numbers if asked.is_open else set())
            answer["strangers"] = asked.log.strangers_json()
        self._agent.send(answer)

    def held(self, message: Dict[str, Any]) -> None:
        """Tell who holds these ports, and bind nothing."""
        looked = Round(b"", 0)
        looked.blocks = [Block(looked, item, None) for item in message["blocks"]]
        tables: Dict[str, Holders] = {}
        for block in looked.blocks:
            table = tables.setdefault(block.proto, Holders(block.proto))
            numbers = each(block.ranges) if block.proto != "ipproto" else [block.number or 0]
            for number in numbers:
                entry = table.find(block.address, number, ("exact", "perhaps", "loopback"))
                if entry is not None:
                    block.held.append((number, entry))
                    continue
                beside = table.find(block.address, number, ("elsewhere",))
                if beside is not None:
                    block.beside.append((number, beside))
        self._report(message["id"], looked)

    def close(self) -> None:
        """Close everything."""
        for work in self._busy.values():
            work.cancel()
        self._busy.clear()
        self._tcp.close()
        self._datagrams.close()

    def _room(self) -> int:
        """How many listeners a new round may open."""
        return self._free() - min(RESERVED_FILES, _file_limit() // 2)

    def _free(self) -> int:
        """Descriptors that no listener has."""
        return _file_limit() - sum(
            len(known.ports()) for known in self._rounds.values() if known.is_open
        )

    def _block(self, of_round: Round, item: Dict[str, Any]) -> Block:
        number = item["template"]
        template = self._agent.templates[number] if number else None
        return Block(of_round, item, template)

    def _serve(self, port: Port) -> None:
        self._server(port).add(port)

    def _server(self, port: Port) -> Union[TcpServer, DatagramServer]:
        return self._tcp if port.block.proto == "tcp" else self._datagrams

    def _dial(self, identity: int, opened: Round) -> None:
        self._busy[identity] = SelfDial(
            self._agent.loop,
            self._agent.key,
            opened,
            max(1, min(MAX_DIALS, self._free() // 4)),
            lambda: self._ready(identity, opened),
        )

    def _ready(self, identity: int, opened: Round) -> None:
        self._busy.pop(identity, None)
        self._report(identity, opened)

    def _report(self, identity: int, opened: Round) -> None:
        blocks = [
            block.json(held_json(block.address, block.held), _beside(block))
            for block in opened.blocks
        ]
        self._agent.send({"t": "listening", "id": identity, "blocks": blocks})

    def _close_round(self, identity: int) -> None:
        work = self._busy.pop(identity, None)
        if work is not None:
            work.cancel()
        closed = self._rounds.get(identity)
        if closed is not None and closed.is_open:
            closed.is_open = False
            self._tcp.drop_connections(closed)
            for port in closed.ports():
                self._server(port).remove(port)

    def _forget_oldest(self) -> None:
        closed = [number for number, known in self._rounds.items() if not known.is_open]
        for number in closed[: max(0, len(closed) - KEPT_ROUNDS)]:
            del self._rounds[number]


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _beside(block: Block) -> List[Dict[str, Any]]:
    """Who holds ports on other addresses of this host; our own listeners are nobody."""
    found = held_json(block.address, block.beside)
    return [item for item in found if item["pid"] != os.getpid()]

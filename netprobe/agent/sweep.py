"""An echo order while it is worked on: its destinations, and how far each of them is.

Columns, one entry a destination, instead of objects: a host that answers at once costs little more
than its two system calls. A destination is known by its place in the order, from 0.
"""

import hashlib
import socket
import struct
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from .icmp import ECHO_REQUEST, HEADER_BYTES
from .outcomes import Kind, Outcomes, kind_json
from .pump import Batch
from .sockets import Target, padded, target_of
from .wire import NONCE_BYTES

TOKEN_BYTES = 16
PAYLOAD_BYTES = NONCE_BYTES + TOKEN_BYTES
_TOKEN_SEED = struct.Struct(">IH")
# Header, nonce (see ``wire.pack_nonce``), token.
_REQUEST = struct.Struct(">BBHHHIHH%ds" % TOKEN_BYTES)

# Kind, packets of silence or None, looks: destinations with the same are one run.
Alike = Tuple[Kind, Optional[int], int]
# number, what became of it, round trip in µs or None
Entry = Tuple[int, Alike, Optional[int]]
# place, what became of it, round trip in s
Echo = Tuple[int, Kind, float]


class Sweep:
    """The destinations of one order. Frames and nonces number them from 1; 0 is the only one of
    an order that names no list."""

    def __init__(self, agent, message):
        # type: (Any, Dict[str, Any]) -> None
        self.id = message["id"]  # type: int
        many = message.get("dsts")
        names = [message["dst"]] if many is None else many
        # What its socket needs to know: of the first, whose family and scope all of them have.
        self.target = target_of(names[0], message.get("src"))  # type: Target
        family, scope = self.target.family, self.target.scope
        # Raises OSError where one is no address of the family.
        self.packed = [socket.inet_pton(family, name.partition("%")[0]) for name in names]
        self.addresses = names  # of IPv4 there is only one way to write them
        if family == socket.AF_INET6:
            self.addresses = [socket.inet_ntop(family, packed) for packed in self.packed]
        rest = (0,) if family == socket.AF_INET else (0, 0, scope)  # type: Tuple[int, ...]
        self.sockaddrs = [(text, *rest) for text in self.addresses]  # type: List[Tuple[Any, ...]]
        self.looks = max(1, int(message.get("looks") or 1))
        self.first_ms = message.get("first_ms")  # type: Optional[int]
        self.look_ms = int(message["look_ms"])
        # How long the whole IP packet is to be; it then must not be fragmented.
        self.size = message.get("size")  # type: Optional[int]
        outcomes = Outcomes if many is None else Many  # type: Any
        self.outcomes = outcomes(agent.send, self.id)
        self._first_number = 0 if many is None else 1
        self._key = agent.key
        self._tokens = {}  # type: Dict[int, List[bytes]]
        count = len(names)
        self.pending = count
        # Those that wait for an answer, with the batch that they were started in.
        self.out = {}  # type: Dict[int, Batch]
        self.look = [1] * count
        self.tries = [0] * count
        # How many packets went, over all looks: what the last nonce says.
        self.attempt = [0] * count
        self.since = [0.0] * count
        self.dead = {}  # type: Dict[int, Kind]
        self.again = deque()  # type: Deque[int]
        self._fresh = 0
        # Since when our own host has had no room for any packet.
        self.short_since = None  # type: Optional[float]
        self.queued = False
        # The socket that it has a share in.
        self.shared = None  # type: Any

    def take(self, count):
        # type: (int) -> List[int]
        """Up to ``count`` destinations to ask: all once before any a second time."""
        end = min(len(self.addresses), self._fresh + count)
        places = list(range(self._fresh, end))
        self._fresh = end
        while len(places) < count and self.again:
            places.append(self.again.popleft())
        return places

    def begin(self, places, batch, now):
        # type: (List[int], Batch, float) -> None
        """A look at some destinations starts."""
        for place in places:
            self.out[place] = batch
            self.since[place] = now
            self.tries[place] = 1
            self.attempt[place] += 1

    def requests(self, places, number, first):
        # type: (List[int], int, int) -> List[bytes]
        """A packet for each, numbered from ``first``: its nonce, which says its present attempt,
        and a token that nobody can guess."""
        kind, order = ECHO_REQUEST[self.target.family], self.id
        read, pack = int.from_bytes, _REQUEST.pack
        # As in ``icmp.checksum``, the words added as numbers; they are never all zeros. The kernel
        # makes that of IPv6.
        sums = self.target.family == socket.AF_INET
        base = (kind << 8) + number + order
        found = []
        for sequence, place in enumerate(places, first):
            attempt, port = self.attempt[place], place + self._first_number
            token = (self._tokens.get(attempt) or self._make_tokens(attempt))[place]
            attempt &= 0xFFFF
            check = 0
            if sums:
                check = 0xFFFF - (read(token, "big") + base + sequence + port + attempt) % 0xFFFF
            found.append(pack(kind, 0, check, number, sequence, order, port, attempt, token))
        if self.size is not None:
            return [padded(packet, self.target.family, self.size, 0) for packet in found]
        return found

    def _make_tokens(self, attempt):
        # type: (int) -> List[bytes]
        """All tokens of one attempt: one hash, because a keyed one for each packet would cost as
        much as receiving it."""
        seed = self._key + b"e" + _TOKEN_SEED.pack(self.id, attempt)
        digest = hashlib.shake_128(seed).digest(TOKEN_BYTES * len(self.addresses))
        tokens = [token for (token,) in struct.iter_unpack("%ds" % TOKEN_BYTES, digest)]
        self._tokens[attempt] = tokens
        return tokens

    def end(self, place, what, rtt_s, packets=None):
        # type: (int, Kind, Optional[float], Optional[int]) -> None
        """The final outcome of one destination."""
        self.outcomes.add(place + self._first_number, what, rtt_s, self.look[place], packets)
        self.pending -= 1

    def end_many(self, ended):
        # type: (List[Echo]) -> None
        """The final outcomes of destinations that answered."""
        add, first, look = self.outcomes.add, self._first_number, self.look
        for place, what, rtt_s in ended:
            add(place + first, what, rtt_s, look[place])
        self.pending -= len(ended)


class Many:
    """Outcomes of an order of many destinations that have not been sent yet.

    As ``Outcomes``, but every destination keeps its own round trip and its own count of packets.
    """

    def __init__(self, send, order_id):
        # type: (Any, int) -> None
        self._send = send
        self._id = order_id
        self._entries = []  # type: List[Entry]

    def add(self, number, what, rtt_s, attempts, syns=None):
        # type: (int, Kind, Optional[float], int, Optional[int]) -> None
        """One destination's final outcome. ``rtt_s`` None: nothing was measured."""
        rtt_us = None if rtt_s is None else int(rtt_s * 1000000)
        self._entries.append((number, (what, syns, attempts), rtt_us))

    def flush(self):
        # type: () -> None
        """Send what there is."""
        if not self._entries:
            return
        entries, self._entries = sorted(self._entries, key=_number), []
        kinds = {}  # type: Dict[Tuple[Kind, Optional[int]], int]
        runs = []  # type: List[List[Any]]
        rtts_us = []  # type: List[Optional[int]]
        due = 0
        same = None  # type: Optional[Alike]
        for number, alike, rtt_us in entries:
            if number != due or alike != same:
                what, packets, attempts = same = alike
                index = kinds.setdefault((what, packets), len(kinds))
                rtts_us = []
                runs.append([number, number, index, rtts_us, attempts])
            runs[-1][1] = number
            rtts_us.append(rtt_us)
            due = number + 1
        said = [kind_json(what, packets) for what, packets in kinds]
        self._send({"t": "outcomes", "id": self._id, "kinds": said, "runs": runs})


def _number(entry):
    # type: (Entry) -> int
    return entry[0]

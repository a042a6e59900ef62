"""An echo order while it is worked on: its destinations, and how far each of them is.

Columns, one entry a destination, instead of objects: a host that answers at once costs little more
than its two system calls. A destination is known by its place in the order, from 0.
"""

import hashlib
import socket
import struct
from array import array
from collections import deque
from itertools import repeat
from operator import itemgetter
from typing import Any, Deque, Dict, List, Optional, Sequence, Tuple

from ...core.pump import Batch
from ...net.icmp import ECHO_REQUEST, HEADER_BYTES
from ...net.sockets import Target, padded, target_of
from ...wire.frames import NONCE_BYTES
from ..outcomes import Kind, Outcomes, kind_json

# What nobody can guess, and its complement: so tokens do not change the sum of a packet's words.
SECRET_BYTES = 8
TOKEN_BYTES = 2 * SECRET_BYTES
PAYLOAD_BYTES = NONCE_BYTES + TOKEN_BYTES
REQUEST_BYTES = HEADER_BYTES + PAYLOAD_BYTES
_TOKEN_SEED = struct.Struct(">IH")
_REQUEST = struct.Struct("%ds" % REQUEST_BYTES)
_CARRIED = struct.Struct("%dx%ds" % (HEADER_BYTES, PAYLOAD_BYTES))
_FIRST = itemgetter(0)
_COMPLEMENT = bytes(range(255, -1, -1))
# The words of a request: header, nonce (see ``wire.pack_nonce``), token.
_WORDS = REQUEST_BYTES // 2
_CHECK, _SEQUENCE, _PORT, _TOKEN = 1, 3, 6, 8
_SECRET_WORDS = SECRET_BYTES // 2

# Kind, packets of silence or None, looks: destinations with the same are one run.
Alike = Tuple[Kind, Optional[int], int]
# number of the first, what became of them, the round trip in µs or None of each
Entry = Tuple[int, Alike, List[Optional[int]]]


class Sweep:
    """The destinations of one order. Frames and nonces number them from 1; 0 is the only one of
    an order that names no list."""

    def __init__(self, agent: Any, message: Dict[str, Any]) -> None:
        self.id: int = message["id"]
        many = message.get("dsts")
        names = [message["dst"]] if many is None else many
        # What its socket needs to know: of the first, whose family and scope all of them have.
        self.target: Target = target_of(names[0], message.get("src"))
        family, scope = self.target.family, self.target.scope
        # Raises OSError where one is no address of the family.
        bare = names if family == socket.AF_INET else [name.partition("%")[0] for name in names]
        self.packed = list(map(socket.inet_pton, repeat(family), bare))
        self.addresses = names  # of IPv4 there is only one way to write them
        if family == socket.AF_INET6:
            self.addresses = [socket.inet_ntop(family, packed) for packed in self.packed]
        # What a socket address has behind the address.
        self._rest: Tuple[int, ...] = (0,) if family == socket.AF_INET else (0, 0, scope)
        self.looks = max(1, int(message.get("looks") or 1))
        self.first_ms: Optional[int] = message.get("first_ms")
        self.look_ms = int(message["look_ms"])
        # How long the whole IP packet is to be; it then must not be fragmented.
        self.size: Optional[int] = message.get("size")
        outcomes: Any = Outcomes if many is None else Many
        self.outcomes = outcomes(agent.send, self.id)
        self._first_number = 0 if many is None else 1
        self._key = agent.key
        # Words that all its requests have: type and code, and its number in two.
        self._same = (ECHO_REQUEST[family] << 8, self.id >> 16, self.id & 0xFFFF)
        self._requests: Dict[int, "array[int]"] = {}
        count = len(names)
        self.pending = count
        # Those that wait for an answer, with the batch that they were started in.
        self.out: Dict[int, Batch] = {}
        self.look = [1] * count
        self.tries = [0] * count
        # How many packets went, over all looks: what the last nonce says.
        self.attempt = [0] * count
        self.since = [0.0] * count
        self.dead: Dict[int, Kind] = {}
        self.again: Deque[int] = deque()
        self._fresh = 0
        # Since when our own host has had no room for any packet.
        self.short_since: Optional[float] = None
        self.queued = False
        # The socket that it has a share in.
        self.shared: Any = None

    def sockaddr(self, place: int) -> Tuple[Any, ...]:
        """Where a destination's packets go."""
        return (self.addresses[place], *self._rest)

    def sockaddrs(self, places: Sequence[int]) -> List[Tuple[Any, ...]]:
        """Where the packets to these go."""
        rest = self._rest
        return [(address, *rest) for address in pick(self.addresses, places)]

    def take(self, count: int) -> Sequence[int]:
        """Up to ``count`` destinations to ask: all once before any a second time. A range is of
        such as were never asked."""
        fresh = range(self._fresh, min(len(self.addresses), self._fresh + count))
        self._fresh = fresh.stop
        more = min(count - len(fresh), len(self.again))
        return [*fresh, *(self.again.popleft() for _ in range(more))] if more else fresh

    def begin(self, places: Sequence[int], batch: Batch, now: float) -> None:
        """A look at some destinations starts."""
        self.out.update(dict.fromkeys(places, batch))
        if isinstance(places, range):
            asked = slice(places.start, places.stop)
            self.since[asked] = [now] * len(places)
            self.tries[asked] = self.attempt[asked] = [1] * len(places)
            return
        for place in places:
            self.since[place] = now
            self.tries[place] = 1
            self.attempt[place] += 1

    def requests(self, places: Sequence[int], number: int, first: int) -> bytes:
        """A packet for each, numbered from ``first``: its nonce, which says its present attempt,
        and a token that nobody can guess."""
        if isinstance(places, range):  # never asked before
            words = self._unnumbered(1, number)[_WORDS * places.start : _WORDS * places.stop]
        else:
            words = array("H")
            for place in places:
                at, attempt = _WORDS * place, self.attempt[place]
                words += self._unnumbered(attempt, number)[at : at + _WORDS]
        numbers = range(first, first + len(places))
        words[_SEQUENCE::_WORDS] = _words(numbers)
        if self.target.family == socket.AF_INET:
            # As in ``icmp.checksum``: the words are never all zeros. The kernel makes that of IPv6.
            base = sum(self._same) + number + self._first_number
            words[_CHECK::_WORDS] = _words([
                0xFFFF - (base + sequence + place + attempt) % 0xFFFF
                for sequence, place, attempt in zip(numbers, places, pick(self.attempt, places))
            ])  # fmt: skip
        return words.tobytes()

    def _unnumbered(self, attempt: int, number: int) -> "array[int]":
        """The requests of one attempt to all destinations, but for sequence numbers and checksums.

        All at once; and one hash, because a keyed one for each packet would cost as much as
        receiving it.
        """
        words = self._requests.get(attempt)
        if words is None:
            count, first = len(self.addresses), self._first_number
            kind, high, low = self._same
            same = (kind, 0, number, 0, high, low, 0, attempt, *bytes(_WORDS - _TOKEN))
            words = self._requests[attempt] = _words(same) * count
            words[_PORT::_WORDS] = _words(range(first, first + count))
            seed = self._key + b"e" + _TOKEN_SEED.pack(self.id, attempt)
            secrets = hashlib.shake_128(seed).digest(SECRET_BYTES * count)
            for half, secret in enumerate((secrets, secrets.translate(_COMPLEMENT))):
                column = array("H", secret)
                for word in range(_SECRET_WORDS):
                    at = _TOKEN + half * _SECRET_WORDS + word
                    words[at::_WORDS] = column[word::_SECRET_WORDS]
        return words

    def end(
        self, place: int, what: Kind, rtt_s: Optional[float], packets: Optional[int] = None
    ) -> None:
        """The final outcome of one destination."""
        self.outcomes.add(place + self._first_number, what, rtt_s, self.look[place], packets)
        self.pending -= 1

    def end_many(self, places: Sequence[int], what: Kind, rtts_s: List[float]) -> None:
        """The final outcomes of destinations that answered alike; a range's since the same look."""
        self.pending -= len(places)
        if isinstance(places, range):
            first = places.start
            self.outcomes.add_row(first + self._first_number, what, rtts_s, self.look[first])
            return
        for place, rtt_s in zip(places, rtts_s):
            self.outcomes.add(place + self._first_number, what, rtt_s, self.look[place])


def _words(values: Sequence[int]) -> "array[int]":
    """These numbers in network order; an array makes one of numbers far more slowly."""
    return array("H", struct.pack(">%dH" % len(values), *values))


def pick(column: List[Any], places: Sequence[int]) -> List[Any]:
    """A column's part for these places."""
    if isinstance(places, range):
        return column[places.start : places.stop]
    return [column[place] for place in places]


class Volley:
    """Packets of an order that go together, numbered from ``first``, as columns."""

    __slots__ = (
        "_carried",
        "batch",
        "begun",
        "first",
        "places",
        "requests",
        "step_s",
        "sweep",
        "whole",
    )

    def __init__(
        self, sweep: Sweep, first: int, places: Sequence[int], requests: bytes, begun: float
    ) -> None:
        self.sweep = sweep
        self.first = first
        self.places = places
        self.requests = requests
        # What the look of the first one was started in.
        self.batch = sweep.out[places[0]]
        # Whether it is that chunk, all of it, and went in one go.
        self.whole = False
        self._carried: Optional[List[bytes]] = None
        # When the first one went, and how long each took.
        self.begun = begun
        self.step_s = 0.0

    def place(self, sequence: int) -> int:
        """Whom the packet with this number asks."""
        return self.places[sequence - self.first]

    def request(self, sequence: int) -> bytes:
        """That packet, without what only makes it longer."""
        at = REQUEST_BYTES * (sequence - self.first)
        return self.requests[at : at + REQUEST_BYTES]

    def sent_at(self, sequence: int) -> float:
        """When it went."""
        return self.begun + self.step_s * (sequence - self.first)

    def packets(self) -> List[bytes]:
        """All as they are sent."""
        found = list(map(_FIRST, _REQUEST.iter_unpack(self.requests)))
        size, family = self.sweep.size, self.sweep.target.family
        return found if size is None else [padded(one, family, size, 0) for one in found]

    @property
    def carried(self) -> List[bytes]:
        """The payload of each, which its reply has too."""
        if self._carried is None:
            self._carried = list(map(_FIRST, _CARRIED.iter_unpack(self.requests)))
        return self._carried


class Many:
    """Outcomes of an order of many destinations that have not been sent yet.

    As ``Outcomes``, but every destination keeps its own round trip and its own count of packets.
    """

    def __init__(self, send: Any, order_id: int) -> None:
        self._send = send
        self._id = order_id
        self._entries: List[Entry] = []

    def add(
        self,
        number: int,
        what: Kind,
        rtt_s: Optional[float],
        attempts: int,
        syns: Optional[int] = None,
    ) -> None:
        """One destination's final outcome. ``rtt_s`` None: nothing was measured."""
        rtt_us = None if rtt_s is None else int(rtt_s * 1000000)
        self._entries.append((number, (what, syns, attempts), [rtt_us]))

    def add_row(self, first: int, what: Kind, rtts_s: List[float], attempts: int) -> None:
        """The same of destinations whose numbers follow each other."""
        rtts_us: List[Optional[int]] = [int(rtt_s * 1000000) for rtt_s in rtts_s]
        self._entries.append((first, (what, None, attempts), rtts_us))

    def flush(self) -> None:
        """Send what there is."""
        if not self._entries:
            return
        entries, self._entries = sorted(self._entries, key=_number), []
        kinds: Dict[Tuple[Kind, Optional[int]], int] = {}
        runs: List[List[Any]] = []
        rtts_us: List[Optional[int]] = []
        due = 0
        same: Optional[Alike] = None
        for number, alike, some_us in entries:
            if number != due or alike != same:
                what, packets, attempts = same = alike
                index = kinds.setdefault((what, packets), len(kinds))
                rtts_us = []
                runs.append([number, number, index, rtts_us, attempts])
            rtts_us += some_us
            due = number + len(some_us)
            runs[-1][1] = due - 1
        said = [kind_json(what, packets) for what, packets in kinds]
        self._send({"t": "outcomes", "id": self._id, "kinds": said, "runs": runs})


def _number(entry: Entry) -> int:
    return entry[0]

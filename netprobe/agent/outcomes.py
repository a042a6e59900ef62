"""Outcomes on their way to the coordinator: equal neighbours are folded into runs of ports."""

from array import array
from itertools import repeat
from typing import Any, Callable, Dict, List, Optional, Tuple

from .errqueue import IcmpFact

# A big order reports as it goes: this many ports at a time, or what there is after this long.
FLUSH_PORTS = 16384
FLUSH_S = 1.0

# (op, failure, icmp, left, answer, by, data, ttl, elapsed_ms, mtu): what makes outcomes the same.
Kind = Tuple[
    str,
    Optional[str],
    Optional[IcmpFact],
    Optional[bool],
    Optional[str],
    Optional[int],
    Optional[str],
    Optional[int],
    Optional[int],
    Optional[int],
]
Entry = Tuple[int, int, int, int]


def kind(  # noqa: PLR0913, PLR0917  # as many as the wire document has keys
    op, failure=None, icmp=None, left=None, answer=None, by=None, data=None, ttl=None,
    elapsed_ms=None, mtu=None,
):  # fmt: skip
    # type: (str, Optional[str], Optional[IcmpFact], Optional[bool], Optional[str], Optional[int], Optional[str], Optional[int], Optional[int], Optional[int]) -> Kind
    """One kind of outcome; the keys are those of the wire document."""
    return (op, failure, icmp, left, answer, by, data, ttl, elapsed_ms, mtu)


class Alike:
    """Ports of one kind, their round trips in s (below 0: not measured) and the looks they took.

    As numbers side by side, because a tuple for each port is a tenth of a scan's whole work.
    """

    __slots__ = ("looks", "ports", "rtts_s")

    def __init__(self):
        # type: () -> None
        self.ports = array("H")
        self.rtts_s = array("d")
        self.looks = array("H")

    def add(self, ports, rtt_s, look):
        # type: (List[int], float, int) -> None
        """More of them."""
        self.ports.extend(ports)
        self.rtts_s.extend(array("d", (rtt_s,)) * len(ports))
        self.looks.extend(array("H", (look,)) * len(ports))

    def one_run(self, index):
        # type: (int) -> Optional[List[Optional[int]]]
        """The run that they are, if they are neighbours without a gap."""
        first, last = min(self.ports), max(self.ports)
        count = len(self.ports)
        if last - first + 1 != count or len(set(self.ports)) != count:
            return None
        rtts_s = sorted(self.rtts_s)
        if rtts_s[0] < 0:
            rtts_s = [rtt_s for rtt_s in rtts_s if rtt_s >= 0]
        median_us = int(rtts_s[len(rtts_s) // 2] * 1000000) if rtts_s else None
        return [first, last, index, median_us, max(self.looks)]

    def entries(self, index):
        # type: (int) -> List[Entry]
        """One entry for each port."""
        rtts_us = [int(rtt_s * 1000000) for rtt_s in self.rtts_s]
        return list(zip(self.ports, repeat(index), rtts_us, self.looks))


class Outcomes:
    """The outcomes of one order that have not been sent yet."""

    def __init__(self, send, order_id):
        # type: (Callable[[Dict[str, Any]], None], int) -> None
        self._send = send
        self._id = order_id
        # The own UDP port: it tells an answer that a capture sees from others' datagrams.
        self.own_port = None  # type: Optional[int]
        self._kinds = {}  # type: Dict[Kind, int]
        self._syns = {}  # type: Dict[int, int]
        self._entries = []  # type: List[Entry]
        # What came in bulk, by the index of its kind.
        self._alike = {}  # type: Dict[int, Alike]

    def __len__(self):
        # type: () -> int
        return len(self._entries) + sum(len(alike.ports) for alike in self._alike.values())

    def add(self, port, what, rtt_s, attempts, syns=None):
        # type: (int, Kind, Optional[float], int, Optional[int]) -> None
        """One port's final outcome. ``rtt_s`` None: nothing was measured."""
        index = self._kinds.setdefault(what, len(self._kinds))
        if syns is not None:
            # Timer jitter gives 5 SYNs here and 6 there; the least of a batch keeps runs whole.
            self._syns[index] = min(syns, self._syns.get(index, syns))
        rtt_us = -1 if rtt_s is None else int(rtt_s * 1000000)
        self._entries.append((port, index, rtt_us, attempts))
        if len(self._entries) >= FLUSH_PORTS:
            self.flush()

    def add_many(self, ports, what, rtt_s, look):
        # type: (List[int], Kind, float, int) -> None
        """Many ports' final outcome, which is the same for all; nothing measured: below 0."""
        index = self._kinds.setdefault(what, len(self._kinds))
        alike = self._alike.get(index)
        if alike is None:
            alike = self._alike[index] = Alike()
        alike.add(ports, rtt_s, look)

    def flush(self):
        # type: () -> None
        """Send what there is."""
        if not len(self):
            return
        kinds = [kind_json(what, self._syns.get(index)) for what, index in self._kinds.items()]
        runs = self._runs()
        self._kinds, self._syns, self._entries = {}, {}, []
        frame = {"t": "outcomes", "id": self._id, "kinds": kinds, "runs": runs}  # type: Dict[str, Any]
        if self.own_port is not None:
            frame["sport"] = self.own_port
        self._send(frame)

    def _runs(self):
        # type: () -> List[List[Optional[int]]]
        """One run, where what came in bulk is one and all there is; else everything, folded."""
        alike, self._alike = self._alike, {}
        if len(alike) == 1 and not self._entries:
            for index, ports in alike.items():
                run = ports.one_run(index)
                if run is not None:
                    return [run]
        for index, ports in alike.items():
            self._entries += ports.entries(index)
        return fold(self._entries)


def kind_json(what, syns):
    # type: (Kind, Optional[int]) -> Dict[str, Any]
    """A kind as it crosses the wire."""
    op, failure, icmp, left, answer, by, data, ttl, elapsed_ms, mtu = what
    return {
        "op": op,
        "failure": failure,
        "icmp": None if icmp is None else list(icmp),
        "left": left,
        "answer": answer,
        "by": by,
        "data": data,
        "ttl": ttl,
        "elapsed_ms": elapsed_ms,
        "mtu": mtu,
        "syns": syns,
    }


def fold(entries):
    # type: (List[Entry]) -> List[List[Optional[int]]]
    """Neighbouring ports of one kind as [first, last, kind, median rtt in µs or null, attempts]."""
    entries = sorted(entries)
    whole = _one_run(entries)
    if whole is not None:
        return [whole]
    runs = []  # type: List[List[Optional[int]]]
    rtts = []  # type: List[int]
    last_port, last_index, most = -2, -1, 0
    for port, index, rtt_us, attempts in entries:
        if port == last_port + 1 and index == last_index:
            runs[-1][1] = port
        else:
            _close(runs, rtts, most)
            runs.append([port, port, index, None, attempts])
            rtts, most, last_index = [], 0, index
        last_port = port
        most = max(most, attempts)
        if rtt_us >= 0:
            rtts.append(rtt_us)
    _close(runs, rtts, most)
    return runs


def _one_run(entries):
    # type: (List[Entry]) -> Optional[List[Optional[int]]]
    """The run that all of these sorted entries are, if they are one: the usual and quick case."""
    if not entries:
        return None
    first, last = entries[0][0], entries[-1][0]
    if last - first + 1 != len(entries) or len({entry[1] for entry in entries}) != 1:
        return None
    if len({entry[0] for entry in entries}) != len(entries):
        return None
    rtts = sorted(entry[2] for entry in entries if entry[2] >= 0)
    median = rtts[len(rtts) // 2] if rtts else None
    return [first, last, entries[0][1], median, max(entry[3] for entry in entries)]


def _close(runs, rtts, most):
    # type: (List[List[Optional[int]]], List[int], int) -> None
    if runs:
        runs[-1][3] = sorted(rtts)[len(rtts) // 2] if rtts else None
        runs[-1][4] = most

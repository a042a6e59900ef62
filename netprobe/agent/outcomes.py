"""Outcomes on their way to the coordinator: equal neighbours are folded into runs of ports."""

from array import array
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from .errqueue import IcmpFact
from .failures import REFUSED

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


# By far the most frequent outcome of a scan; it has a way of its own, see ``Outcomes.add_resets``.
RESET_BY_PEER = kind("connect", REFUSED)


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
        # Ports that a reset refused, their round trips in s, and the looks that it took: as numbers
        # side by side, because a tuple for each closed port is a tenth of a scan's whole work.
        self._reset_ports = array("H")
        self._reset_rtts_s = array("d")
        self._reset_looks = array("H")

    def __len__(self):
        # type: () -> int
        return len(self._entries) + len(self._reset_ports)

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

    def add_resets(self, ports, rtts_s, looks):
        # type: (Iterable[int], Iterable[float], Iterable[int]) -> None
        """Many ports' final outcome, which is the same for all: a reset."""
        self._reset_ports.extend(ports)
        self._reset_rtts_s.extend(rtts_s)
        self._reset_looks.extend(looks)

    def flush(self):
        # type: () -> None
        """Send what there is."""
        if not len(self):
            return
        runs = self._take_resets()
        kinds = [kind_json(what, self._syns.get(index)) for what, index in self._kinds.items()]
        runs = runs or fold(self._entries)
        self._kinds, self._syns, self._entries = {}, {}, []
        frame = {"t": "outcomes", "id": self._id, "kinds": kinds, "runs": runs}  # type: Dict[str, Any]
        if self.own_port is not None:
            frame["sport"] = self.own_port
        self._send(frame)

    def _take_resets(self):
        # type: () -> List[List[Optional[int]]]
        """The one run that the resets are, where they are all there is; else they join the rest."""
        ports, rtts_s, looks = self._reset_ports, self._reset_rtts_s, self._reset_looks
        if not ports:
            return []
        self._reset_ports, self._reset_rtts_s = array("H"), array("d")
        self._reset_looks = array("H")
        index = self._kinds.setdefault(RESET_BY_PEER, len(self._kinds))
        first, last = min(ports), max(ports)
        if not self._entries and last - first + 1 == len(ports) == len(set(ports)):
            median = sorted(rtts_s)[len(rtts_s) // 2]
            return [[first, last, index, int(median * 1000000), max(looks)]]
        self._entries += [
            (port, index, int(rtt_s * 1000000), attempts)
            for port, rtt_s, attempts in zip(ports, rtts_s, looks)
        ]
        return []


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

"""Outcomes on their way to the coordinator: equal neighbours are folded into runs of ports."""

from operator import itemgetter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..net.errqueue import IcmpFact

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
# First and last port, the index of the kind, round trip in µs (below 0: not measured), looks.
Span = Tuple[int, int, int, int, int]
# First and last port, the index of the kind, its round trip (or those of each), looks.
Run = List[Any]
_FIRST, _INDEX, _LOOKS = map(itemgetter, (0, 2, 4))


def kind(  # noqa: PLR0913, PLR0917  # as many as the wire document has keys
    op: str,
    failure: Optional[str] = None,
    icmp: Optional[IcmpFact] = None,
    left: Optional[bool] = None,
    answer: Optional[str] = None,
    by: Optional[int] = None,
    data: Optional[str] = None,
    ttl: Optional[int] = None,
    elapsed_ms: Optional[int] = None,
    mtu: Optional[int] = None,
) -> Kind:
    """One kind of outcome; the keys are those of the wire document."""
    return (op, failure, icmp, left, answer, by, data, ttl, elapsed_ms, mtu)


class Outcomes:
    """The outcomes of one order that have not been sent yet."""

    def __init__(self, send: Callable[[Dict[str, Any]], None], order_id: int) -> None:
        self._send = send
        self._id = order_id
        # The own UDP port: it tells an answer that a capture sees from others' datagrams.
        self.own_port: Optional[int] = None
        # What makes outcomes the same, and which of a frame's kinds that is.
        self._kinds: Dict[Tuple[Kind, Optional[int]], int] = {}
        self._syns: Dict[int, int] = {}
        self._spans: List[Span] = []
        self._ports = 0

    def __len__(self) -> int:
        return self._ports

    def add(
        self,
        port: int,
        what: Kind,
        rtt_s: Optional[float],
        attempts: int,
        syns: Optional[int] = None,
    ) -> None:
        """One port's final outcome. ``rtt_s`` None: nothing was measured."""
        index = self._index_of(what, syns)
        rtt_us = -1 if rtt_s is None else int(rtt_s * 1000000)
        self._spans.append((port, port, index, rtt_us, attempts))
        self._ports += 1
        if self._ports >= FLUSH_PORTS:
            self.flush()

    def add_many(
        self, ports: Sequence[int], what: Kind, rtt_s: Optional[float], looks: int
    ) -> None:
        """Many ports' final outcome, which is the same for all. A ``range`` stays one."""
        index = self._index_of(what, None)
        rtt_us = -1 if rtt_s is None else int(rtt_s * 1000000)
        if isinstance(ports, range):
            self._spans.append((ports[0], ports[-1], index, rtt_us, looks))
        else:
            self._spans += [(port, port, index, rtt_us, looks) for port in ports]
        self._ports += len(ports)

    def _index_of(self, what: Kind, syns: Optional[int]) -> int:
        index = self._kinds.setdefault((what, None), len(self._kinds))
        if syns is not None:
            # Timer jitter gives 5 SYNs here and 6 there; the least of a batch keeps runs whole.
            self._syns[index] = min(syns, self._syns.get(index, syns))
        return index

    def _fold_spans(self) -> List[Run]:
        return fold(self._spans)

    def flush(self) -> None:
        """Send what there is."""
        if not self._spans:
            return
        kinds = [kind_json(what, self._syns.get(at)) for (what, _), at in self._kinds.items()]
        runs = self._fold_spans()
        self._kinds, self._syns, self._spans, self._ports = {}, {}, [], 0
        frame: Dict[str, Any] = {"t": "outcomes", "id": self._id, "kinds": kinds, "runs": runs}
        if self.own_port is not None:
            frame["sport"] = self.own_port
        self._send(frame)


class DestinationOutcomes(Outcomes):
    """As ``Outcomes`` of many destinations, which "ports" number: each keeps its own round trip,
    and its own count of packets."""

    def _index_of(self, what: Kind, syns: Optional[int]) -> int:
        index = self._kinds.setdefault((what, syns), len(self._kinds))
        if syns is not None:
            self._syns[index] = syns
        return index

    def _fold_spans(self) -> List[Run]:
        return fold_destinations(self._spans)


def kind_json(what: Kind, syns: Optional[int]) -> Dict[str, Any]:
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


def fold(spans: List[Span]) -> List[Run]:
    """Neighbouring ports of one kind as [first, last, kind, median rtt in µs or null, looks]."""
    spans = sorted(spans)
    if not spans:
        return []
    if _is_one_run(spans):
        return [_run(spans)]
    runs: List[Run] = []
    begun = 0
    for at in range(1, len(spans) + 1):
        last = spans[at - 1]
        if at < len(spans) and spans[at][0] == last[1] + 1 and spans[at][2] == last[2]:
            continue
        runs.append(_run(spans[begun:at]))
        begun = at
    return runs


def fold_destinations(spans: List[Span]) -> List[Run]:
    """As ``fold``, but a run has a list of round trips, and its destinations as many looks."""
    runs: List[Run] = []
    for number, _, index, rtt_us, looks in sorted(spans):
        rtt = None if rtt_us < 0 else rtt_us
        run = runs[-1] if runs else None
        if run is not None and (run[1], run[2], run[4]) == (number - 1, index, looks):
            run[1] = number
            run[3].append(rtt)
        else:
            runs.append([number, number, index, [rtt], looks])
    return runs


def _is_one_run(spans: List[Span]) -> bool:
    """Whether they are all neighbours of one kind: the usual case, and told quickly."""
    nexts = [span[1] + 1 for span in spans]
    return list(map(_FIRST, spans[1:])) == nexts[:-1] and len(set(map(_INDEX, spans))) == 1


def _run(spans: List[Span]) -> Run:
    """Neighbours of one kind as a run."""
    first, last = spans[0], spans[-1]
    rtts = sorted((span[3], span[1] - span[0] + 1) for span in spans if span[3] >= 0)
    return [first[0], last[1], first[2], _median(rtts), max(map(_LOOKS, spans))]


def _median(rtts: List[Tuple[int, int]]) -> Optional[int]:
    """The middle one of sorted (round trip, how often)."""
    ports = sum(count for _, count in rtts) // 2
    for rtt_us, count in rtts:
        ports -= count
        if ports < 0:
            return rtt_us
    return None

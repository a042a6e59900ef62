"""Outcomes on their way to the coordinator: equal neighbours are folded into runs of ports."""

from operator import itemgetter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..wire.parts import EchoRun, IcmpFact, OutcomeKind

# A big order reports as it goes: this many ports at a time, or what there is after this long.
FLUSH_PORTS = 16384
FLUSH_S = 0.25

# First and last port, the index of the kind, round trip in µs (below 0: not measured), looks.
KindSpan = Tuple[int, int, int, int, int]
_FIRST, _INDEX, _LOOKS = map(itemgetter, (0, 2, 4))
# First and last port, the index of the kind, the median round trip in µs, looks.
PortRun = Tuple[int, int, int, Optional[int], int]
# Takes kinds, runs, and the own UDP port.
TellKinds = Callable[[List[OutcomeKind], List[Any], Optional[int]], None]


def kind(  # noqa: PLR0913, PLR0917  # as many as the record has fields, apart from ``packets``
    op: str,
    failure: Optional[str] = None,
    icmp: Optional[IcmpFact] = None,
    left: Optional[bool] = None,
    answer: Optional[str] = None,
    by: Optional[int] = None,
    data: Optional[bytes] = None,
    ttl: Optional[int] = None,
    elapsed_ms: Optional[int] = None,
    mtu: Optional[int] = None,
) -> OutcomeKind:
    """Give one kind of outcome; how many packets it took is added by those who count them."""
    return OutcomeKind(op, failure, icmp, left, answer, by, data, ttl, elapsed_ms, mtu, None, None)


class Outcomes:
    """The outcomes of one destination that have not been told yet; ``tell`` takes them."""

    def __init__(self, tell: TellKinds) -> None:
        self._tell = tell
        # The own UDP port: by it a capture tells answers to these probes from other datagrams.
        self.own_port: Optional[int] = None
        # Every kind with its place, and how many packets kinds of silence took, by their places.
        self._kinds: Dict[OutcomeKind, int] = {}
        self._packets: Dict[int, int] = {}
        self._spans: List[KindSpan] = []
        self._ports = 0

    def __len__(self) -> int:
        return self._ports

    def add(
        self,
        port: int,
        what: OutcomeKind,
        rtt_s: Optional[float],
        looks: int,
        packets: Optional[int] = None,
    ) -> None:
        """One port's final outcome. ``rtt_s`` None: nothing was measured."""
        index = self._find_index(what, packets)
        rtt_us = -1 if rtt_s is None else int(rtt_s * 1000000)
        self._spans.append((port, port, index, rtt_us, looks))
        self._ports += 1
        if self._ports >= FLUSH_PORTS:
            self.flush()

    def add_many(
        self, ports: Sequence[int], what: OutcomeKind, rtt_s: Optional[float], looks: int
    ) -> None:
        """Many ports' final outcome, which is the same for all. A ``range`` stays one."""
        index = self._find_index(what, None)
        rtt_us = -1 if rtt_s is None else int(rtt_s * 1000000)
        if isinstance(ports, range):
            self._spans.append((ports[0], ports[-1], index, rtt_us, looks))
        else:
            self._spans += [(port, port, index, rtt_us, looks) for port in ports]
        self._ports += len(ports)

    def flush(self) -> None:
        """Send what there is."""
        if not self._spans:
            return
        kinds = list(self._kinds)
        for index, packets in self._packets.items():
            kinds[index] = kinds[index]._replace(packets=packets)
        spans, self._spans, self._ports = self._spans, [], 0
        self._kinds, self._packets = {}, {}
        self._tell(kinds, self._fold_spans(spans), self.own_port)

    def _find_index(self, what: OutcomeKind, packets: Optional[int]) -> int:
        index = self._kinds.setdefault(what, len(self._kinds))
        if packets is not None:
            # Timer jitter gives 5 SYNs here and 6 there; the least of a batch keeps runs whole.
            self._packets[index] = min(packets, self._packets.get(index, packets))
        return index

    def _fold_spans(self, spans: List[KindSpan]) -> List[Any]:
        return fold(spans)


class DestinationOutcomes(Outcomes):
    """The outcomes of many destinations, which places number as ports are: each keeps its own
    round trip, and its own count of packets."""

    def _find_index(self, what: OutcomeKind, packets: Optional[int]) -> int:
        if packets is not None:
            what = what._replace(packets=packets)
        return self._kinds.setdefault(what, len(self._kinds))

    def _fold_spans(self, spans: List[KindSpan]) -> List[Any]:
        return fold_destinations(spans)


def fold(spans: List[KindSpan]) -> List[PortRun]:
    """Neighbouring ports of one kind as one run each."""
    spans = sorted(spans)
    if not spans:
        return []
    if _is_one_run(spans):
        return [_make_run(spans)]
    runs: List[PortRun] = []
    begun = 0
    for at in range(1, len(spans) + 1):
        last = spans[at - 1]
        if at < len(spans) and spans[at][0] == last[1] + 1 and spans[at][2] == last[2]:
            continue
        runs.append(_make_run(spans[begun:at]))
        begun = at
    return runs


def fold_destinations(spans: List[KindSpan]) -> List[EchoRun]:
    """Neighbouring destinations of one kind, asked equally often, as one run each."""
    runs: List[EchoRun] = []
    for place, _, index, rtt_us, looks in sorted(spans):
        rtt = None if rtt_us < 0 else rtt_us
        last = runs[-1] if runs else None
        if last is not None and (last.last, last.kind, last.looks) == (place - 1, index, looks):
            last.rtts_us.append(rtt)
            runs[-1] = last._replace(last=place)
        else:
            runs.append(EchoRun(place, place, index, [rtt], looks))
    return runs


def _is_one_run(spans: List[KindSpan]) -> bool:
    """Tell whether they are all neighbours of one kind: the usual case, and told quickly."""
    nexts = [span[1] + 1 for span in spans]
    return list(map(_FIRST, spans[1:])) == nexts[:-1] and len(set(map(_INDEX, spans))) == 1


def _make_run(spans: List[KindSpan]) -> PortRun:
    """Neighbours of one kind as a run."""
    first, last = spans[0], spans[-1]
    rtts = sorted((span[3], span[1] - span[0] + 1) for span in spans if span[3] >= 0)
    return first[0], last[1], first[2], _find_median(rtts), max(map(_LOOKS, spans))


def _find_median(rtts: List[Tuple[int, int]]) -> Optional[int]:
    """Find the middle one of sorted (round trip, how often)."""
    ports = sum(count for _, count in rtts) // 2
    for rtt_us, count in rtts:
        ports -= count
        if ports < 0:
            return rtt_us
    return None

"""The metrics of a watch, for Prometheus: findings, role pairs and hosts, never pairs of hosts."""

from __future__ import annotations

import threading
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as MetricCollector

from netprobe.errors import NetprobeError, RequestError
from netprobe.model.outage import History, Outage
from netprobe.model.result import Result
from netprobe.model.run import RunIndex
from netprobe.watch.round import RoundSeen

# So long the series of an outage that ended stays, at 0.
ENDED_S: Final = 3600.0
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
VERDICTS: Final = ("pass", "blocked", "exposed", "inconclusive", "not-tested")
# Why nothing can be found out of a host; every other reason is that there is no way in.
BLIND_WORDS: Final = ("agent-lost", "no-way-in", "maintenance")
_WORDS: Final = {word: word for word in BLIND_WORDS} | {"agent-slow": "agent-lost"}

# Requirement, role of the source, role of the destination.
RolePair = tuple[str, str, str]
# By the texts of their labels.
FlowValues = dict[tuple[str, ...], float]
# Matrix, requirement, source, destination.
FailingFlow = tuple[str, ...]
PAIR: Final = ("requirement", "source_role", "destination_role")


class WatchMetrics:
    """What a scrape gives. ``listen`` opens the port; ``every_s``: from round to round."""

    def __init__(self, every_s: float, now: Callable[[], float] = time.time) -> None:
        self.registry = CollectorRegistry()
        self._server: WSGIServer | None = None
        gauges = {
            "round_duration_seconds": "How long the last round took.",
            "last_round_timestamp_seconds": "When the last round ended.",
            "history_writable": "Whether the history can be written.",
            "round_interval_seconds": "From one round to the next, as it is asked for.",
        }
        made = {
            name: Gauge(f"netprobe_{name}", text, registry=self.registry)
            for name, text in gauges.items()
        }
        self._took, self._ended, self._writable, interval = made.values()
        self._writable.set(1)
        interval.set(every_s)
        self._looks = Counter(
            "netprobe_looks", "Looks at flows.", ["result"], registry=self.registry
        )
        for verdict in VERDICTS:
            self._looks.labels(verdict)
        self._rtt = Histogram(
            "netprobe_rtt_seconds", "Round trips of flows that pass.", PAIR, buckets=_BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        self.state = OutageSeries(now)
        self.registry.register(self.state)

    def listen(self, where: str) -> None:
        """Serve scrapes at HOST:PORT. Raises RequestError, and NetprobeError where it is taken."""
        host, _, port = where.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise RequestError(f"--metrics {where}: expected HOST:PORT, such as 127.0.0.1:9815")
        try:
            self._server, _ = start_http_server(int(port), host.strip("[]"), self.registry)
        except OSError as error:
            words = error.strerror or error
            raise NetprobeError(f"--metrics {where}: cannot listen there: {words}") from error

    def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def trouble(self, words: str) -> None:
        """Note whether the history can be written."""
        self._writable.set(0 if words else 1)

    def take_round(self, seen: RoundSeen) -> None:
        """Count what a round saw."""
        index = RunIndex(seen.end.info)
        flows: Counts[tuple[str, ...]] = Counts()
        failing: dict[FailingFlow, RolePair] = {}
        for one in seen.results.results():
            pair = _find_pair(one, index)
            for verdict in ("pass", "blocked"):
                flows[one.matrix, *pair, verdict] += 0
            flows[one.matrix, *pair, one.verdict] += one.port_count
            if one.verdict != "pass":
                failing[one.matrix, one.requirement, one.source, one.destination] = pair
            self._looks.labels(one.verdict).inc(one.port_count)
            if one.verdict == "pass" and one.rtt_ms is not None:
                self._rtt.labels(*pair).observe(one.rtt_ms / 1000)
        self._drop_pairs({(one[1], one[2], one[3]) for one in flows})
        self._took.set(seen.end.decided - seen.end.begun)
        self._ended.set(seen.end.decided)
        self.state.take_round(flows, _count_blind(seen), failing)

    def _drop_pairs(self, left: set[RolePair]) -> None:
        """Forget the round trips of roles without hosts."""
        for metric in list(self._rtt.collect()):
            for sample in metric.samples:
                pair = tuple(sample.labels[name] for name in PAIR)
                if pair not in left:
                    self._rtt.remove_by_labels(dict(zip(PAIR, pair, strict=True)))


class OutageSeries(MetricCollector):
    """Series that come and go with flows and outages. Scrapes come from another thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._flows: Counts[tuple[str, ...]] = Counts()
        self._blind: Counts[str] = Counts()
        self._outages: tuple[Outage, ...] = ()
        self._pairs: dict[FailingFlow, RolePair] = {}
        self._seconds: dict[RolePair, float] = {}
        self._failing: set[RolePair] = set()
        self._counted_at = now()

    def take_round(
        self,
        flows: Counts[tuple[str, ...]],
        blind: Counts[str],
        pairs: dict[FailingFlow, RolePair],
    ) -> None:
        """Take what a round saw: flows by their labels, blind hosts, roles of what fails."""
        with self._lock:
            self._count_seconds()
            self._flows, self._blind, self._pairs = flows, blind, pairs
            left = {(one[1], one[2], one[3]) for one in flows}
            self._seconds = {pair: self._seconds.get(pair, 0.0) for pair in left}
            self._failing = set(self._find_failing()) & left

    def take_history(self, history: History) -> None:
        """Take which outages there are."""
        with self._lock:
            self._count_seconds()
            self._outages = history.outages
            self._failing = set(self._find_failing())

    def _find_failing(self) -> Iterator[RolePair]:
        """Find the role pairs that have an outage now."""
        for outage in self._outages:
            for one in outage.members if outage.is_open else ():
                pair = self._pairs.get(one.key[:4])
                if one.times.end is None and pair is not None:
                    yield pair

    def _count_seconds(self) -> None:
        now = self._now()
        for pair in self._failing:
            self._seconds[pair] = self._seconds.get(pair, 0.0) + max(0.0, now - self._counted_at)
        self._counted_at = now

    def collect(self) -> Iterator[Metric]:
        """Give the series of now."""
        with self._lock:
            self._count_seconds()
            yield _make_gauge(
                "flows",
                "Required flows by their verdict in the last round.",
                ("matrix", *PAIR, "verdict"),
                self._flows,
            )
            blind: FlowValues = {(reason,): self._blind[reason] for reason in BLIND_WORDS}
            yield _make_gauge("blind_hosts", "Hosts of which nothing is known.", ("reason",), blind)
            yield from self._collect_outages()
            seconds = CounterMetricFamily(
                "netprobe_outage_seconds",
                "Seconds in which a flow of this requirement and these roles had an outage.",
                labels=PAIR,
            )
            for pair, value in self._seconds.items():
                seconds.add_metric(pair, value)
            yield seconds

    def _collect_outages(self) -> Iterator[Metric]:
        since = self._now() - ENDED_S
        shown = [one for one in self._outages if one.is_open or (one.times.end or 0) > since]
        opened: dict[tuple[str, ...], float] = {
            (one.id, requirement, one.cause.reason): float(one.is_open)
            for one in shown
            for requirement in one.requirements
        }
        labels = ("finding", "requirement", "reason")
        yield _make_gauge(
            "outage_open", "1 while an outage lasts, 0 for an hour after.", labels, opened
        )
        started: FlowValues = {(one.id,): one.times.first_bad for one in shown if one.is_open}
        words = "When an outage was seen first."
        yield _make_gauge("outage_started_timestamp_seconds", words, ("finding",), started)


def _make_gauge(
    name: str, words: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]
) -> Metric:
    family = GaugeMetricFamily(f"netprobe_{name}", words, labels=labels)
    for texts, value in values.items():
        family.add_metric(texts, value)
    return family


def _find_pair(result: Result, index: RunIndex) -> RolePair:
    return result.requirement, index.source_role(result), index.destination_role(result)


def _count_blind(seen: RoundSeen) -> Counts[str]:
    return Counts(_WORDS.get(reason, "no-way-in") for reason, _ in seen.blind.values())

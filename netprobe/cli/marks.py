"""What is said of judged results beside their verdicts: accepted, or known of a baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from netprobe.cli.options import VerbOptions
from netprobe.cli.report import read_acceptances
from netprobe.errors import RequestError
from netprobe.judge.accepted import Acceptances
from netprobe.model.plan import Plan
from netprobe.model.result import Result
from netprobe.model.sink import Sink
from netprobe.report.record.changes import fates_of
from netprobe.report.record.earlier import Baseline
from netprobe.report.record.reading import read_earlier


@dataclass(frozen=True, slots=True)
class Marks:
    """What is said of judged results: that they are accepted, or known of a baseline."""

    accepted: Acceptances | None
    baseline: Baseline | None

    def mark(self, results: Iterable[Result]) -> Iterable[Result]:
        """Mark the results, cut where their ports differ."""
        for marker in (self.accepted, self.baseline):
            if marker is not None:
                results = chain.from_iterable(map(marker.mark, results))
        return results

    def into(self, sink: Sink) -> Sink:
        """Give a sink that marks results for ``sink``; without marks, give ``sink`` itself."""
        if self.accepted is None and self.baseline is None:
            return sink
        return Marking(sink, self)


@dataclass(frozen=True, slots=True)
class Marking:
    """A sink that marks every result for another one."""

    sink: Sink
    marks: Marks

    def add(self, result: Result) -> None:
        """Hand on what becomes of it."""
        for part in self.marks.mark((result,)):
            self.sink.add(part)


class Both:
    """A sink that hands every result to two others."""

    def __init__(self, first: Sink, second: Sink | None) -> None:
        self._first = first
        self._second = second

    def add(self, result: Result) -> None:
        """Hand it on; first to what keeps it for the report."""
        self._first.add(result)
        if self._second is not None:
            self._second.add(result)


def read_marks(options: VerbOptions, plan: Plan) -> Marks:
    """Read what is accepted, and the baseline. Raises RequestError."""
    return Marks(read_acceptances(options), _read_baseline(options, plan))


def _read_baseline(options: VerbOptions, plan: Plan) -> Baseline | None:
    """Read the run that ``--baseline`` names. Raises RequestError, also for other matrices."""
    only_new = options["fail_on"] == "new"
    if not options["baseline"]:
        if only_new:
            raise RequestError("--fail-on new: new since when? Give --baseline RUN")
        return None
    earlier = read_earlier(options["baseline"])
    baseline = Baseline(earlier, fates_of(earlier.read_results()), only_new)
    baseline.refuse_other_matrices(plan)
    return baseline

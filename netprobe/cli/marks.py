"""What is said of judged results beside their verdicts: accepted, or known of a baseline."""

from __future__ import annotations

from dataclasses import dataclass

from netprobe.cli.asked import TellingOptions
from netprobe.cli.report import read_acceptances
from netprobe.errors import RequestError
from netprobe.judge.accepted import Acceptances
from netprobe.model.plan import Plan
from netprobe.report.record.changes import fates_of
from netprobe.report.record.earlier import Baseline
from netprobe.report.record.reading import read_earlier
from netprobe.session import Mark


@dataclass(frozen=True, slots=True)
class Marks:
    """What is said of judged results: that they are accepted, or known of a baseline."""

    accepted: Acceptances | None
    baseline: Baseline | None

    @property
    def functions(self) -> tuple[Mark, ...]:
        """What marks results, in this order."""
        return tuple(one.mark for one in (self.accepted, self.baseline) if one is not None)


def read_marks(options: TellingOptions, plan: Plan) -> Marks:
    """Read what is accepted, and the baseline. Raises RequestError."""
    return Marks(read_acceptances(options), _read_baseline(options, plan))


def _read_baseline(options: TellingOptions, plan: Plan) -> Baseline | None:
    """Read the run that ``--baseline`` names. Raises RequestError, also for other matrices."""
    only_new = options.fail_on == "new"
    if not options.baseline:
        if only_new:
            raise RequestError("--fail-on new: new since when? Give --baseline RUN")
        return None
    earlier = read_earlier(options.baseline)
    baseline = Baseline(earlier.path, earlier.info, fates_of(earlier.read_results()), only_new)
    baseline.refuse_other_matrices(plan)
    return baseline

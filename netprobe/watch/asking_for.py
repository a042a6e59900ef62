"""The firewall rules that would end an outage, as the text of a request."""

from __future__ import annotations

import io
from itertools import islice

from netprobe.errors import RequestError
from netprobe.model.outage import Outage
from netprobe.model.result import Result
from netprobe.model.run import RunInfo
from netprobe.request.build import request_of_run
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from netprobe.watch.flows import is_bad, pick
from netprobe.watch.round import RoundSeen, fold_results

# Of more results no request is made here: `netprobe request` makes it of the round's report.
MOST_RESULTS = 1000
SEEN_BY = "a round of netprobe watch"


class RuleTexts:
    """The requests of outages that go on. ``take_round`` gets each round's results."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._info = RunInfo()
        self._failures: list[Result] = []

    def take_round(self, seen: RoundSeen) -> None:
        """Keep what a round saw fail."""
        self._info = seen.end.info
        self._failures = list(islice(filter(is_bad, seen.results.failures()), MOST_RESULTS))

    def find(self, outage: Outage) -> str:
        """Give the request of an outage; empty where no rule would end it, or it has ended."""
        if not outage.is_open:
            return self._texts.pop(outage.id, "")
        if outage.id not in self._texts:
            flows = {one.key: one.ports for one in outage.members if one.times.end is None}
            self._texts[outage.id] = self._make_text(list(pick(self._failures, flows)))
        return self._texts[outage.id]

    def _make_text(self, failures: list[Result]) -> str:
        findings = fold_results(self._info, failures, ())
        try:
            request = request_of_run(self._info, findings, (), SEEN_BY, RequestWishes())
        except RequestError:
            return ""
        stream = io.StringIO()
        if request.rules:
            SYNTAXES["text"].write(request, stream)
        return stream.getvalue()

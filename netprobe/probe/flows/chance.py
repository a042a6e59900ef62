"""The chance that silence is only loss: how often a silent flow is asked before it is believed.

With k looks, each of which is lost with chance p, loss alone explains the silence of one flow with
chance p^k. Looks end when the flows of the run, which may all be silent, times p^k are below 1 in
100,000. What a run has lost is a sample, also where it lost nothing: p is the most that it makes
likely.
"""

from __future__ import annotations

import math

# How much of what was sent is thought lost at least, as long as the run has not shown more.
LEAST_LOSS = 0.05
MOST_LOSS = 0.7
MOST_ERRORS = 1e-5
LEAST_LOOKS, MOST_LOOKS = 5, 24
# So many standard deviations: 19 of 20 samples show less.
CAUTION = 1.64


class Chance:
    """What one run has shown of loss; ``flows`` are those that it asks, so that may be silent."""

    def __init__(self, flows: int) -> None:
        self._flows = flows
        self._answered = 0
        self._lost = 0

    def note_answered(self, flows: int) -> None:
        """Count so many looks that were answered."""
        self._answered += flows

    def note_lost(self, looks: int) -> None:
        """Count so many looks that were not answered, at flows that were in the end."""
        self._lost += looks

    @property
    def loss(self) -> float:
        """The loss of a round trip: how many looks at flows that did answer were not answered."""
        looks = self._answered + self._lost
        return min(MOST_LOSS, max(LEAST_LOSS, self._lost / looks)) if looks else LEAST_LOSS

    def count_looks(self) -> int:
        """Tell how many looks make an error unlikely over all flows of the run."""
        looks = LEAST_LOOKS
        loss = self._bound_loss()
        while looks < MOST_LOOKS and not self.excludes_loss(looks, loss):
            looks += 1
        return looks

    def _bound_loss(self) -> float:
        """Give the most that the loss may well be (Wilson's interval of a share of a sample)."""
        looks = self._answered + self._lost
        if not looks:
            return LEAST_LOSS
        share, square = self._lost / looks, CAUTION**2 / looks
        spread = CAUTION * math.sqrt(share * (1 - share) / looks + square / (4 * looks))
        return min(MOST_LOSS, (share + square / 2 + spread) / (1 + square))

    def excludes_loss(self, looks: int, loss: float) -> bool:
        """Tell whether so many lost looks are no accident where such a part of looks gets lost."""
        return self._flows * max(LEAST_LOSS, loss) ** looks < MOST_ERRORS

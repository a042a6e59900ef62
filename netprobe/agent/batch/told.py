"""What probe and echo orders say of single destinations and ports."""

from typing import Any, Iterator, List, NamedTuple, Optional

from ..wire.parts import OutcomeKind
from ..wire.replies import BYTES, ECHO, NONCE

# Answers that the asked end gives; None: a connection opened, or a packet that needs no answer left.
GOOD_ANSWERS = (None, NONCE, BYTES, ECHO)


class Asked(NamedTuple):
    """What became of neighbouring ports of one destination; ``first`` 0: it has no ports."""

    dst: str
    host: Optional[int]
    first: int
    last: int
    kind: OutcomeKind

    @property
    def is_answered(self) -> bool:
        """Whether it was as it should be, as far as the asking side can tell."""
        return self.kind.failure is None and self.kind.answer in GOOD_ANSWERS


def list_asked(order: Any, message: Any) -> Iterator[Asked]:
    """List what an answer says of each destination of a probe or echo order."""
    if not hasattr(message, "runs"):
        return
    if hasattr(order, "dsts"):
        for run in message.runs:
            for place in range(run.first, run.last + 1):
                yield Asked(order.dsts[place - 1], None, 0, 0, message.kinds[run.kind])
        return
    if not hasattr(order, "blocks"):
        return
    for run in message.runs:
        yield Asked(order.dst, order.host, run.first, run.last, message.kinds[run.kind])


def list_all_asked(order: Any, answers: List[Any]) -> List[Asked]:
    """List what all answers to an order say."""
    return [asked for message in answers for asked in list_asked(order, message)]

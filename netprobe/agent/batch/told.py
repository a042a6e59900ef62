"""What probe and echo orders say of single destinations and ports."""

from typing import Any, Iterator, List, NamedTuple, Optional

from ..wire.parts import OutcomeKind
from ..wire.replies import BYTES, ECHO, NONCE

# Answers of the asked end; None: a connection opened, or what needs no answer has left.
GOOD_ANSWERS = (None, NONCE, BYTES, ECHO)


class AskedPorts(NamedTuple):
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


def list_asked(order: Any, message: Any) -> Iterator[AskedPorts]:
    """List what an answer says of each destination of a probe or echo order."""
    if not hasattr(message, "runs"):
        return
    if hasattr(order, "dsts"):
        for run in message.runs:
            for place in range(run.first, run.last + 1):
                yield AskedPorts(order.dsts[place - 1], None, 0, 0, message.kinds[run.kind])
        return
    if not hasattr(order, "blocks"):
        return
    for run in message.runs:
        yield AskedPorts(order.dst, order.host, run.first, run.last, message.kinds[run.kind])


def list_all_asked(order: Any, answers: List[Any]) -> List[AskedPorts]:
    """List what all answers to an order say."""
    return [asked for message in answers for asked in list_asked(order, message)]

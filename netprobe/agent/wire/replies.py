"""What came back on a socket: our listener's answer, another host's, our own bytes, or noise."""

from typing import NamedTuple, Optional, Tuple

from .templates import Template

MOST_BYTES = 4096

NONCE = "nonce"
FOREIGN = "foreign"
REFLECTED = "reflected"
GARBLED = "garbled"
SILENT = "silent"
# Small segments came through, and no full-sized one: on the way there, or on the way back.
NARROW = "narrow"
NARROW_BACK = "narrow-back"
CLOSED = "closed"
RESET = "reset"
BYTES = "bytes"
ECHO = "echo"
UNASKED = "unasked"


class Question(NamedTuple):
    """One request that is out: what it needs to know its answer again.

    ``host`` is the index of the host that should answer, None where any of ours may.
    """

    key: bytes
    template: Template
    nonce: bytes
    request: bytes
    host: Optional[int]


def read_reply(question: Question, data: bytes) -> Tuple[str, Optional[int]]:
    """Tell a complete message apart: the answer word, and which host of ours sent it."""
    template = question.template
    by = template.answering_host(question.key, question.nonce, data)
    if by is not None:
        genuine = question.host is None or by == question.host
        return (NONCE if genuine else FOREIGN), by
    if data and data[: len(question.request)] == question.request:
        return REFLECTED, None
    return GARBLED, None


def read_stream(question: Question, data: bytes) -> Optional[Tuple[str, Optional[int]]]:
    """As ``read_reply`` for a stream so far; None while more may still make sense of it."""
    answer, by = read_reply(question, data)
    if answer != GARBLED:
        return answer, by
    expected = question.template.answer
    if expected is not None and len(data) < len(expected):
        return None
    if question.request.startswith(data):
        return None
    return answer, by

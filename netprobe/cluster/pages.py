"""Reads pages of results: whole and of this run and host, or refused with words."""

from __future__ import annotations

import re
import zlib
from base64 import b85decode
from collections.abc import Iterator, Sequence
from hmac import compare_digest
from typing import Any

from msgspec import Struct

from netprobe.agent.wire.batch import BATCH_FORMAT, ResultHeader
from netprobe.agent.wire.batch_pages import (
    DICTIONARY,
    IN_PAGES,
    MOST_MESSAGE_BYTES,
    PAGE_FORMAT,
    PAGE_PREFIX,
    WORDS_PREFIX,
    PageHeader,
    page_mac,
)
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.batch.checked_lines import BatchIdentity, ResultsRefused
from netprobe.batch.limits import MIB, Allowance, count_values
from netprobe.batch.messages import MessageSorter, message_id
from netprobe.batch.results import HostRecording
from netprobe.batch.script import HostScript, derive_result_key
from netprobe.model.printable import clean

_HEAD = re.compile(rf"{PAGE_PREFIX} (\d{{1,5}}) (\d{{1,5}}) ([!-~]{{15}}) ")
_BEGIN = f"{PAGE_PREFIX} "
# So many bytes come of a page at most, which is itself no longer than a message.
MOST_TEXT_BYTES = MIB
MOST_QUOTED = 200


class OpenedPage(Struct, frozen=True):
    """One page; ``text``: its messages behind the header, one a line."""

    label: str
    header: PageHeader
    text: bytes


def read_page(message: str, label: str, run: BatchIdentity, host: int) -> OpenedPage:
    """Read the message of a pod on this host (its index). Raises ResultsRefused, which names it.

    The kubelet keeps the end of what is too long for it, or the beginning: such a page is refused.
    """
    name = run.hosts[host]

    def refuse(words: str) -> ResultsRefused:
        return ResultsRefused(label, words, (name,))

    head = _HEAD.match(message)
    if head is None:
        raise refuse(_word_no_head(message))
    number, length, content = int(head[1]), int(head[2]), message[head.end() :]
    if len(content) != length or len(message) > MOST_MESSAGE_BYTES:
        raise refuse(_word_length(len(content), length))
    key = derive_result_key(run.results_key, host)
    packed = content.encode("utf-8", "replace")
    if not compare_digest(page_mac(key, number, packed), head[3].encode("ascii")):
        raise refuse(
            f"was not written with the key of {name}: it is of another run or host, or somebody or "
            "something changed it"
        )
    try:
        return _open_content(packed, label, run, host, number)
    except (ValueError, zlib.error) as error:
        raise refuse(f"holds what no host of this version writes ({error})") from None


def _word_no_head(message: str) -> str:
    if message.startswith(WORDS_PREFIX):
        return f"did nothing: {clean(message.removeprefix(WORDS_PREFIX))}"
    if _BEGIN.startswith(message) or message.startswith(_BEGIN):
        return f"is cut off: only {len(message)} characters of its beginning are there"
    return (
        "does not begin as a page of results: it is cut off, or something else has written it "
        f"({clean(message)[:MOST_QUOTED]})"
    )


def _word_length(there: int, length: int) -> str:
    if there < length:
        return f"is cut off: {there} of {length} characters of its content are there"
    return f"has {there - length} characters behind its end: somebody or something changed it"


def _open_content(
    packed: bytes, label: str, run: BatchIdentity, host: int, number: int
) -> OpenedPage:
    """Unpack a page whose MAC is right. Raises ValueError, zlib.error."""
    unpacker = zlib.decompressobj(zdict=DICTIONARY)
    text = unpacker.decompress(b85decode(packed), MOST_TEXT_BYTES)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"more than {MOST_TEXT_BYTES:,} bytes, or something behind them")
    first, _, rest = text.partition(b"\n")
    header = decode_message(first, IN_PAGES)
    if not isinstance(header, PageHeader):
        raise ValueError("its first message is no header")
    if (header.format, header.wire) != (PAGE_FORMAT, WIRE_VERSION):
        raise ValueError("another format")
    if (header.run, header.host, header.name, header.page) != (
        run.run,
        host,
        run.hosts[host],
        number,
    ):
        raise ValueError("a header of another run, host or page")
    if not 1 <= header.round <= run.rounds:
        raise ValueError(f"round {header.round}")
    return OpenedPage(label, header, rest)


def join_pages(
    pages: Sequence[OpenedPage], run: BatchIdentity, script: HostScript
) -> HostRecording:
    """Give what a host wrote in one round on all of its pages, of which the first must be there.
    Each page says something by itself: one that is missing is a matter of words.

    ``script``: what it had to do, which the pages leave out. Raises ResultsRefused.
    """
    ordered = sorted(pages, key=lambda page: page.header.page)
    name, label = script.start.name, ", ".join(page.label for page in ordered)
    found = MessageSorter(run, script.start.host, run.allow(name).asked)
    asked = _list_asked(script)
    try:
        _check_order(ordered)
        for message in _list_messages(ordered, run.allow(name)):
            for order in asked.pop(message_id(message) or -1, ()):
                found.take(order)
            found.take(message)
    except ValueError as error:
        words = f"holds what no host of this version writes ({error})"
        raise ResultsRefused(label, words, (name,)) from None
    last = ordered[-1].header
    header = ResultHeader(BATCH_FORMAT, last.wire, last.run, last.round, last.host, name, "")
    return HostRecording(
        label, name, header, found.hello, tuple(found.marks), tuple(found.orders),
        {number: tuple(some) for number, some in found.answers.items()},
        is_cut=False, words="; ".join(filter(None, (_word_gaps(ordered), _word_left(last)))),
    )  # fmt: skip


def _check_order(pages: Sequence[OpenedPage]) -> None:
    """Raise ValueError for pages that are not those of one round, each once, with the first."""
    numbers = [page.header.page for page in pages]
    if numbers[0] != 1 or len(set(numbers)) < len(numbers):
        raise ValueError(f"pages {', '.join(map(str, numbers))}, expected each once from 1 on")
    if len({page.header.round for page in pages}) > 1:
        raise ValueError("pages of several rounds")


def _list_asked(script: HostScript) -> dict[int, list[Any]]:
    """Give the orders of a script by their ids; the end of a round of listeners has its id."""
    found: dict[int, list[Any]] = {}
    for _, orders in script.phases:
        for order in orders:
            number = message_id(order)
            if number is not None:
                found.setdefault(number, []).append(order)
    return found


def _list_messages(pages: Sequence[OpenedPage], allowance: Allowance) -> Iterator[Any]:
    """Give the messages of all pages. Raises ValueError for more than there can be."""
    messages, values = allowance.messages, allowance.values
    for page in pages:
        messages -= page.text.count(b"\n") + 1
        values -= count_values(page.text)
        if messages < 0 or values < 0:
            raise ValueError(f"more than the plan allows, which is {allowance.messages:,} messages")
        for line in page.text.split(b"\n") if page.text else ():
            message = decode_message(line, IN_PAGES)
            if isinstance(message, PageHeader):
                raise ValueError("a second header")
            yield message


def find_gaps(pages: Sequence[OpenedPage]) -> list[int]:
    """Find the pages that are missing before the last one that is there."""
    numbers = {page.header.page for page in pages}
    return [number for number in range(1, max(numbers)) if number not in numbers]


def _word_gaps(pages: Sequence[OpenedPage]) -> str:
    gaps = find_gaps(pages)
    if not gaps:
        return ""
    which = f"page {gaps[0]}" if len(gaps) == 1 else f"pages {', '.join(map(str, gaps))}"
    return f"{which} of its results {'has' if len(gaps) == 1 else 'have'} not arrived"


def _word_left(header: PageHeader) -> str:
    """Say how many answers had no room; nothing where all had."""
    left = header.failed_left + header.others_left
    if not left:
        return ""
    failed = f", {header.failed_left:,} of them of what failed" if header.failed_left else ""
    answers = "answer" if left == 1 else "answers"
    return f"{left:,} {answers} had no room in its messages{failed}"

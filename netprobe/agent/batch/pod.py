"""The containers of a pod: the first one carries the round out and leaves the first page; each
later one hands on a page of its own, because a container has one message. The last one hands on
all that are left, one each time that the kubelet has started it again."""

import os
import signal
import time
from typing import Dict, List, NamedTuple, Optional

from ..wire.batch_pages import WORDS_PREFIX

PAGE_FILE = "page-%d"


class PodPlace(NamedTuple):
    """``message``: the file that the kubelet reads when the container has ended. ``folder``: where
    pages wait for their containers. ``limits``: how many bytes each page may have. ``page``: which
    one this container leaves; with ``pause_s`` that or the next one that waits, after so long."""

    message: str
    folder: str
    limits: List[int]
    page: int
    pause_s: Optional[float]


def read_place(options: Dict[str, str]) -> Optional[PodPlace]:
    """Read what the command line says of a pod; None where it says nothing. Raises ValueError."""
    if not options["--message"]:
        return None
    limits = [int(word) for word in options["--limits"].split(",")]
    pause_s = float(options["--pause"]) if options["--pause"] else None
    page = int(options["--page"])
    return PodPlace(options["--message"], options["--pages"], limits, page, pause_s)


def leave_pages(place: PodPlace, pages: List[bytes]) -> None:
    """Leave the first page as the message, and the others for their containers."""
    for number, page in enumerate(pages[1:], 2):
        _write_file(os.path.join(place.folder, PAGE_FILE % number), page)
    _write_file(place.message, pages[0])


def hand_on_page(place: PodPlace) -> int:
    """Leave a page that an earlier container has made; none, where that one made none."""
    try:
        with open(os.path.join(place.folder, PAGE_FILE % place.page), "rb") as file:
            page = file.read()
    except OSError:
        return 0  # the first container's message says why
    _write_file(place.message, page)
    return 0


def hand_on_further(place: PodPlace) -> int:
    """Leave the next page that waits, when everybody had time to read the one before; where none
    waits, stay until the pod ends."""
    for number in range(place.page, len(place.limits) + 1):
        path = os.path.join(place.folder, PAGE_FILE % number)
        if os.path.exists(path):
            time.sleep(place.pause_s or 0.0)
            hand_on_page(place._replace(page=number))
            os.unlink(path)
            return 0
    while True:
        signal.pause()


def leave_words(place: PodPlace, words: str) -> int:
    """Leave the words that say why there is no page, and give exit status 0: another one would
    start the container again, which would say the same."""
    text = (WORDS_PREFIX + words).encode("utf-8", "replace")
    _write_file(place.message, text[: place.limits[0]])
    return 0


def _write_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)

"""The containers of a pod: the first one carries the round out and leaves the first page; each
later one hands on a page of its own, because a container has one message."""

import os
from typing import Dict, List, NamedTuple, Optional

from ..wire.batch_pages import WORDS_PREFIX

PAGE_FILE = "page-%d"


class PodPlace(NamedTuple):
    """``message``: the file that the kubelet reads when the container has ended. ``folder``: where
    pages wait for their containers. ``limits``: how many bytes each page may have. ``page``: which
    one this container leaves."""

    message: str
    folder: str
    limits: List[int]
    page: int


def read_place(options: Dict[str, str]) -> Optional[PodPlace]:
    """Read what the command line says of a pod; None where it says nothing. Raises ValueError."""
    if not options["--message"]:
        return None
    limits = [int(word) for word in options["--limits"].split(",")]
    return PodPlace(options["--message"], options["--pages"], limits, int(options["--page"]))


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

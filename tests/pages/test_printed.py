"""Parts of pages that are printed from code are fresh, and what people write stays short."""

from __future__ import annotations

import os
import re

from netprobe.load.manifest.kinds import KINDS, OTHER_KINDS
from netprobe.protocols.services.services import SERVICES
from pages.printed import LIMIT, PART, PARTS, count_by_hand, list_pages, list_sizes, print_parts


def test_printed_parts_are_fresh() -> None:
    """Whoever changes what a part is printed from prints the page again (``make docs``)."""
    for path in list_pages():
        text = path.read_text(encoding="utf-8")
        if os.environ.get("NETPROBE_REWRITE") == "docs":
            path.write_text(print_parts(text), encoding="utf-8")
            text = print_parts(text)

        assert print_parts(text) == text, path


def test_every_kind_of_manifest_is_described() -> None:
    """Whoever adds a kind says what becomes of it."""
    text = PARTS["kinds of manifests"]()

    assert [kind for kind in (*KINDS, *OTHER_KINDS) if kind.split()[0] not in text] == []


def test_every_live_service_says_how_it_is_known() -> None:
    """Whoever adds a service says by what its answer is recognised."""
    assert [probe for probe, service in SERVICES.items() if not service.known_by] == []


def test_every_part_stands_on_one_page() -> None:
    """A marker that somebody mistypes or forgets is found."""
    pages = [path.read_text(encoding="utf-8") for path in list_pages()]
    found = [match[2] for text in pages for match in PART.finditer(text)]

    assert sorted(found) == sorted(PARTS)
    assert sum(text.count("<!-- printed: ") for text in pages) == len(found)


def test_what_people_write_stays_short() -> None:
    """What is said twice is said once: `make pages-size` shows where the room went."""
    by_hand = sum(written for _, written, _ in list_sizes())

    assert LIMIT / 2 < by_hand <= LIMIT


def test_a_page_counts_what_no_program_printed() -> None:
    """Whole pages, parts between marks, and outputs that a test compares are left out."""
    part = "<!-- printed: checks -->\nlong\n<!-- end -->\n"
    console = "```console\n$ netprobe\nlong\n```\n"

    assert count_by_hand("# A\n\nwords\n") == len("# A\n\nwords\n")
    assert count_by_hand(part) == len(part.replace("long\n", ""))
    assert count_by_hand(console) == len("```console\n```\n")
    assert count_by_hand("# A\n\n<!-- Printed from x/ by `make docs` -->\nlong") == 0


def test_outputs_name_no_kernel_of_a_machine() -> None:
    """Whoever reads an output learns of netprobe, and nothing of where it was tried."""
    for path in list_pages():
        found = re.findall(r"Linux [3-9]\.\d+\.\d\S*", path.read_text(encoding="utf-8"))
        assert not found, path

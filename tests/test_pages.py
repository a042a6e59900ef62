"""The pages for people point at things that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_links_lead_somewhere() -> None:
    """Every link to a file of this project names one that exists."""
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        lost = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
        assert not lost, page


def test_every_fence_is_closed() -> None:
    """Where one is missing, the next block's first, between a blank line and text, closes."""
    for page in PAGES:
        lines = [*page.read_text(encoding="utf-8").splitlines(), ""]
        fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
        assert len(fences) % 2 == 0, page
        for number in fences[1::2]:
            wrong = f"{page}:{number + 1} opens a block inside of another"
            assert lines[number].strip() == "```", wrong
            around = lines[number - 1].strip(), lines[number + 1].strip()
            assert around[0] or not around[1], wrong


def test_the_readme_names_make_targets_that_exist() -> None:
    """What the README and CONTRIBUTING tell people to type is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    pages = (ROOT / "README.md").read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", pages, re.MULTILINE))

    assert named
    assert named <= targets

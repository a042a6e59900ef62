"""Sessions that pages print: their commands, and what of the output a page shows."""

from __future__ import annotations

import re
from pathlib import Path

# What differs from run to run, or would be too long to show.
LEFT_OUT = "..."


def read_commands(page: Path, prompt: str) -> list[tuple[str, list[str]]]:
    """Each command behind this prompt, and the parts of its output that the page shows."""
    blocks = re.findall(
        r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    found = []
    for block in blocks:
        for text in block.split(prompt)[1:]:
            command, _, output = text.partition("\n")
            shown = [_join_words(part) for part in output.split(LEFT_OUT)]
            found.append((command, [part for part in shown if part]))
    return found


def check_output(command: str, shown: list[str], output: str) -> None:
    """Fail unless the output has all parts that the page shows, in their order."""
    rest = _join_words(output)
    for part in shown:
        before, found, rest = rest.partition(part)
        assert found, f"{command}: the page shows {part!r}, the rest of the output is {before!r}"


def _join_words(text: str) -> str:
    """Without line breaks, which depend on how wide the reader's terminal is."""
    return " ".join(text.split())

"""What tables and modules of netprobe say of themselves, for the pages that explain them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from netprobe.audit.table import RULES
from netprobe.judge.name_rows import ROWS
from netprobe.probe.checks import CHECKS, DENIED_CHECKS, FINAL_CHECKS
from netprobe.request.syntaxes import SYNTAXES

PACKAGE = Path(__file__).parents[1] / "netprobe"
# Beside the stages, from top to bottom; of a folder its first line speaks.
BESIDE = (
    "cli", "watch", "session.py", "pipeline.py", "explain", "konnectivity", "audit", "history",
    "idle", "cluster", "batch", "protocols", "vantage", "model", "files.py", "children.py",
    "errors.py", "signals.py", "agent",
)  # fmt: skip


def print_audit_rules() -> str:
    """The rules of the audit: what is wrong, and what to do."""
    lines = ["| kind | | what netprobe says | to do |", "|---|---|---|---|"]
    for rule in RULES:
        cells = (f"`{rule.kind}`", rule.weight, fill_words(rule.because), rule.remedy)
        lines.append(f"| {' | '.join(map(fill_words, cells))} |")
    return "\n".join(lines)


def print_name_rows() -> str:
    """The troubles with names: the reason that they are with ``--live``, and what to do."""
    lines = ["| with `--live` | what netprobe says | to do |", "|---|---|---|"]
    for row in ROWS.values():
        reason = f"`{row.reason}`" if row.reason else "warning"
        lines.append(f"| {reason} | {fill_words(row.said)} | {fill_words(row.to_do)} |")
    return "\n".join(lines)


def print_syntaxes() -> str:
    """What ``netprobe request -o`` writes: for whom, and what ``--into`` and ``--undo`` may say."""
    lines = ["| `-o` | for | `--into` | `--undo` |", "|---|---|---|---|"]
    for name, syntax in SYNTAXES.items():
        needs = f"; needs `netprobe-matrix[{name}]`" if syntax.library else ""
        into = syntax.into.words if syntax.into else ""
        undo = "yes" if syntax.undo else ""
        lines.append(f"| `{name}` | {syntax.purpose}{needs} | {into} | {undo} |")
    return "\n".join(lines)


def fill_words(text: str) -> str:
    """A sentence of a table with its blanks as words: ``{server}`` is SERVER."""
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper().replace("_", " "), text)


def print_checks() -> str:
    """The follow-up checks in their order: their names in the trail, and what a module says."""
    return "\n\n".join(_describe_checks())


def _describe_checks() -> Iterator[str]:
    modules: dict[object, dict[str, None]] = {}
    for check in (*CHECKS, *DENIED_CHECKS, *FINAL_CHECKS):
        modules.setdefault(inspect.getmodule(type(check)), {})[check.name] = None
    for module, names in modules.items():
        described = f"### {', '.join(names)}\n\n{inspect.getdoc(module)}"
        yield re.sub(r"\(docs/([a-z-]+)\.md", r"([facts](\1.md)", described).replace("``", "`")


def print_packages() -> str:
    """What stands above, beside and below the stages, each with the first line of its own."""
    lines = (f"| `{name}` | {first} |" for name, first in read_first_lines(BESIDE))
    return "\n".join(["| `netprobe/` | what it is for |", "|---|---|", *lines])


def read_first_lines(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first line of a file's docstring, or of a folder's."""
    for name in names:
        path = PACKAGE / name / "__init__.py" if "." not in name else PACKAGE / name
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        yield name if "." in name else f"{name}/", words.splitlines()[0].replace("``", "`")

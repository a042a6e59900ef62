"""Count lines of code by folder, without blanks, comments and docstrings.

    python -m tests.code_lines [COMMIT...]

Each commit is a column; the working tree is the last one.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "netprobe"
_NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
)  # fmt: skip


def count_code_lines(text: str) -> int:
    """Count the lines that hold something else than a comment or a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def count_by_folder(files: Iterator[tuple[str, str]]) -> Counter[str]:
    """Add up files, given by path and text, by the folder below the package."""
    found: Counter[str] = Counter()
    for path, text in files:
        _, _, below = path.partition("/")
        folder, slash, _ = below.partition("/")
        found[folder if slash else "."] += count_code_lines(text)
    return found


def _list_files(commit: str | None) -> Iterator[tuple[str, str]]:
    if commit is None:
        for file in sorted((ROOT / PACKAGE).rglob("*.py")):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
        return
    for path in _git("ls-tree", "-r", "--name-only", commit, PACKAGE).splitlines():
        if path.endswith(".py"):
            yield path, _git("show", f"{commit}:{path}")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main(commits: list[str]) -> None:
    """Print a line for each folder, and the sum."""
    counts = [count_by_folder(_list_files(commit)) for commit in (*commits, None)]
    titles = (*commits, "now")
    print(f"{'':14}", *(f"{title[:10]:>10}" for title in titles))
    for folder in sorted(set().union(*counts)):
        print(f"{folder:14}", *(f"{count[folder]:10}" for count in counts))
    print(f"{'all':14}", *(f"{count.total():10}" for count in counts))


if __name__ == "__main__":
    main(sys.argv[1:])
